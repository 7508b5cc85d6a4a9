//! P@k: the fraction of the top k documents that are relevant.

use super::convention::{Convention, Short};
use super::ranked::{Ranked, Spans, spans};

/// Returns the precision at `depth`, or 0 if there are no documents.
pub(crate) fn precision(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let among = match convention.short {
        Short::Pad | Short::Zero if depth != usize::MAX => depth,
        _ => depth.min(ranked.documents),
    };
    hits(ranked, convention, depth) / among.max(1) as f64
}

/// Returns the number of relevant documents in the top `depth`. If ties are averaged, this is the mean over all
/// orders of ties.
pub(crate) fn hits(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let relevant = |labels: &[f32]| convention.count_relevant(labels) as f64;
    match ranked.ties {
        Spans::Settled => relevant(&ranked.labels[..depth.min(ranked.labels.len())]),
        Spans::Averaged(ends) => spans(ends)
            .take_while(|span| span.start < depth)
            .map(|span| {
                let visible = span.len().min(depth - span.start);
                relevant(&ranked.labels[span.clone()]) * visible as f64 / span.len() as f64
            })
            .fold(0.0, |sum, found| sum + found), // `sum` of no numbers would be -0.0
        Spans::Last(ends) => {
            let end = ends.iter().take_while(|end| **end as usize <= depth).last().copied().unwrap_or(0);
            relevant(&ranked.labels[..end as usize])
        }
    }
}
