//! Is one ranking better than another, or was it luck? Systems are compared query by query on the same
//! queries.
//!
//! ```text
//! metrics tables, predictions ──read──► values by query ──align──► differences
//!                                                                     │
//!          t-test, randomisation, signed ranks, bootstrap, wins ◄─────┘ for each pair
//!                                  │
//!                                  ▼ Holm: corrected for the number of pairs
//! ```

mod aligned;
mod bootstrap;
mod differences;
mod holm;
mod metrics;
mod moments;
mod pair;
mod query_value;
mod randomisation;
mod read;
mod t_test;
mod tails;
mod whole;
mod wilcoxon;

pub use aligned::{Aligned, System};
pub use bootstrap::{Interval, bootstrap};
pub use differences::write_differences;
pub use holm::holm;
pub use moments::Moments;
pub use pair::Pair;
pub use query_value::QueryValue;
pub use randomisation::{Randomisation, randomisation};
pub use read::{ReadSystems, Source, read_systems};
pub use t_test::{TTest, t_test};
pub use wilcoxon::{Wilcoxon, wilcoxon};

use planetree_base::error::Result;
use planetree_base::storage::interrupt;

/// The tests of whether a difference may be chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Test {
    /// Fisher's randomisation test
    #[value(alias = "randomization", alias = "permutation", alias = "fisher")]
    Randomisation,
    /// Student's paired t-test
    #[value(alias = "t-test", alias = "ttest")]
    T,
    /// Wilcoxon's signed-rank test
    Wilcoxon,
}

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Whether more of the metric is better.
    pub higher_is_better: bool,
    /// The test that decides.
    pub test: Test,
    /// How likely a false finding may be.
    pub alpha: f64,
    /// Random ways to deal out signs.
    pub permutations: u64,
    /// Times to draw queries.
    pub resamples: u64,
    /// The share of drawn means within the interval.
    pub level: f64,
    /// What decides on all draws.
    pub seed: u64,
    /// How many of the queries that moved most to name, in each direction.
    pub top: usize,
}

/// Compares every system with every later one.
pub fn compare(aligned: &Aligned, options: &Options) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for (b, second) in aligned.values.iter().enumerate() {
        for (a, first) in aligned.values[..b].iter().enumerate() {
            interrupt::check()?;
            pairs.push(Pair::of([a, b], [first, second], options));
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
