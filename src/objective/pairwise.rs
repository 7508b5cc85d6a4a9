//! RankNet, LambdaRank and GBRANK: every pair of a query pulls its two documents apart
//! (Burges, From RankNet to LambdaRank to LambdaMART, 2010).

use super::delta::{AveragePrecision, Columns, Delta, Err, Ndcg, One};
use super::link::{Hinge, Link, Logistic};
use super::one_by_one::pull_one_by_one;
use super::ranked::{LANES, Ranked};
use super::weighs::Weighs;
use super::{Objective, Pulls, Query, Room};
use crate::config::{ObjectiveName, Parameters};
use crate::metric::Metric;
use fearless_simd::{Level, dispatch};

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
        if !matches!(
            weighs.metric,
            None | Some(Metric::Ndcg(_) | Metric::Err(_) | Metric::Map(None))
        ) {
            return pull_one_by_one(weighs, link, query, room, pulls, |_, pair| pair.weight);
        }
        let Room { ranked, columns, .. } = room;
        ranked.rank(query.labels, query.scores);
        weighs.fill(query.of_labels, ranked, columns);
        let pairs = Pairs { columns, link, distance: weighs.distance(ranked), last: weighs.truncation };
        let total = match weighs.metric {
            Some(Metric::Ndcg(_)) => dispatch!(self.level, _ => pairs.pull(Ndcg, ranked)),
            Some(Metric::Err(_)) => dispatch!(self.level, _ => pairs.pull(Err, ranked)),
            Some(Metric::Map(_)) => dispatch!(self.level, _ => pairs.pull(AveragePrecision, ranked)),
            _ => dispatch!(self.level, _ => pairs.pull(One, ranked)),
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
    fn pull<D: Delta>(&self, delta: D, ranked: &mut Ranked) -> f32 {
        let count = ranked.len();
        let Ranked { labels, scores, gradients, hessians, .. } = ranked;
        let (offset, slope) = self.distance.map_or((1.0, 0.0), |offset| (offset, 1.0));
        let mut total = [0f32; LANES];
        for i in 0..self.last.min(count) {
            let (label, score) = (labels[i], scores[i]);
            let (mut gradient, mut hessian) = ([0f32; LANES], [0f32; LANES]);
            for j in (i + 1..count).step_by(LANES) {
                let deltas = delta.of(self.columns, i, j);
                let (labels, scores) = (chunk(labels, j), chunk(scores, j));
                let (gradients, hessians) = (chunk_mut(gradients, j), chunk_mut(hessians, j));
                for lane in 0..LANES {
                    // Behind the last document labels are neither more nor less.
                    let more = if label > labels[lane] { 1.0 } else { 0.0 };
                    let less = if label < labels[lane] { 1.0 } else { 0.0 };
                    let (sign, counts) = (more - less, more + less);
                    let apart = score - scores[lane];
                    let weight = counts * deltas[lane] / (offset + slope * apart);
                    let (first, second) = self.link.pull(sign * apart);
                    let (first, second) = (weight * first, weight * second);
                    total[lane] += first;
                    gradient[lane] += sign * first;
                    hessian[lane] += second;
                    gradients[lane] -= sign * first;
                    hessians[lane] += second;
                }
            }
            gradients[i] += sum(gradient);
            hessians[i] += sum(hessian);
        }
        2.0 * sum(total)
    }
}

const PADDED: &str = "columns go on behind the last document";

#[inline(always)]
fn chunk(column: &[f32], from: usize) -> &[f32; LANES] {
    column[from..].first_chunk().expect(PADDED)
}

#[inline(always)]
fn chunk_mut(column: &mut [f32], from: usize) -> &mut [f32; LANES] {
    column[from..].first_chunk_mut().expect(PADDED)
}

/// In an order that vector instructions can follow.
#[inline(always)]
fn sum(lanes: [f32; LANES]) -> f32 {
    let halves: [f32; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}
