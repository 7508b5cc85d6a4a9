//! How features are normalised.

use super::super::keys::Key;
use super::super::learners::{BOOST, BaseScore, FOREST};
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::words::{NamedEnum, word};
use super::{MissingPolicy, Section};
use planetree_base::error::Result;
use planetree_model::model::FeatureNormalisation;

impl NamedEnum for FeatureNormalisation {
    const ALL: &'static [(&'static str, Self)] = &[
        ("query", FeatureNormalisation::Query),
        ("z", FeatureNormalisation::Z),
        ("minmax", FeatureNormalisation::Minmax),
        ("none", FeatureNormalisation::None),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[("zscore", FeatureNormalisation::Z)];
}

/// The normalisation of features.
pub(crate) static NORMALISATION: Section = Section { keys: KEYS, check, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "normalise_features",
    aliases: &["normalize_features", "feature_normalisation"],
    kind: word!(normalisation),
    default: "none",
    help: "Normalise features by query (minimum 0, maximum 1), over all training rows by z (mean 0, deviation 1) or minmax (minimum 0, maximum 1), or not at all; trees are the same with z, minmax and none",
    ..Key::PLAIN
}];

/// Rejects what trees on normalised features cannot do. A preset of another learner does not normalise the features of
/// trees.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.learner != &BOOST && raw.learner != &FOREST {
        return Ok(());
    }
    if !settings.is_chosen("normalise_features") && settings.is_chosen("ensemble") {
        raw.normalisation = FeatureNormalisation::None;
    }
    let adds_feature = raw.learner == &BOOST && matches!(raw.boost.base_score, BaseScore::Feature(_));
    let is_mean = matches!(raw.shared.missing, MissingPolicy::Mean | MissingPolicy::Median);
    let (problem, remedy) = match raw.normalisation {
        FeatureNormalisation::Query if is_mean => (
            format!(
                "missing={}: trees on features normalised by query cannot replace missing values by those of other rows",
                raw.shared.missing.name()
            ),
            "set missing to zero, one, learned, low, high or branch",
        ),
        FeatureNormalisation::Z | FeatureNormalisation::Minmax if adds_feature => (
            format!(
                "base_score is a feature, which normalise_features={} would not change: it applies to splits only",
                raw.normalisation.name()
            ),
            "set normalise_features=none or query, or remove base_score",
        ),
        _ => return Ok(()),
    };
    Err(settings.fault("normalise_features", &problem, remedy))
}
