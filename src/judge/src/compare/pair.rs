//! Compares two systems: computes their differences, significance tests, wins and losses.

use super::bootstrap::{ConfidenceInterval, bootstrap};
use super::moments::Moments;
use super::randomisation::{Randomisation, randomisation};
use super::t_test::{TTest, t_test};
use super::wilcoxon::{Wilcoxon, wilcoxon};
use super::{ComparisonOptions, SignificanceTest};

/// The comparison of two systems. A difference is the value of the second system minus the value of the first.
#[derive(Debug, Clone, PartialEq)]
pub struct PairComparison {
    /// Index of the first system of the pair.
    pub a: usize,
    /// Index of the second system of the pair.
    pub b: usize,
    /// Mean of the metric in the first system.
    pub mean_a: f64,
    /// Mean of the metric in the second system.
    pub mean_b: f64,
    /// Mean and standard deviation of the differences.
    pub difference: Moments,
    /// Confidence interval of the mean difference.
    pub interval: Option<ConfidenceInterval>,
    /// Number of queries for which the second system is better.
    pub wins: u64,
    /// Number of queries with equal values.
    pub ties: u64,
    /// Number of queries for which the first system is better.
    pub losses: u64,
    /// The paired t-test; `None` if the differences do not vary.
    pub t_test: Option<TTest>,
    /// Fisher's randomisation test.
    pub randomisation: Randomisation,
    /// Wilcoxon's signed-rank test.
    pub wilcoxon: Wilcoxon,
    /// Indices of the queries that the second system improves most, in descending order of improvement.
    pub improved: Vec<usize>,
    /// Indices of the queries that the second system worsens most, in descending order of deterioration.
    pub worsened: Vec<usize>,
    /// The p-value of the selected test, corrected for the number of pairs.
    pub corrected: f64,
    /// Whether the corrected p-value is at most the significance level.
    pub differs: bool,
}

impl PairComparison {
    /// Compares two systems by their values for each query. The p-value is not corrected yet, because the correction
    /// needs the p-values of all pairs.
    pub(super) fn of(systems: [usize; 2], values: [&[f64]; 2], options: &ComparisonOptions) -> Self {
        let [first, second] = values;
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let moments = Moments::of(&differences);
        let gain = |query: usize| {
            if options.higher_is_better { differences[query] } else { -differences[query] }
        };
        let count = |which: fn(f64) -> bool| {
            (0..differences.len()).filter(|query| which(gain(*query))).count() as u64
        };
        // The sort is stable, so queries with equal differences stay in the order of their names.
        let most = |sign: f64| {
            let mut queries: Vec<usize> =
                (0..differences.len()).filter(|query| sign * gain(*query) > 0.0).collect();
            queries.sort_by(|one, other| (sign * gain(*other)).total_cmp(&(sign * gain(*one))));
            queries.truncate(options.top);
            queries
        };
        let mut pair = PairComparison {
            a: systems[0],
            b: systems[1],
            mean_a: Moments::of(first).mean,
            mean_b: Moments::of(second).mean,
            interval: bootstrap(&differences, options.resamples, options.level, options.seed),
            wins: count(|gain| gain > 0.0),
            ties: count(|gain| gain == 0.0),
            losses: count(|gain| gain < 0.0),
            t_test: t_test(&moments, options.alternative),
            randomisation: randomisation(
                &differences,
                options.permutations,
                options.seed,
                options.alternative,
            ),
            wilcoxon: wilcoxon(&differences, options.alternative),
            improved: most(1.0),
            worsened: most(-1.0),
            difference: moments,
            corrected: 1.0,
            differs: false,
        };
        pair.corrected = pair.p(options.test).unwrap_or(1.0);
        pair
    }

    /// Returns the uncorrected p-value of a test; `None` if the test is undefined for these differences.
    pub fn p(&self, test: SignificanceTest) -> Option<f64> {
        match test {
            SignificanceTest::Randomisation => Some(self.randomisation.p),
            SignificanceTest::T => self.t_test.map(|test| test.p),
            SignificanceTest::Wilcoxon => Some(self.wilcoxon.p),
        }
    }
}
