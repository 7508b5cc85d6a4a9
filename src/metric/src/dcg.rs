//! DCG: the sum of the gains, each discounted by rank (Järvelin & Kekäläinen 2002).

use super::convention::Convention;
use super::ranked::{Ranked, Spans, spans};

/// Returns the DCG of the first `depth` documents.
pub(crate) fn dcg(ranked: &Ranked<'_>, convention: &Convention, depth: usize) -> f64 {
    let gains = |labels: &[f32]| labels.iter().map(|label| convention.gain(*label)).sum::<f64>();
    let sum: f64 = match ranked.ties {
        Spans::Settled => {
            let labels = ranked.labels.iter().take(depth).enumerate();
            labels.map(|(rank, label)| convention.gain(*label) * convention.discount(rank)).sum()
        }
        // Over all orders of documents with equal scores, each of these documents has each of the ranks that they
        // share equally often (McSherry & Najork 2008).
        Spans::Averaged(ends) => spans(ends)
            .take_while(|span| span.start < depth)
            .map(|span| {
                let mean = gains(&ranked.labels[span.clone()]) / span.len() as f64;
                let discounts: f64 =
                    (span.start..span.end.min(depth)).map(|rank| convention.discount(rank)).sum();
                mean * discounts
            })
            .sum(),
        Spans::Last(ends) => spans(ends)
            .take_while(|span| span.end <= depth)
            .map(|span| gains(&ranked.labels[span.clone()]) * convention.discount(span.end - 1))
            .sum(),
    };
    sum + 0.0 // `sum` of no numbers is -0.0
}
