//! Computes gradients one pair at a time, for metrics without a closed form and for custom pair weights.

use super::pair_loss::PairLoss;
use super::pair_weights::PairWeights;
use super::ranked::RankedColumns;
use super::{Gradients, Query, QueryBuffers};

/// Two documents of a query, identified by their ranks.
pub(super) struct RankedPair {
    /// Rank of the document with the higher label.
    pub high: usize,
    /// Rank of the document with the lower label.
    pub low: usize,
    /// Score of `high` minus score of `low`.
    pub x: f32,
    /// Weight of the pair before `weigh` adjusts it.
    pub weight: f32,
}

/// Computes the gradients and hessians of a query. `weigh` returns the final weight of each pair.
pub(super) fn pair_by_pair<L: PairLoss>(
    weights: &PairWeights,
    loss: L,
    query: &Query<'_>,
    buffers: &mut QueryBuffers,
    out: Gradients<'_>,
    mut weigh: impl FnMut(&RankedColumns, &RankedPair) -> f32,
) {
    let QueryBuffers { ranked, columns, .. } = buffers;
    ranked.rank(query.labels, query.scores);
    weights.fill(query.label_constant, ranked, columns);
    let distance = weights.distance(ranked);
    let count = ranked.len();
    let mut total = 0.0;
    for i in 0..weights.truncation.min(count) {
        for j in i + 1..count {
            let (one, other) = (ranked.labels[i], ranked.labels[j]);
            if one == other {
                continue;
            }
            let (high, low) = if one > other { (i, j) } else { (j, i) };
            let x = ranked.scores[high] - ranked.scores[low];
            let delta = weights.delta(columns, ranked, i, j);
            let pair =
                RankedPair { high, low, x, weight: delta / distance.map_or(1.0, |offset| offset + x.abs()) };
            let weight = weigh(ranked, &pair);
            let (first, second) = loss.derivatives_at(x);
            total += weight * first;
            ranked.gradients[high] += weight * first;
            ranked.gradients[low] -= weight * first;
            ranked.hessians[high] += weight * second;
            ranked.hessians[low] += weight * second;
        }
    }
    ranked.scatter(weights.factor(2.0 * total), out);
}
