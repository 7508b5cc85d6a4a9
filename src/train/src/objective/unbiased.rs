//! Unbiased LambdaMART: labels are clicks, and a document that was shown further down was less likely
//! to be seen at all. How much less is learned along with the model, for documents that were clicked
//! and for those that were not (Hu et al., Unbiased LambdaMART, 2019).

use super::link::Logistic;
use super::one_by_one::pull_one_by_one;
use super::weighs::Weighs;
use super::{Objective, Pulls, Query, Room};
use crate::config::Parameters;

/// What all pairs cost by the position of either document, in units of 2^-32: whole numbers, so
/// that no order of adding changes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    clicked: Vec<i128>,
    passed: Vec<i128>,
}

const UNITS: f64 = 4_294_967_296.0;

impl Tally {
    /// Adds what was found elsewhere.
    pub fn merge(&mut self, other: &Tally) {
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

/// RankNet or LambdaRank on clicks.
#[derive(Debug)]
pub struct Unbiased {
    link: Logistic,
    weighs: Weighs,
    /// Towards what power costs by position become propensities: 1/(1 + p) for a norm p.
    power: f64,
    /// By position: how likely a clicked document was seen, relative to the first position.
    clicked: Vec<f64>,
    /// The same for documents that were not clicked.
    passed: Vec<f64>,
}

impl Unbiased {
    pub fn new(parameters: &Parameters) -> Self {
        Unbiased {
            link: Logistic { sigma: parameters.sigma as f32 },
            weighs: Weighs::new(parameters),
            power: 1.0 / (1.0 + parameters.bias_norm),
            clicked: Vec::new(),
            passed: Vec::new(),
        }
    }
}

fn at(propensities: &[f64], position: u32) -> f64 {
    propensities.get(position as usize).copied().unwrap_or(1.0)
}

impl Objective for Unbiased {
    fn of_labels(&self, labels: &[f32]) -> f32 {
        self.weighs.of_labels(labels)
    }

    fn pull(&self, query: &Query<'_>, room: &mut Room, pulls: Pulls<'_>) {
        let mut tally = std::mem::take(&mut room.tally);
        pull_one_by_one(&self.weighs, self.link, query, room, pulls, |ranked, pair| {
            let position = |rank: usize| {
                let place = ranked.order[rank];
                query.positions.map_or(place, |positions| positions[place as usize])
            };
            let (clicked, passed) = (position(pair.high), position(pair.low));
            let (of_clicked, of_passed) = (at(&self.clicked, clicked), at(&self.passed, passed));
            let behind = -f64::from(self.link.sigma * pair.x);
            let cost = f64::from(pair.weight) * (behind.max(0.0) + libm::log1p(libm::exp(-behind.abs())));
            Tally::add(&mut tally.clicked, clicked, cost / of_passed);
            Tally::add(&mut tally.passed, passed, cost / of_clicked);
            (f64::from(pair.weight) / (of_clicked * of_passed)) as f32
        });
        room.tally = tally;
    }

    fn learns(&self) -> bool {
        true
    }

    /// Costs by position, relative to those of the first one, make the next round's propensities.
    fn learn(&mut self, tally: &Tally) {
        let propensities = |costs: &[i128]| -> Vec<f64> {
            // Usually the first position; the first that any pair speaks of.
            let first = costs.iter().find(|cost| **cost > 0).copied().unwrap_or(0) as f64;
            let of = |cost: &i128| {
                // A position that no pair speaks of is taken for the first one.
                if *cost <= 0 || first <= 0.0 { 1.0 } else { libm::pow(*cost as f64 / first, self.power) }
            };
            costs.iter().map(of).collect()
        };
        (self.clicked, self.passed) = (propensities(&tally.clicked), propensities(&tally.passed));
    }
}
