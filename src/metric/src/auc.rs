//! AUC: the probability that a relevant document is scored above an irrelevant one, which equals the area under the
//! ROC curve. Partial AUC is the area between two false-positive rates (Mohan 2010, chapter 6).
//!
//! AUC@[i,j] is not divided by the width of its range, so its maximum is (j - i)/100, unless the convention
//! standardises it.

use super::convention::{Convention, PartialArea, Ties};
use super::ranked::spans;
use serde::{Deserialize, Serialize};

/// The rules of a convention that determine the area.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AreaRules {
    ties: AreaTies,
    standardised: bool,
}

/// The ROC curve within a run of equal scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum AreaTies {
    /// A straight line.
    #[default]
    Line,
    /// Irrelevant documents first.
    Worst,
    /// Relevant documents first.
    Best,
}

impl AreaRules {
    /// Returns the rules of a convention.
    pub(crate) fn of(convention: &Convention) -> Self {
        let ties = match convention.binary_ties {
            Ties::Worst => AreaTies::Worst,
            Ties::Best => AreaTies::Best,
            Ties::Input | Ties::Document | Ties::Average | Ties::Last => AreaTies::Line,
        };
        AreaRules { ties, standardised: convention.pauc == PartialArea::Standardised }
    }

    /// Returns the area under the ROC curve between two false-positive rates in percent, or `None` unless there are
    /// both relevant and irrelevant documents. `runs` has the weights of the relevant and irrelevant documents in each
    /// run of equal scores, in descending order of scores.
    pub(crate) fn area(self, runs: &[(f64, f64)], percents: (u32, u32)) -> Option<f64> {
        let (relevant, irrelevant) =
            runs.iter().fold((0.0, 0.0), |(right, wrong), (gained, passed)| (right + gained, wrong + passed));
        if relevant == 0.0 || irrelevant == 0.0 {
            return None;
        }
        // Converts a bound of the horizontal axis to a number of irrelevant documents.
        let within = |percent: u32| f64::from(percent) / 100.0 * irrelevant;
        let (from, to) = (within(percents.0), within(percents.1));
        let (mut wrong, mut right) = (0.0, 0.0);
        let mut sum = 0.0;
        for (gained, passed) in runs {
            let (low, high) = (f64::max(from, wrong), f64::min(to, wrong + passed));
            if high > low {
                // The mean fraction of the run's relevant documents found between `low` and `high`.
                let share = match self.ties {
                    AreaTies::Worst => 0.0,
                    AreaTies::Best => 1.0,
                    AreaTies::Line => ((low + high) / 2.0 - wrong) / passed,
                };
                sum += (high - low) * (right + share * gained);
            }
            wrong += passed;
            right += gained;
        }
        Some(self.scaled(sum / (relevant * irrelevant), percents))
    }

    /// Returns the area between two false-positive rates in percent, standardised if the convention says so: 0.5 for
    /// random scores, 1 for perfect ones (McClish 1989).
    pub(crate) fn scaled(self, area: f64, percents: (u32, u32)) -> f64 {
        if !self.standardised || percents == (0, 100) {
            return area;
        }
        let (from, to) = (f64::from(percents.0) / 100.0, f64::from(percents.1) / 100.0);
        let (random, perfect) = ((to * to - from * from) / 2.0, to - from);
        (1.0 + (area - random) / (perfect - random)) / 2.0
    }
}

/// Returns the area of one query. `labels` are in descending order of scores; `ends` are the end indices of the runs of
/// equal scores.
pub(crate) fn area(
    labels: &[f32],
    ends: &[u32],
    convention: &Convention,
    percents: (u32, u32),
) -> Option<f64> {
    let runs = spans(ends).map(|span| {
        let gained = convention.count_relevant(&labels[span.clone()]);
        (gained as f64, (span.len() - gained) as f64)
    });
    AreaRules::of(convention).area(&runs.collect::<Vec<_>>(), percents)
}
