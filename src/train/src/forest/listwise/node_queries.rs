//! Samples the queries whose gains choose the split of a node (section 4.4.2 of Ibrahim & Carman 2016). Every query is
//! sampled independently, by random numbers that depend only on the seed, the tree, the node and the query.

use crate::forest::features::Path;
use planetree_base::random::Stream;

const OF_QUERY: u64 = 0x7972_6551;

/// The sample of one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeQueries {
    /// Fraction of the queries that are sampled.
    pub share: f64,
    /// Random seed.
    pub seed: u64,
    /// The number of the tree in its forest: each tree draws other samples.
    pub tree: u64,
    /// Path from the root to the node.
    pub path: Path,
}

impl NodeQueries {
    /// Returns whether the sample contains a query, given its number in the dataset.
    pub(super) fn contains(&self, query: u64) -> bool {
        self.share >= 1.0
            || Stream::new(&[self.seed, OF_QUERY, self.tree, self.path.key(), query]).uniform() < self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_share_and_differ_between_nodes() {
        let sample = |path: Path, share: f64| -> Vec<bool> {
            let queries = NodeQueries { share, seed: 1, tree: 2, path };
            (0..10_000).map(|query| queries.contains(query)).collect()
        };
        for share in [0.1, 0.5, 0.9] {
            let count = sample(Path::ROOT, share).iter().filter(|is_in| **is_in).count() as f64;
            assert!((count / 10_000.0 - share).abs() < 0.02, "{count}");
        }
        assert_ne!(sample(Path::ROOT, 0.5), sample(Path::ROOT.left(), 0.5));
        assert!(sample(Path::ROOT, 1.0).iter().all(|is_in| *is_in));
    }
}
