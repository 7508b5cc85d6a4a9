//! Success@k: whether at least one of the top k documents is relevant.

use super::convention::Convention;
use super::ranked::{Ranked, Spans, spans};

/// Returns 1 if a relevant document is within `depth`, otherwise 0. If ties are averaged, this is the fraction of all
/// orders of ties in which there is one.
pub(crate) fn success(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let found = |end: usize| f64::from(convention.count_relevant(&ranked.labels[..end]) > 0);
    match ranked.ties {
        Spans::Settled => found(depth.min(ranked.labels.len())),
        Spans::Averaged(ends) => {
            let first = spans(ends).find(|span| convention.count_relevant(&ranked.labels[span.clone()]) > 0);
            let Some(span) = first.filter(|span| span.start < depth) else { return 0.0 };
            let relevant = convention.count_relevant(&ranked.labels[span.clone()]);
            let visible = span.len().min(depth - span.start);
            // The probability that none of the visible documents is relevant, drawn without replacement.
            let none = (0..visible).map(|drawn| {
                let left = span.len() - drawn;
                left.saturating_sub(relevant) as f64 / left as f64
            });
            1.0 - none.product::<f64>()
        }
        Spans::Last(ends) => {
            found(ends.iter().take_while(|end| **end as usize <= depth).last().map_or(0, |end| *end as usize))
        }
    }
}
