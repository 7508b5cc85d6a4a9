//! Which cuts of a node are allowed, and where they are placed between two codes.

use crate::bins::{FeatureBins, MissingSides, middle};
use crate::config::{Constraint, ForestCandidates, ForestSettings};

/// Constraints on cuts.
#[derive(Debug, Clone)]
pub(super) struct CutRules {
    /// Minimum number of rows of each child.
    pub min_rows: u32,
    /// Minimum number of rows of a node that is split.
    pub min_to_split: u32,
    /// The gain of a cut must be above this number, which is in units of the criterion.
    pub min_gain: f64,
    /// The sides that missing values may be on.
    pub missing: MissingSides,
    /// How candidate cuts are generated.
    pub candidates: ForestCandidates,
    /// Whether each code represents a single value of the feature.
    pub every_value: bool,
    /// Whether features have penalties, so that the best cut is not necessarily that with the highest score.
    pub priced: bool,
    /// The monotone constraint of each feature; empty if no feature is constrained.
    pub monotone: Vec<Constraint>,
}

impl CutRules {
    /// Derives the rules from training parameters. `unit` is the factor that converts scores of the criterion to
    /// gains.
    pub(super) fn of(parameters: &ForestSettings, unit: f64) -> Self {
        CutRules {
            min_rows: u32::try_from(parameters.learner.tree.min_data_in_leaf).unwrap_or(u32::MAX).max(1),
            min_to_split: u32::try_from(parameters.learner.tree.min_data_to_split).unwrap_or(u32::MAX).max(2),
            min_gain: parameters.learner.tree.min_gain / unit,
            missing: MissingSides::of(parameters.missing),
            candidates: parameters.learner.candidates,
            every_value: parameters.learner.candidates.max_bin().is_none(),
            priced: false,
            monotone: parameters.learner.tree.monotone.in_order().unwrap_or_default().to_vec(),
        }
    }

    /// Returns the monotone constraint of a feature.
    pub(super) fn constraint(&self, feature: u32) -> Constraint {
        self.monotone.get(feature as usize).copied().flatten()
    }

    /// Returns whether each feature has one random cut.
    pub(super) fn is_random(&self) -> bool {
        matches!(self.candidates, ForestCandidates::Random { .. })
    }

    /// Returns whether a node with this many rows may be split.
    pub(super) fn may_split(&self, rows: u32) -> bool {
        rows >= self.min_rows.saturating_mul(2).max(self.min_to_split)
    }

    /// Returns the code and threshold of a cut between one of the node's codes and the next code that occurs in the
    /// node. The threshold is the midpoint between the two codes or, unless each code represents a single value, a
    /// bin boundary near the midpoint.
    pub(super) fn place<S>(&self, bins: &FeatureBins, values: &[(u32, S)], place: usize) -> (u32, f32) {
        let below = values[place].0;
        let Some((above, _)) = values.get(place + 1) else {
            return (bins.bins() as u32 - 1, f32::MAX); // the other side has only missing values
        };
        let (code, threshold) = between(bins, below, *above);
        (code, if self.every_value { threshold } else { bins.cuts[code as usize] })
    }

    /// Returns the code and threshold of a random cut between two codes.
    pub(super) fn place_at_random(
        &self,
        bins: &FeatureBins,
        (first, last): (u32, u32),
        draw: f64,
    ) -> (u32, f32) {
        let (least, most) = (bins.centres[first as usize], bins.centres[last as usize]);
        let at = (f64::from(least) + draw * (f64::from(most) - f64::from(least))) as f32;
        let code = bins.code_up_to(at).clamp(first, last - 1);
        let is_between = bins.centres[code as usize] <= at && at < bins.centres[code as usize + 1];
        (code, if self.every_value && is_between { at } else { bins.cuts[code as usize] })
    }
}

/// Returns a cut between two codes that are adjacent in a node: the last code below the midpoint of the two codes'
/// values, and the midpoint. Rows outside the node may have codes in between; the midpoint determines their side.
pub(super) fn between(bins: &FeatureBins, below: u32, above: u32) -> (u32, f32) {
    let threshold = middle(bins.centres[below as usize], bins.centres[above as usize]);
    (bins.code_up_to(threshold).clamp(below, above - 1), threshold)
}
