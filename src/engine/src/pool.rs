//! The memory that operators of DataFusion share. Sorts and aggregations that can spill get equal shares, but never
//! all of it: a sort that merges its runs cannot spill, and would otherwise fail whenever the other sorts happen to
//! have taken the rest.

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use planetree_base::size::shown_size;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A memory pool that keeps a reserve for what cannot spill.
#[derive(Debug)]
pub struct ReservingPool {
    size: usize,
    /// Bytes that consumers which can spill leave to the others.
    reserve: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Number of consumers that can spill.
    spilling: usize,
    spillable: usize,
    unspillable: usize,
}

impl ReservingPool {
    /// Creates a pool of `size` bytes, of which `reserve` bytes are for what cannot spill.
    pub fn new(size: usize, reserve: usize) -> Self {
        ReservingPool { size, reserve, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the most bytes that a reservation may have in all.
    fn limit(&self, used: &Used, reservation: &MemoryReservation) -> usize {
        if reservation.consumer().can_spill() {
            self.size.saturating_sub(used.unspillable.max(self.reserve)) / used.spilling.max(1)
        } else {
            reservation.size() + self.size.saturating_sub(used.unspillable + used.spillable)
        }
    }
}

impl MemoryPool for ReservingPool {
    fn name(&self) -> &str {
        "reserving"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.used().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.used().spilling -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut used = self.used();
        match reservation.consumer().can_spill() {
            true => used.spillable += additional,
            false => used.unspillable += additional,
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut used = self.used();
        match reservation.consumer().can_spill() {
            true => used.spillable -= shrink,
            false => used.unspillable -= shrink,
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut used = self.used();
        if reservation.size().saturating_add(additional) > self.limit(&used, reservation) {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} needs {} more, but all operators together may use {}",
                reservation.consumer().name(),
                shown_size(additional as u64),
                shown_size(self.size as u64)
            )));
        }
        match reservation.consumer().can_spill() {
            true => used.spillable += additional,
            false => used.unspillable += additional,
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        let used = self.used();
        used.spillable + used.unspillable
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.size)
    }
}

impl fmt::Display for ReservingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pool of {}", shown_size(self.size as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_cannot_spill_has_a_reserve() {
        let pool: Arc<dyn MemoryPool> = Arc::new(ReservingPool::new(1000, 250));
        let sort = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
        let (first, second) = (sort("first"), sort("second"));
        assert!(first.try_grow(375).is_ok() && first.try_grow(1).is_err(), "half of three quarters");
        assert!(second.try_grow(375).is_ok() && second.try_grow(1).is_err());
        let merge = MemoryConsumer::new("merge").register(&pool);
        assert!(merge.try_grow(250).is_ok(), "sorts left the reserve");
        let error = merge.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("merge needs 1 B more"), "{error}");
        drop(second);
        assert!(merge.try_grow(375).is_ok());
        assert!(first.try_grow(1).is_err(), "the others have the rest");
        drop((first, merge));
        assert_eq!(pool.reserved(), 0);
    }
}
