//! Scores that are integer multiples of one unit. Sums of such scores are exact, so that under squared error a tree
//! moves the gradient of a row by exactly its prediction.

use crate::driver::Scores;
use crate::tree::Scale;
use planetree_data::source::LabelledRows;

/// Tracks whether all scores are integer multiples of a unit.
pub struct WholeScores {
    /// Units per 1: the maximum over all rounds, see [`crate::driver::GradientSummary::scale`].
    units: f64,
    holds: bool,
}

impl WholeScores {
    /// Checks whether all scores are such multiples.
    pub fn check(rows: &[LabelledRows], scores: &Scores) -> Self {
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

    /// Whether they still are, if no magnitude exceeded `farthest`.
    pub fn hold(&mut self, farthest: f64) -> bool {
        /// Sums up to this are exact.
        const MOST: f64 = (1u64 << 52) as f64;
        self.holds &= farthest * self.units <= MOST;
        self.holds
    }
}
