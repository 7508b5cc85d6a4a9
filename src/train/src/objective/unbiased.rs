//! Unbiased LambdaMART (Hu et al., Unbiased LambdaMART, 2019). Labels are clicks, and documents at lower positions are
//! less likely to be examined. This position bias is learned along with the model, separately for clicked and unclicked
//! documents.

use super::pair_by_pair::pair_by_pair;
use super::pair_loss::LogisticLoss;
use super::pair_weights::PairWeights;
use super::{Gradients, LabelProblem, Objective, Query, QueryBuffers};
use crate::config::PairwiseParameters;
use planetree_data::source::LabelledRows;

/// Total pair loss at each position, separately for the clicked and the unclicked document of a pair. Losses are
/// integers in units of 2^-32, so that the order of addition does not matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PositionLosses {
    clicked: Vec<i128>,
    passed: Vec<i128>,
}

const UNITS: f64 = 4_294_967_296.0;

impl PositionLosses {
    /// Adds the losses of other queries.
    pub fn merge(&mut self, other: &PositionLosses) {
        for (mine, theirs) in [(&mut self.clicked, &other.clicked), (&mut self.passed, &other.passed)] {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    fn add(costs: &mut Vec<i128>, position: u32, cost: f64) {
        let position = position as usize;
        costs.resize(costs.len().max(position + 1), 0);
        costs[position] += (cost * UNITS) as i128;
    }
}

/// RankNet or LambdaRank on clicks, corrected for position bias.
#[derive(Debug)]
pub(super) struct Unbiased {
    loss: LogisticLoss,
    weights: PairWeights,
    /// Exponent that turns relative losses into propensities: 1/(1 + `bias_norm`).
    power: f64,
    /// Propensity of clicked documents at each position, relative to the first position.
    clicked: Vec<f64>,
    /// Propensity of unclicked documents at each position, relative to the first position.
    passed: Vec<f64>,
}

impl Unbiased {
    pub(super) fn new(parameters: &PairwiseParameters, sigma: f64, bias_norm: f64) -> Self {
        Unbiased {
            loss: LogisticLoss { sigma: sigma as f32 },
            weights: PairWeights::new(parameters),
            power: 1.0 / (1.0 + bias_norm),
            clicked: Vec::new(),
            passed: Vec::new(),
        }
    }
}

fn at(propensities: &[f64], position: u32) -> f64 {
    propensities.get(position as usize).copied().unwrap_or(1.0)
}

impl Objective for Unbiased {
    fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        self.weights.check(rows)?;
        if rows.iter().all(|rows| rows.positions.is_some()) {
            return Ok(());
        }
        Err(LabelProblem::new(
            "unbiased = true: not every row has a position from 1 to 10,000",
            "convert the data with a position column that counts from 1, or set unbiased=false",
        ))
    }

    fn label_constant(&self, labels: &[f32]) -> f32 {
        self.weights.label_constant(labels)
    }

    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>) {
        let mut losses = std::mem::take(&mut buffers.losses);
        pair_by_pair(&self.weights, self.loss, query, buffers, out, |ranked, pair| {
            let position = |rank: usize| {
                let place = ranked.order[rank];
                query.positions.map_or(place, |positions| positions[place as usize])
            };
            let (clicked, passed) = (position(pair.high), position(pair.low));
            let (of_clicked, of_passed) = (at(&self.clicked, clicked), at(&self.passed, passed));
            let behind = -f64::from(self.loss.sigma * pair.x);
            let cost = f64::from(pair.weight) * (behind.max(0.0) + libm::log1p(libm::exp(-behind.abs())));
            PositionLosses::add(&mut losses.clicked, clicked, cost / of_passed);
            PositionLosses::add(&mut losses.passed, passed, cost / of_clicked);
            (f64::from(pair.weight) / (of_clicked * of_passed)) as f32
        });
        buffers.losses = losses;
    }

    fn learns(&self) -> bool {
        true
    }

    /// Derives the propensities for the next round from the losses at each position, relative to the first position.
    fn learn(&mut self, losses: &PositionLosses) {
        let propensities = |costs: &[i128]| -> Vec<f64> {
            // Loss at the first position that occurs in a pair.
            let first = costs.iter().find(|cost| **cost > 0).copied().unwrap_or(0) as f64;
            let of = |cost: &i128| {
                // Positions without pairs get the propensity of the first position.
                if *cost <= 0 || first <= 0.0 { 1.0 } else { libm::pow(*cost as f64 / first, self.power) }
            };
            costs.iter().map(of).collect()
        };
        (self.clicked, self.passed) = (propensities(&losses.clicked), propensities(&losses.passed));
    }
}
