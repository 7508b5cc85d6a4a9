//! The pairwise objectives RankNet, LambdaRank and GBRANK (Burges, From RankNet to LambdaRank to LambdaMART, 2010).

use super::delta::{ApDelta, Delta, DeltaColumns, ErrDelta, NdcgDelta, UnitDelta};
use super::pair_by_pair::pair_by_pair;
use super::pair_loss::{HingeLoss, LogisticLoss, PairLoss};
use super::pair_weights::PairWeights;
use super::ranked::{F32Lanes, LANES, RankedColumns, lanes};
use super::{Gradients, LabelProblem, Objective, Query, QueryBuffers};
use crate::config::{self, PairwiseParameters};
use fearless_simd::{Level, Select, Simd, SimdBase, dispatch};
use planetree_data::source::LabelledRows;
use planetree_metric::Metric;

/// A pairwise objective, which consists of a pair loss and pair weights.
#[derive(Debug)]
pub(super) struct Pairwise {
    loss: PairLossKind,
    weights: PairWeights,
    level: Level,
}

#[derive(Debug, Clone, Copy)]
enum PairLossKind {
    Logistic(LogisticLoss),
    Hinge(HingeLoss),
}

impl Pairwise {
    pub(super) fn new(parameters: &PairwiseParameters) -> Self {
        let loss = match parameters.loss {
            config::PairwiseLoss::Hinge { margin } => {
                PairLossKind::Hinge(HingeLoss { margin: margin as f32 })
            }
            config::PairwiseLoss::Logistic { sigma, .. } => {
                PairLossKind::Logistic(LogisticLoss { sigma: sigma as f32 })
            }
        };
        Pairwise { loss, weights: PairWeights::new(parameters), level: Level::new() }
    }

    fn gradients_with<L: PairLoss>(
        &self,
        loss: L,
        query: &Query<'_>,
        buffers: &mut QueryBuffers,
        out: Gradients<'_>,
    ) {
        let weights = &self.weights;
        if !matches!(weights.metric, None | Some(Metric::Ndcg(_) | Metric::Err(_) | Metric::Map(None))) {
            return pair_by_pair(weights, loss, query, buffers, out, |_, pair| pair.weight);
        }
        let QueryBuffers { ranked, columns, .. } = buffers;
        ranked.rank(query.labels, query.scores);
        weights.fill(query.label_constant, ranked, columns);
        let pairs = PairLoop { columns, loss, distance: weights.distance(ranked), last: weights.truncation };
        let total = match weights.metric {
            Some(Metric::Ndcg(_)) => dispatch!(self.level, simd => pairs.accumulate(simd, NdcgDelta, ranked)),
            Some(Metric::Err(_)) => dispatch!(self.level, simd => pairs.accumulate(simd, ErrDelta, ranked)),
            Some(Metric::Map(_)) => dispatch!(self.level, simd => pairs.accumulate(simd, ApDelta, ranked)),
            _ => dispatch!(self.level, simd => pairs.accumulate(simd, UnitDelta, ranked)),
        };
        ranked.scatter(weights.factor(total), out);
    }
}

impl Objective for Pairwise {
    fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        self.weights.check(rows)
    }

    fn label_constant(&self, labels: &[f32]) -> f32 {
        self.weights.label_constant(labels)
    }

    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>) {
        match self.loss {
            PairLossKind::Logistic(loss) => self.gradients_with(loss, query, buffers, out),
            PairLossKind::Hinge(loss) => self.gradients_with(loss, query, buffers, out),
        }
    }
}

/// A loop over the pairs of a ranked query that have at least one document in the top `last`.
struct PairLoop<'a, L> {
    columns: &'a DeltaColumns,
    loss: L,
    distance: Option<f32>,
    last: usize,
}

impl<L: PairLoss> PairLoop<'_, L> {
    /// Adds the gradients and hessians of all pairs to `ranked`. Returns the sum of the gradient magnitudes.
    #[inline(always)]
    fn accumulate<S: Simd, D: Delta>(&self, simd: S, delta: D, ranked: &mut RankedColumns) -> f32 {
        let count = ranked.len();
        let RankedColumns { labels, scores, gradients, hessians, .. } = ranked;
        let (offset, slope) = self.distance.map_or((1.0, 0.0), |offset| (offset, 1.0));
        let (none, one) = (F32Lanes::splat(simd, 0.0), F32Lanes::splat(simd, 1.0));
        let mut total = none;
        for i in 0..self.last.min(count) {
            let (label, score) = (F32Lanes::splat(simd, labels[i]), F32Lanes::splat(simd, scores[i]));
            let (mut gradient, mut hessian) = (none, none);
            for j in (i + 1..count).step_by(LANES) {
                let others = lanes(simd, labels, j);
                // Padding labels are NaN, which is neither greater nor less than any label, so padding gets weight 0.
                let more = label.simd_gt(others).select(one, none);
                let less = label.simd_lt(others).select(one, none);
                let (sign, counts) = (more - less, more + less);
                let apart = score - lanes(simd, scores, j);
                // Padding scores are not in descending order. The absolute value keeps the distance above 0 there too.
                let distance = apart.abs() * slope + offset;
                let derivatives = self.loss.derivatives(sign * apart);
                let below = one / (derivatives.below * distance);
                let weight = counts * delta.of(simd, self.columns, i, j) * below;
                let first = weight * derivatives.first;
                let second = weight * derivatives.second * (below * distance);
                let signed = sign * first;
                total += first;
                gradient += signed;
                hessian += second;
                (lanes(simd, gradients, j) - signed).store_slice(&mut gradients[j..j + LANES]);
                (lanes(simd, hessians, j) + second).store_slice(&mut hessians[j..j + LANES]);
            }
            gradients[i] += sum(gradient);
            hessians[i] += sum(hessian);
        }
        2.0 * sum(total)
    }
}

/// Sums the lanes of a vector in a fixed order.
#[inline(always)]
fn sum<S: Simd>(lanes: F32Lanes<S>) -> f32 {
    let halves: [f32; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}
