//! Average precision: the mean of the precisions at the ranks of the relevant documents. MAP is the mean of average
//! precision over queries.

use super::convention::{Convention, MapNormaliser};
use super::ranked::{Ranked, Spans, spans};

/// Returns the average precision at `depth`, given the total number of relevant documents.
pub(crate) fn average_precision(
    ranked: &Ranked<'_>,
    convention: &Convention,
    depth: usize,
    relevant: usize,
) -> f64 {
    let (precisions, found) = precisions(ranked, convention, depth);
    let normaliser = match convention.map_normaliser {
        MapNormaliser::Relevant => relevant,
        MapNormaliser::Depth => relevant.min(depth),
        MapNormaliser::Found => found,
    };
    precisions / normaliser.max(1) as f64
}

/// Returns the sum of the precisions at the relevant documents within the depth, and the number of these documents.
/// If ties are averaged, the sum is its mean over all orders of ties.
fn precisions(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> (f64, usize) {
    let (mut sum, mut found) = (0.0, 0);
    match ranked.ties {
        Spans::Settled => {
            for (label, rank) in ranked.labels.iter().take(depth).zip(1_u32..) {
                if convention.is_relevant(*label) {
                    found += 1;
                    sum += f64::from(found) / f64::from(rank);
                }
            }
        }
        Spans::Averaged(ends) => {
            for span in spans(ends).take_while(|span| span.start < depth) {
                let relevant = convention.count_relevant(&ranked.labels[span.clone()]) as u32;
                let here = f64::from(relevant) / span.len() as f64;
                // Given a relevant document of the span, the probability that another document of the span is
                // relevant.
                let others = f64::from(relevant.max(1) - 1) / (span.len().max(2) - 1) as f64;
                for (before, rank) in (span.start + 1..=span.end.min(depth)).enumerate() {
                    sum += here * (f64::from(found) + 1.0 + before as f64 * others) / rank as f64;
                }
                found += relevant;
            }
        }
        Spans::Last(ends) => {
            for span in spans(ends).take_while(|span| span.end <= depth) {
                let relevant = convention.count_relevant(&ranked.labels[span.clone()]) as u32;
                found += relevant;
                sum += f64::from(relevant) * f64::from(found) / span.end as f64;
            }
        }
    }
    (sum, found as usize)
}
