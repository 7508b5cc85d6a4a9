//! How linear models and nets normalise features.

use super::super::keys::Key;
use super::super::words::{NamedEnum, word};
use super::Section;
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
pub(crate) static NORMALISATION: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "normalise_features",
    aliases: &["normalize_features", "feature_normalisation"],
    kind: word!(normalisation),
    default: "none",
    help: "Linear models and nets: normalise features by query (minimum 0, maximum 1), over all training rows by z (mean 0, deviation 1) or minmax (minimum 0, maximum 1), or not at all",
    ..Key::PLAIN
}];
