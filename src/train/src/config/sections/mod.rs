//! The parameters that several learners share, by section. The parameters of a single learner are in `learners/`.

mod candidates;
mod costs;
mod learning_rate;
mod listwise;
mod monotone;
mod normalisation;
mod objective;
mod ranking;
mod shared;
mod trees;

pub(super) use candidates::{CANDIDATES, RawCandidates};
pub(super) use costs::COSTS;
pub(super) use learning_rate::LEARNING_RATE;
pub(super) use listwise::{LISTWISE, RawListwise};
pub(super) use monotone::MONOTONE;
pub(super) use normalisation::NORMALISATION;
pub(super) use objective::{OBJECTIVE, PAIRWISE, RELEVANCE, RawObjective};
pub(super) use ranking::{RANKING, RawRanking};
pub(super) use shared::{SHARED, blank_shared};
pub(super) use trees::{TREES, blank_tree};

pub(crate) use candidates::{Candidates, StreamingParameters};
pub(crate) use costs::CostParameters;
pub(crate) use listwise::{LeafOrder, ListwiseParameters};
pub(crate) use monotone::{Constraint, Direction, MonotoneConstraints};
pub(crate) use objective::{ObjectiveName, ObjectiveParameters, PairwiseLoss, PairwiseParameters};
pub(crate) use shared::MissingPolicy;
pub(crate) use trees::{FeatureCount, RowSampling, Sampling, TreeParameters};

use super::keys::Key;
use super::learners::{COST, FOREST, LEARNERS};
use super::raw::RawParameters;
use super::settings::TrainSettings;
use planetree_base::error::Result;
use std::sync::LazyLock;

/// Parameters that belong together: a learner uses all of them or none.
pub struct Section {
    /// The parameters.
    pub keys: &'static [Key],
    /// Whether they depend on the value of another parameter, such as the objective. Then `check` rejects them with a
    /// more precise message than that the learner does not use them.
    pub depends: bool,
    /// Rejects values that are incompatible with other parameters.
    pub check: fn(&TrainSettings, &mut RawParameters) -> Result<()>,
}

impl Section {
    /// A section without parameters and checks.
    pub const PLAIN: Section = Section { keys: &[], depends: false, check: |_, _| Ok(()) };

    /// Returns whether a list of sections contains this one.
    pub fn is_in(&'static self, sections: &[&'static Section]) -> bool {
        sections.iter().any(|section| std::ptr::eq(*section, self))
    }
}

/// All sections, in the order in which they are checked.
pub(super) static SECTIONS: LazyLock<Vec<&'static Section>> = LazyLock::new(|| {
    // Forests choose candidates and criteria, which the sections after them check.
    let mut all: Vec<&'static Section> = vec![&SHARED, &TREES, &COSTS];
    all.extend(FOREST.own);
    let shared: [&'static Section; 10] = [
        &LISTWISE,
        &CANDIDATES,
        &OBJECTIVE,
        &RELEVANCE,
        &PAIRWISE,
        &NORMALISATION,
        &RANKING,
        &COST,
        &LEARNING_RATE,
        &MONOTONE,
    ];
    all.extend(shared);
    for own in LEARNERS.iter().filter_map(|learner| learner.own) {
        if !own.is_in(&all) {
            all.push(own);
        }
    }
    all
});
