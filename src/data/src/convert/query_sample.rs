//! Draws random samples of queries, for working with a subset of large data and for learning curves.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, digest_of};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A random sample of queries. Whether a query is selected depends only on its id and the seed. A larger sample
/// therefore contains every smaller sample with the same seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuerySample {
    fraction: f64,
    seed: u64,
}

impl QuerySample {
    /// The sample that contains all queries.
    pub const ALL: QuerySample = QuerySample { fraction: 1.0, seed: 0 };

    /// Creates a sample of the given fraction of queries, which must be above 0 and at most 1.
    pub fn new(fraction: f64, seed: u64) -> Result<Self> {
        if fraction > 0.0 && fraction <= 1.0 {
            return Ok(QuerySample { fraction, seed });
        }
        Err(Error::usage(
            format_args!("--query-fraction {fraction} is out of range"),
            "choose a number above 0 and at most 1, such as 0.1",
        ))
    }

    /// Checks whether a query is in the sample.
    pub fn contains(&self, query: &str) -> bool {
        // The upper 53 bits of the hash give a number in [0, 1).
        let drawn = (xxh3_64_with_seed(query.as_bytes(), self.seed) >> 11) as f64 / (1u64 << 53) as f64;
        drawn < self.fraction
    }

    /// Returns the fingerprint of the sampled input, given the fingerprint of the whole input.
    pub fn fingerprint(&self, source: Digest) -> Digest {
        match self.fraction {
            1.0 => source,
            fraction => digest_of(format!("{source} queries {fraction} by {}", self.seed).as_bytes()),
        }
    }

    /// Returns the error for a sample that contains no query.
    pub(crate) fn empty_sample_error(&self) -> Error {
        Error::usage(
            format_args!("--query-fraction {} selects no query", self.fraction),
            "choose a larger fraction or a different --query-seed",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_sample_contains_a_smaller_one() {
        let kept = |fraction: f64, seed: u64| -> Vec<u32> {
            let share = QuerySample::new(fraction, seed).unwrap();
            (0..10_000).filter(|query| share.contains(&query.to_string())).collect()
        };
        let (few, many) = (kept(0.1, 3), kept(0.3, 3));
        assert!((900..1100).contains(&few.len()) && (2850..3150).contains(&many.len()));
        assert!(few.iter().all(|query| many.contains(query)));
        assert_ne!(few, kept(0.1, 4));
        assert_eq!(kept(1.0, 3).len(), 10_000);
        for odd in [0.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(QuerySample::new(odd, 0).unwrap_err().exit_code(), 2);
        }
    }
}
