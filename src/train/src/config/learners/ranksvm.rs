//! Support vector machines of document pairs: parameters and their keys.

use super::super::Parameters;
use super::super::keys::{Key, Reals};
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, Section};
use super::super::words::real;
use super::svm::{COST, NO_CLASSES, NO_VALIDATION, SVM};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal};
use planetree_model::model::FeatureNormalisation;

/// Parameters of ranking SVMs.
#[derive(Debug, Clone, PartialEq)]
pub struct RankSvmParameters {
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// Weight of the mean loss against half the squared weights. `None` if several numbers are tried.
    pub cost: Option<f64>,
    /// The search ends after a step that was predicted to lower the objective by at most this fraction.
    pub tolerance: f64,
}

/// Training parameters of a ranking SVM.
pub(crate) type RankSvmSettings = Parameters<RankSvmParameters>;

/// SVMs of pairs.
pub(super) static RANKSVM: LearnerSpec = LearnerSpec {
    name: "ranksvm",
    noun: "a ranking SVM",
    summary: "linear SVM of document pairs",
    own: Some(&SECTION),
    uses: &[&COST, &NORMALISATION],
    parameters,
    ..SVM
};

/// The parameters that only ranking SVMs use.
static SECTION: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "svm_tolerance",
    kind: real!(svm.tolerance, Reals { zero: false, most: 1.0 }),
    default: "0.0001",
    omits_default: true,
    help: "Ranking SVM: a search ends after a Newton step that was predicted to lower the objective by at most this fraction",
    ..Key::PLAIN
}];

fn parameters(raw: &RawParameters) -> LearnerParameters {
    LearnerParameters::RankSvm(RankSvmParameters {
        normalisation: raw.normalisation,
        cost: raw.svm.cost,
        tolerance: raw.svm.tolerance,
    })
}

impl LearnerConfig for RankSvmParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &RANKSVM
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.normalisation = self.normalisation;
        raw.svm.cost = self.cost;
        raw.svm.tolerance = self.tolerance;
    }

    fn needs_validation(&self) -> Option<Refusal> {
        self.cost.is_none().then_some(NO_VALIDATION)
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        Some(NO_CLASSES)
    }
}
