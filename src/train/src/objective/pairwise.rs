//! RankNet, LambdaRank and GBRANK: every pair of a query pulls its two documents apart
//! (Burges, From RankNet to LambdaRank to LambdaMART, 2010).

use super::delta::{AveragePrecision, Columns, Delta, Err, Ndcg, One};
use super::link::{Hinge, Link, Logistic};
use super::one_by_one::pull_one_by_one;
use super::ranked::{LANES, Lanes, Ranked, lanes};
use super::weighs::Weighs;
use super::{Objective, Pulls, Query, Room};
use crate::config::{ObjectiveName, Parameters};
use fearless_simd::{Level, Select, Simd, SimdBase, dispatch};
use planetree_metric::Metric;

/// A pairwise objective.
#[derive(Debug)]
pub struct Pairwise {
    link: Links,
    weighs: Weighs,
    level: Level,
}

#[derive(Debug, Clone, Copy)]
enum Links {
    Logistic(Logistic),
    Hinge(Hinge),
}

impl Pairwise {
    pub fn new(parameters: &Parameters) -> Self {
        let link = match parameters.objective {
            ObjectiveName::GbRank => Links::Hinge(Hinge { margin: parameters.margin as f32 }),
            _ => Links::Logistic(Logistic { sigma: parameters.sigma as f32 }),
        };
        Pairwise { link, weighs: Weighs::new(parameters), level: Level::new() }
    }

    fn pull_with<L: Link>(&self, link: L, query: &Query<'_>, room: &mut Room, pulls: Pulls<'_>) {
        let weighs = &self.weighs;
        if !matches!(weighs.metric, None | Some(Metric::Ndcg(_) | Metric::Err(_) | Metric::Map(None))) {
            return pull_one_by_one(weighs, link, query, room, pulls, |_, pair| pair.weight);
        }
        let Room { ranked, columns, .. } = room;
        ranked.rank(query.labels, query.scores);
        weighs.fill(query.of_labels, ranked, columns);
        let pairs = Pairs { columns, link, distance: weighs.distance(ranked), last: weighs.truncation };
        let total = match weighs.metric {
            Some(Metric::Ndcg(_)) => dispatch!(self.level, simd => pairs.pull(simd, Ndcg, ranked)),
            Some(Metric::Err(_)) => dispatch!(self.level, simd => pairs.pull(simd, Err, ranked)),
            Some(Metric::Map(_)) => dispatch!(self.level, simd => pairs.pull(simd, AveragePrecision, ranked)),
            _ => dispatch!(self.level, simd => pairs.pull(simd, One, ranked)),
        };
        ranked.hand_out(weighs.factor(total), pulls);
    }
}

impl Objective for Pairwise {
    fn of_labels(&self, labels: &[f32]) -> f32 {
        self.weighs.of_labels(labels)
    }

    fn pull(&self, query: &Query<'_>, room: &mut Room, pulls: Pulls<'_>) {
        match self.link {
            Links::Logistic(link) => self.pull_with(link, query, room, pulls),
            Links::Hinge(link) => self.pull_with(link, query, room, pulls),
        }
    }
}

/// The pairs of a ranked query of which one document is among the `last` best.
struct Pairs<'a, L> {
    columns: &'a Columns,
    link: L,
    distance: Option<f32>,
    last: usize,
}

impl<L: Link> Pairs<'_, L> {
    /// Adds the pulls of all pairs; how strong they are together.
    #[inline(always)]
    fn pull<S: Simd, D: Delta>(&self, simd: S, delta: D, ranked: &mut Ranked) -> f32 {
        let count = ranked.len();
        let Ranked { labels, scores, gradients, hessians, .. } = ranked;
        let (offset, slope) = self.distance.map_or((1.0, 0.0), |offset| (offset, 1.0));
        let (none, one) = (Lanes::splat(simd, 0.0), Lanes::splat(simd, 1.0));
        let mut total = none;
        for i in 0..self.last.min(count) {
            let (label, score) = (Lanes::splat(simd, labels[i]), Lanes::splat(simd, scores[i]));
            let (mut gradient, mut hessian) = (none, none);
            for j in (i + 1..count).step_by(LANES) {
                let others = lanes(simd, labels, j);
                // Behind the last document labels are neither more nor less.
                let more = label.simd_gt(others).select(one, none);
                let less = label.simd_lt(others).select(one, none);
                let (sign, counts) = (more - less, more + less);
                let apart = score - lanes(simd, scores, j);
                // Behind the last document scores are not in order; nothing there may divide by 0.
                let distance = apart.abs() * slope + offset;
                let slopes = self.link.slopes(sign * apart);
                let below = one / (slopes.below * distance);
                let weight = counts * delta.of(simd, self.columns, i, j) * below;
                let first = weight * slopes.first;
                let second = weight * slopes.second * (below * distance);
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

/// Always in the same order.
#[inline(always)]
fn sum<S: Simd>(lanes: Lanes<S>) -> f32 {
    let halves: [f32; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}
