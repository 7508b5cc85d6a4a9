//! Keeps the last result of a computation on rows, so that jobs at the same point do not repeat it.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// The last result that depends on a list of numbers, such as weights. It can always be computed again, so a job at other
/// numbers replaces it.
#[derive(Default)]
pub(crate) struct KeptResult(Mutex<Option<KeyedResult>>);

/// A result and the numbers that it was computed for.
type KeyedResult = (Vec<f64>, Arc<dyn Any + Send + Sync>);

impl KeptResult {
    /// Returns the result for these numbers, if it is the last one.
    pub(crate) fn get<T: Send + Sync + 'static>(&self, numbers: &[f64]) -> Option<Arc<T>> {
        // A thread that panicked has left the previous result.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, result) = kept.as_ref()?;
        if of != numbers {
            return None;
        }
        result.clone().downcast().ok()
    }

    /// Frees the last result.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Replaces the last result.
    pub(crate) fn keep<T: Send + Sync + 'static>(&self, numbers: &[f64], result: T) -> Arc<T> {
        let result = Arc::new(result);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((numbers.to_vec(), result.clone()));
        result
    }

    /// Returns the result for these numbers. Computes it unless it is the last one.
    pub(crate) fn get_or<T: Send + Sync + 'static>(
        &self,
        numbers: &[f64],
        compute: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.get(numbers).unwrap_or_else(|| self.keep(numbers, compute()))
    }
}
