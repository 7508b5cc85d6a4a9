//! A share of the queries, for a sample of large data or a learning curve.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, digest_of};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Which queries are kept: each by its id alone, so that neither the order of the rows nor other queries
/// matter, and a larger share has all queries of a smaller one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryShare {
    fraction: f64,
    seed: u64,
}

impl QueryShare {
    /// All queries.
    pub const ALL: QueryShare = QueryShare { fraction: 1.0, seed: 0 };

    /// A share above 0 and at most 1, drawn by a seed.
    pub fn new(fraction: f64, seed: u64) -> Result<Self> {
        if fraction > 0.0 && fraction <= 1.0 {
            return Ok(QueryShare { fraction, seed });
        }
        Err(Error::usage(
            format_args!("--query-fraction {fraction} is no share of the queries"),
            "write a number above 0 and at most 1, such as 0.1",
        ))
    }

    /// Whether a query is kept.
    pub fn keeps(&self, query: &str) -> bool {
        // 53 bits of the hash are a number from 0 up to 1.
        let drawn = (xxh3_64_with_seed(query.as_bytes(), self.seed) >> 11) as f64 / (1u64 << 53) as f64;
        drawn < self.fraction
    }

    /// What the rows were made from, if these queries of a source are kept.
    pub fn fingerprint(&self, source: Digest) -> Digest {
        match self.fraction {
            1.0 => source,
            fraction => digest_of(format!("{source} queries {fraction} by {}", self.seed).as_bytes()),
        }
    }

    /// The error of a share that no query is in.
    pub fn keeps_nothing(&self) -> Error {
        Error::usage(
            format_args!("--query-fraction {} keeps none of the queries", self.fraction),
            "keep a larger share, or draw by another --query-seed",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_share_has_the_queries_of_a_smaller_one() {
        let kept = |fraction: f64, seed: u64| -> Vec<u32> {
            let share = QueryShare::new(fraction, seed).unwrap();
            (0..10_000).filter(|query| share.keeps(&query.to_string())).collect()
        };
        let (few, many) = (kept(0.1, 3), kept(0.3, 3));
        assert!((900..1100).contains(&few.len()) && (2850..3150).contains(&many.len()));
        assert!(few.iter().all(|query| many.contains(query)));
        assert_ne!(few, kept(0.1, 4));
        assert_eq!(kept(1.0, 3).len(), 10_000);
        for odd in [0.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(QueryShare::new(odd, 0).unwrap_err().exit_code(), 2);
        }
    }
}
