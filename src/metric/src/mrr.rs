//! MRR: the reciprocal rank of the first relevant document, or 0 if there is none within the depth.

use super::convention::Convention;
use super::ranked::{Ranked, Spans, spans};

/// Returns the reciprocal rank of the first relevant document, or 0 if there is none within `depth`.
pub(crate) fn reciprocal_rank(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let reciprocal = |rank: usize| if rank <= depth { 1.0 / rank as f64 } else { 0.0 };
    let first = |ends| spans(ends).find(|span| convention.count_relevant(&ranked.labels[span.clone()]) > 0);
    match ranked.ties {
        Spans::Settled => {
            let first = ranked.labels.iter().take(depth).position(|label| convention.is_relevant(*label));
            first.map_or(0.0, |place| reciprocal(place + 1))
        }
        Spans::Averaged(ends) => first(ends).map_or(0.0, |span| {
            let relevant = convention.count_relevant(&ranked.labels[span.clone()]) as f64;
            let mut none_yet = 1.0;
            let mut sum = 0.0;
            for (rank, left) in (span.start + 1..=span.end).zip((1..=span.len()).rev()) {
                let here = (relevant / left as f64).min(1.0);
                sum += none_yet * here * reciprocal(rank);
                none_yet *= 1.0 - here;
            }
            sum
        }),
        Spans::Last(ends) => first(ends).map_or(0.0, |span| reciprocal(span.end)),
    }
}
