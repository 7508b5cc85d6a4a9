//! Recall@k: the fraction of the relevant documents that are in the top k.

use super::convention::Convention;
use super::precision::hits;
use super::ranked::Ranked;

/// Returns the recall at `depth`, given the total number of relevant documents.
pub(crate) fn recall(ranked: &Ranked<'_>, convention: &Convention, depth: usize, relevant: usize) -> f64 {
    hits(ranked, convention, depth) / relevant as f64
}
