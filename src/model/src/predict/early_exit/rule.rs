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

/// Maps a score to an integer, in the order of [`f64::total_cmp`]. Integers are selected faster than scores.
#[inline]
pub(super) fn key_of(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Which documents exit: those whose key is below `key`, and some of those whose key is equal. Of equal scores, later
/// rows exit first, as they rank lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitLimit {
    pub key: u64,
    /// Number of documents with this key that exit.
    pub ties: usize,
}

impl ExitLimit {
    /// Returns the limit below which `count` documents exit, given the keys of all documents. The keys are reordered.
    /// Returns `None` if no document exits.
    pub(super) fn of(keys: &mut [u64], count: usize) -> Option<Self> {
        let last = count.checked_sub(1)?;
        let (below, key, _) = keys.select_nth_unstable(last);
        let key = *key;
        let ties = 1 + below.iter().filter(|other| **other == key).count();
        Some(ExitLimit { key, ties })
    }
}
