//! Support vector machines, which are linear models with hinge losses: of single documents, or of pairs.

use super::super::keys::{Key, KeyKind, Reals, Written};
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, RELEVANCE, Section};
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::{LearnerParameters, LearnerSpec, LinearLoss, LinearParameters, LinearPenalty};
use planetree_base::error::Result;

/// The values of `svm_c` that are tried if it is not given, one per round.
pub(crate) const SVM_COSTS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];

/// SVMs of single documents.
pub(super) static SVM: LearnerSpec = LearnerSpec {
    name: "svm",
    aliases: &[],
    noun: "an SVM",
    summary: "linear SVM of relevance",
    own: Some(&SECTION),
    uses: &[&RELEVANCE, &NORMALISATION],
    records: &[],
    objectives: &[],
    no_custom_objective: Some("linear models have objectives of their own"),
    replaces_rounds: true,
    parameters: |raw| of_loss(LinearLoss::Hinge { relevant_from: raw.objective.relevant_from }, raw),
};

/// SVMs of pairs.
pub(super) static RANKSVM: LearnerSpec = LearnerSpec {
    name: "ranksvm",
    noun: "a ranking SVM",
    summary: "linear SVM of document pairs",
    uses: &[&NORMALISATION],
    parameters: |raw| of_loss(LinearLoss::RankHinge, raw),
    ..SVM
};

/// The parameters that only SVMs use.
static SECTION: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "svm_c",
    kind: KeyKind::Custom {
        expected: |_| "auto, or a number above 0, at most 1000000000000",
        set: set_cost,
        get: |raw| raw.svm_c.map_or("\"auto\"".to_owned(), |cost| format!("{cost:?}")),
    },
    default: "auto",
    help: "SVMs: weight of the mean loss against half the squared weights; auto tries 0.01 to 100, one value per round, and keeps the best by the first metric on the first validation set",
    ..Key::PLAIN
}];

fn set_cost(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    const RANGE: Reals = Reals { zero: false, most: 1e12 };
    raw.svm_c = match written.text {
        text if text.eq_ignore_ascii_case("auto") => None,
        text => Some(text.parse().ok().filter(|cost| RANGE.contains(*cost)).ok_or(None)?),
    };
    Ok(())
}

/// Fits the number of rounds to the number of values that are tried.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.learner != &SVM && raw.learner != &RANKSVM {
        return Ok(());
    }
    let values = if raw.svm_c.is_some() { 1 } else { SVM_COSTS.len() as u32 };
    if !settings.is_chosen("num_trees") {
        raw.shared.num_trees = values;
    }
    if !settings.is_chosen("early_stopping_rounds") {
        raw.shared.early_stopping_rounds = raw.svm_c.is_none().then_some(values);
    }
    if raw.svm_c.is_none() && raw.shared.early_stopping_rounds.is_none() {
        return Err(settings.fault(
            "early_stopping_rounds",
            "svm_c=auto keeps the best of its rounds",
            "remove it, or set svm_c=1, for example",
        ));
    }
    Ok(())
}

fn of_loss(loss: LinearLoss, raw: &RawParameters) -> LearnerParameters {
    let penalty = LinearPenalty::Cost(raw.svm_c);
    LearnerParameters::Linear(LinearParameters { loss, normalisation: raw.normalisation, penalty })
}
