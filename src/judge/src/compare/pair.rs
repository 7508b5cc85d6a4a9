//! Two systems: what the second does differently from the first, and whether that can be chance.

use super::bootstrap::{Interval, bootstrap};
use super::moments::Moments;
use super::randomisation::{Randomisation, randomisation};
use super::t_test::{TTest, t_test};
use super::wilcoxon::{Wilcoxon, wilcoxon};
use super::{Options, Test};

/// Everything about two systems. Differences are the second's value less the first's.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The first system, by its place.
    pub a: usize,
    /// The second system, by its place.
    pub b: usize,
    /// The mean of the first.
    pub mean_a: f64,
    /// The mean of the second.
    pub mean_b: f64,
    /// Mean and spread of the differences.
    pub difference: Moments,
    /// Where the mean difference lies.
    pub interval: Option<Interval>,
    /// Queries for which the second is better.
    pub wins: u64,
    /// Queries for which both are the same.
    pub ties: u64,
    /// Queries for which the first is better.
    pub losses: u64,
    /// The paired t-test; `None` if the differences do not vary.
    pub t_test: Option<TTest>,
    /// Fisher's randomisation test.
    pub randomisation: Randomisation,
    /// Wilcoxon's signed-rank test.
    pub wilcoxon: Wilcoxon,
    /// The queries that the second improves most, the most improved first, by their places.
    pub improved: Vec<usize>,
    /// The queries that the second worsens most, the most worsened first.
    pub worsened: Vec<usize>,
    /// The probability that decides, corrected for the number of all pairs.
    pub corrected: f64,
    /// Whether it is low enough to call the systems different.
    pub differs: bool,
}

impl Pair {
    /// Compares systems `a` and `b` of which the values are given, query by query. Correction is for
    /// whoever knows the other pairs.
    pub(super) fn of(systems: [usize; 2], values: [&[f64]; 2], options: &Options) -> Self {
        let [first, second] = values;
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let moments = Moments::of(&differences);
        let gain = |place: usize| {
            if options.higher_is_better { differences[place] } else { -differences[place] }
        };
        let count = |which: fn(f64) -> bool| {
            (0..differences.len()).filter(|place| which(gain(*place))).count() as u64
        };
        // Of equals the first in the order of names.
        let most = |sign: f64| {
            let mut places: Vec<usize> =
                (0..differences.len()).filter(|place| sign * gain(*place) > 0.0).collect();
            places.sort_by(|one, other| (sign * gain(*other)).total_cmp(&(sign * gain(*one))));
            places.truncate(options.top);
            places
        };
        let mut pair = Pair {
            a: systems[0],
            b: systems[1],
            mean_a: Moments::of(first).mean,
            mean_b: Moments::of(second).mean,
            interval: bootstrap(&differences, options.resamples, options.level, options.seed),
            wins: count(|gain| gain > 0.0),
            ties: count(|gain| gain == 0.0),
            losses: count(|gain| gain < 0.0),
            t_test: t_test(&moments),
            randomisation: randomisation(&differences, options.permutations, options.seed),
            wilcoxon: wilcoxon(&differences),
            improved: most(1.0),
            worsened: most(-1.0),
            difference: moments,
            corrected: 1.0,
            differs: false,
        };
        pair.corrected = pair.p(options.test).unwrap_or(1.0);
        pair
    }

    /// What a test says; `None` if it cannot be taken.
    pub fn p(&self, test: Test) -> Option<f64> {
        match test {
            Test::Randomisation => Some(self.randomisation.p),
            Test::T => self.t_test.map(|test| test.p),
            Test::Wilcoxon => Some(self.wilcoxon.p),
        }
    }
}
