//! Tests whether the rankings of several systems differ significantly. Systems are compared query by query, on the
//! same queries.
//!
//! ```text
//! metrics tables, predictions ──read──► values by query ──align──► differences
//!                                                                     │
//!          t-test, randomisation, signed ranks, bootstrap, wins ◄─────┘ of each pair
//!                                  │
//!                                  ▼ Holm's correction for the number of pairs
//! ```

mod aligned;
mod alternative;
mod bootstrap;
mod differences;
mod holm;
mod metrics;
mod moments;
mod pair;
mod query_value;
mod randomisation;
mod read;
mod scaled;
mod t_test;
mod tails;

mod wilcoxon;

pub use aligned::{AlignedSystems, ComparedSystem};
pub use alternative::Alternative;
pub use bootstrap::{ConfidenceInterval, bootstrap};
pub use differences::write_differences;
pub use holm::holm;
pub use moments::Moments;
pub use pair::PairComparison;
pub use query_value::QueryValue;
pub use randomisation::{Randomisation, randomisation};
pub use read::{ComparedFile, ReadSystems, ReadingRules, read_systems};
pub use t_test::{TTest, t_test};
pub use wilcoxon::{Wilcoxon, wilcoxon};

use planetree_base::error::Result;
use planetree_base::storage::interrupt;

/// A paired significance test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignificanceTest {
    /// Fisher's randomisation test.
    Randomisation,
    /// Student's paired t-test.
    T,
    /// Wilcoxon's signed-rank test.
    Wilcoxon,
}

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonOptions {
    /// Whether higher values of the metric are better.
    pub higher_is_better: bool,
    /// The test that decides whether systems differ.
    pub test: SignificanceTest,
    /// Alternative hypothesis of all tests.
    pub alternative: Alternative,
    /// Significance level.
    pub alpha: f64,
    /// Number of random sign assignments in the randomisation test.
    pub permutations: u64,
    /// Number of bootstrap resamples.
    pub resamples: u64,
    /// Confidence level of the bootstrap interval, from 0 to 1.
    pub level: f64,
    /// Seed for all random draws.
    pub seed: u64,
    /// Maximum number of most improved queries to list, and likewise of most worsened queries.
    pub top: usize,
}

/// Compares every pair of systems, and corrects the p-values for the number of pairs.
pub fn compare(aligned: &AlignedSystems, options: &ComparisonOptions) -> Result<Vec<PairComparison>> {
    let mut pairs = Vec::new();
    for (b, second) in aligned.values.iter().enumerate() {
        for (a, first) in aligned.values[..b].iter().enumerate() {
            interrupt::check()?;
            pairs.push(PairComparison::of([a, b], [first, second], options));
        }
    }
    pairs.sort_by_key(|pair| (pair.a, pair.b));
    let corrected = holm(&pairs.iter().map(|pair| pair.corrected).collect::<Vec<f64>>());
    for (pair, corrected) in pairs.iter_mut().zip(corrected) {
        (pair.corrected, pair.differs) = (corrected, corrected <= options.alpha);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
