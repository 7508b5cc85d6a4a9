//! R-precision: the fraction of the top R documents that are relevant, if R documents are relevant in all.

use super::convention::Convention;
use super::precision::hits;
use super::ranked::Ranked;

/// Returns the R-precision, given the total number of relevant documents.
pub(crate) fn r_precision(ranked: &Ranked<'_>, convention: &Convention, relevant: usize) -> f64 {
    hits(ranked, convention, relevant) / relevant as f64
}
