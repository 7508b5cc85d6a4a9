//! Checks whether all scores are integer multiples of one unit. Sums of such scores are exact, so with squared error,
//! a tree changes the gradient of each row by exactly the value that the tree predicts for the row.

use crate::driver::Scores;
use crate::tree::Scale;
use planetree_data::source::LabelledRows;

/// Tracks whether all scores are integer multiples of a unit.
pub(super) struct WholeScores {
    /// Number of units that represent a score of 1. No round uses more; see
    /// [`crate::driver::GradientSummary::scale`].
    units: f64,
    holds: bool,
}

impl WholeScores {
    /// Checks whether all scores are integer multiples of the unit.
    pub(super) fn check(rows: &[LabelledRows], scores: &Scores) -> Self {
        let labels = rows.iter().flat_map(|rows| &rows.labels);
        let farthest = labels.fold(0f32, |most, label| most.max(label.abs()));
        let units = Scale::most_units(f64::from(farthest));
        let is_whole = |score: &f64| (score * units).fract() == 0.0;
        WholeScores {
            units,
            holds: farthest > 0.0
                && (0..rows.len()).all(|partition| scores.partition(partition).iter().all(is_whole)),
        }
    }

    /// Returns whether scores are still integer multiples, provided that no label or score has exceeded `farthest` in
    /// magnitude.
    pub(super) fn hold(&mut self, farthest: f64) -> bool {
        /// Maximum number of units up to which sums are exact.
        const MOST: f64 = (1u64 << 52) as f64;
        self.holds &= farthest * self.units <= MOST;
        self.holds
    }
}
