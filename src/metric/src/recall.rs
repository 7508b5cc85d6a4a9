//! Recall@k: the share of the relevant documents that are among the first k.

use super::convention::Convention;
use super::precision::hits;
use super::ranked::Ranked;

/// Recall of the first `depth` documents, of `relevant` in all.
pub fn recall(ranked: &Ranked<'_>, convention: &Convention, depth: usize, relevant: usize) -> f64 {
    hits(ranked, convention, depth) / relevant as f64
}
