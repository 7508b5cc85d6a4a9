//! Scores that are whole multiples of one number, as long as nothing else is added to them. Sums of such scores are
//! exact, so that a row's gradient under the squared error moves by exactly what a tree says of it.

use crate::driver::Scores;
use crate::tree::Scale;
use planetree_data::source::Rows;

/// See the module.
pub struct WholeScores {
    /// Units of 1: no scale of a round has more, see [`crate::driver::GradientSummary::scale`].
    units: f64,
    holds: bool,
}

impl WholeScores {
    /// Looks whether all scores are such multiples.
    pub fn check(rows: &[Rows], scores: &Scores) -> Self {
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

    /// Whether they still are, if they never were above `farthest`.
    pub fn hold(&mut self, farthest: f64) -> bool {
        /// Sums up to here are exact.
        const MOST: f64 = (1u64 << 52) as f64;
        self.holds &= farthest * self.units <= MOST;
        self.holds
    }
}
