//! Decides which documents exit.

use planetree_base::error::{Error, Result};

/// When documents exit, and how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlyExit {
    /// Number of trees between two exits.
    pub every: u32,
    /// Percentage of the documents that exit. The number of documents is rounded down.
    pub percent: f64,
    /// Which documents are compared with each other.
    pub scope: ExitScope,
    /// What the percentage refers to.
    pub share: ExitShare,
}

/// Which documents are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitScope {
    /// All documents of the dataset.
    Pooled,
    /// The documents of each query.
    Query,
}

/// What the percentage of an exit refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitShare {
    /// The documents that have not exited yet.
    Remaining,
    /// All documents.
    All,
}

impl EarlyExit {
    /// Rejects numbers that make no sense.
    pub fn check(&self) -> Result<()> {
        if self.every == 0 {
            return Err(Error::usage(
                "--exit-every 0: documents cannot exit before the first tree",
                "pass a number of trees",
            ));
        }
        if !(0.0..=100.0).contains(&self.percent) {
            return Err(Error::usage(
                format_args!("--exit-percent {}: not a percentage", self.percent),
                "pass a number from 0 to 100, such as 5",
            ));
        }
        Ok(())
    }

    /// Returns how many of `active` documents exit, if there were `all` documents before the first exit.
    pub(super) fn count(&self, active: usize, all: usize) -> usize {
        let of = match self.share {
            ExitShare::Remaining => active,
            ExitShare::All => all,
        };
        ((of as f64 * self.percent / 100.0) as usize).min(active)
    }
}

/// Moves the `count` documents with the lowest scores to the front. Of equal scores, later rows exit first, as they rank
/// lower.
pub(super) fn lowest<T: Copy + Ord>(documents: &mut [(f64, T)], count: usize) -> &[(f64, T)] {
    let order = |one: &(f64, T), other: &(f64, T)| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1));
    if count > 0 && count < documents.len() {
        documents.select_nth_unstable_by(count, order);
    }
    &documents[..count]
}
