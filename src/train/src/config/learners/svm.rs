//! Support vector machines of single documents, which are linear models with a hinge loss, and the parameters that they
//! share with those of pairs.

use super::super::keys::{Key, KeyKind, Reals, Written};
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, RELEVANCE, Section};
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::super::words::real;
use super::{LearnerParameters, LearnerSpec, LinearLoss, LinearParameters, LinearPenalty, Refusal, ranksvm};
use planetree_base::error::Result;

/// Parameters of SVMs, before validation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawSvm {
    /// Weight of the loss; `None` to search it.
    pub cost: Option<f64>,
    /// Number of nonrelevant documents per relevant one; 0 uses all of them.
    pub undersample: f64,
    /// Ranking SVMs: reduction of the objective, relative to it, below which the search ends.
    pub tolerance: f64,
}

/// The values of `svm_c` that are tried if it is not given, one per round.
const COSTS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];

/// Returns the values of `svm_c` that are tried, one per round.
pub(crate) fn svm_costs(given: Option<f64>) -> Vec<f64> {
    given.map_or_else(|| COSTS.to_vec(), |cost| vec![cost])
}

/// SVMs of single documents.
pub(super) static SVM: LearnerSpec = LearnerSpec {
    name: "svm",
    aliases: &[],
    noun: "an SVM",
    summary: "linear SVM of relevance",
    own: Some(&SECTION),
    uses: &[&COST, &RELEVANCE, &NORMALISATION],
    records: &[],
    omits: &[],
    objectives: &[],
    no_custom_objective: Some("linear models have objectives of their own"),
    replaces_rounds: true,
    parameters,
};

/// The parameters of SVMs of single documents and of pairs.
pub(crate) static COST: Section = Section { keys: COST_KEYS, check, ..Section::PLAIN };

static COST_KEYS: &[Key] = &[Key {
    name: "svm_c",
    kind: KeyKind::Custom {
        expected: |_| "auto, or a number above 0, at most 1000000000000",
        set: set_cost,
        get: |raw| raw.svm.cost.map_or("\"auto\"".to_owned(), |cost| format!("{cost:?}")),
    },
    default: "auto",
    help: "SVMs: weight of the mean loss against half the squared weights; auto tries 0.01 to 100, one value per round, and keeps the best by the first metric on the first validation set",
    ..Key::PLAIN
}];

/// The parameters that only SVMs of single documents use.
static SECTION: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "undersample",
    kind: real!(svm.undersample, Reals { zero: true, most: 1e6 }),
    default: "0.0",
    omits_default: true,
    help: "SVM of relevance: nonrelevant documents per relevant one, drawn at random (seed); 0 uses all of them",
    ..Key::PLAIN
}];

/// Why an SVM with `svm_c=auto` cannot be trained without a validation set.
pub(super) const NO_VALIDATION: Refusal = Refusal {
    problem: "svm_c = auto: there is no validation set to choose it on",
    remedy: "add one with --valid, or set svm_c=1, for example",
};

/// Why an SVM cannot learn classes.
pub(super) const NO_CLASSES: Refusal =
    Refusal { problem: "classes are learned by squared error on 0 and 1", remedy: "set ensemble=linear" };

fn set_cost(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    const RANGE: Reals = Reals { zero: false, most: 1e12 };
    raw.svm.cost = match written.text {
        text if text.eq_ignore_ascii_case("auto") => None,
        text => Some(text.parse().ok().filter(|cost| RANGE.contains(*cost)).ok_or(None)?),
    };
    Ok(())
}

/// Fits the number of rounds to the number of values that are tried.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.learner != &SVM && raw.learner != &ranksvm::RANKSVM {
        return Ok(());
    }
    let values = svm_costs(raw.svm.cost).len() as u32;
    if !settings.is_chosen("num_trees") {
        raw.shared.num_trees = values;
    }
    if !settings.is_chosen("early_stopping_rounds") {
        raw.shared.early_stopping_rounds = raw.svm.cost.is_none().then_some(values);
    }
    if raw.svm.cost.is_none() && raw.shared.early_stopping_rounds.is_none() {
        return Err(settings.fault(
            "early_stopping_rounds",
            "svm_c=auto keeps the best of its rounds",
            "remove it, or set svm_c=1, for example",
        ));
    }
    Ok(())
}

fn parameters(raw: &RawParameters) -> LearnerParameters {
    let undersample = Some(raw.svm.undersample).filter(|per_relevant| *per_relevant > 0.0);
    LearnerParameters::Linear(LinearParameters {
        loss: LinearLoss::Hinge { relevant_from: raw.objective.relevant_from, undersample },
        normalisation: raw.normalisation,
        penalty: LinearPenalty::Cost(raw.svm.cost),
    })
}
