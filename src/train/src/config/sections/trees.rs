//! Parameters for growing trees, and the sampling of rows and features.

use super::super::keys::{Key, KeyKind, NOT_NEGATIVE, SHARE, Written};
use super::super::learners::FOREST;
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::super::words::{NamedEnum, real, word};
use super::{Candidates, CostParameters, MonotoneConstraints, Section};
use planetree_base::error::Result;
use planetree_model::model::FeatureNormalisation;

/// What is sampled for each tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Single rows.
    Rows,
    /// Queries with all their rows.
    Queries,
}

impl NamedEnum for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[("rows", Sampling::Rows), ("queries", Sampling::Queries)];
}

/// Number of features sampled for each node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeatureCount {
    /// All features.
    All,
    /// A fixed number.
    Count(usize),
    /// A fraction of all features.
    Fraction(f64),
    /// log2 of the number of features, plus 1.
    Log2,
}

impl FeatureCount {
    /// Returns how many of `features` features are sampled, which is at least 1 and at most all.
    pub fn of(self, features: usize) -> usize {
        let count = match self {
            FeatureCount::All => features,
            FeatureCount::Count(count) => count,
            FeatureCount::Fraction(fraction) => (fraction * features as f64).round() as usize,
            FeatureCount::Log2 => features.checked_ilog2().map_or(0, |log| log as usize) + 1,
        };
        count.clamp(1, features.max(1))
    }
}

/// How rows or queries are sampled for each tree. Sampling is without replacement, except in forests with `bootstrap`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSampling {
    /// Fraction of rows or queries sampled for each tree.
    pub fraction: f64,
    /// Whether rows or whole queries are sampled.
    pub unit: Sampling,
    /// Number of queries sampled for each tree; `None` if `fraction` applies.
    pub queries: Option<u32>,
    /// Whether all trees of a boosted part have the same sample.
    pub per_run: bool,
}

impl RowSampling {
    /// Returns whether some rows are left out of each tree.
    pub fn leaves_out(&self) -> bool {
        self.fraction < 1.0 || self.queries.is_some()
    }
}

/// Parameters for growing a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeParameters {
    /// Maximum depth of a tree; `None` for no limit.
    pub max_depth: Option<u32>,
    /// Minimum rows per leaf.
    pub min_data_in_leaf: u64,
    /// Minimum rows that a node needs to be split.
    pub min_data_to_split: u64,
    /// Minimum gain of a split.
    pub min_gain: f64,
    /// Fraction of features sampled for each tree.
    pub feature_fraction: f64,
    /// Number of features sampled for each node from the features of its tree. A fraction is of all features.
    pub features_per_node: FeatureCount,
    /// How rows are sampled for each tree.
    pub sampling: RowSampling,
    /// How much the costs of features count, if there are any.
    pub costs: CostParameters,
    /// How features are normalised before trees are trained. Only normalisation by query changes the trees.
    pub normalisation: FeatureNormalisation,
    /// Monotone constraints of features.
    pub monotone: MonotoneConstraints,
}

impl TreeParameters {
    /// Returns how features are normalised when trees are trained and scored. Normalisation over all training rows keeps
    /// the order of the values, so that trees on the values as they are have the same splits.
    pub(crate) fn applied_normalisation(&self) -> FeatureNormalisation {
        match self.normalisation {
            FeatureNormalisation::Query => FeatureNormalisation::Query,
            FeatureNormalisation::None | FeatureNormalisation::Z | FeatureNormalisation::Minmax => {
                FeatureNormalisation::None
            }
        }
    }

    /// Returns whether trees depend on random numbers.
    pub(in super::super) fn draws(&self) -> bool {
        self.sampling.leaves_out()
            || self.feature_fraction < 1.0
            || self.features_per_node != FeatureCount::All
    }
}

impl RawParameters {
    /// Returns the parameters for growing a tree.
    pub(in super::super) fn of_tree(&self) -> TreeParameters {
        TreeParameters { normalisation: self.normalisation, ..self.tree.clone() }
    }

    /// Sets the parameters for growing a tree.
    pub(in super::super) fn set_tree(&mut self, tree: &TreeParameters) {
        self.tree = tree.clone();
        self.normalisation = tree.normalisation;
    }
}

/// Returns placeholder values, all of which are overwritten from the table of parameters.
pub(crate) fn blank_tree() -> TreeParameters {
    TreeParameters {
        max_depth: None,
        min_data_in_leaf: 0,
        min_data_to_split: 0,
        min_gain: 0.0,
        feature_fraction: 0.0,
        features_per_node: FeatureCount::All,
        sampling: RowSampling { fraction: 0.0, unit: Sampling::Rows, queries: None, per_run: false },
        costs: CostParameters::default(),
        normalisation: FeatureNormalisation::None,
        monotone: MonotoneConstraints::None,
    }
}

/// Parameters for growing trees.
pub(crate) static TREES: Section = Section { keys: KEYS, check, ..Section::PLAIN };

/// Aliases of `features_per_node` for which every number is a fraction, even an integer.
const ALWAYS_FRACTIONS: [&str; 2] = ["colsample_bynode", "feature_fraction_bynode"];

static KEYS: &[Key] = &[
    Key {
        name: "max_depth",
        aliases: &["depth"],
        kind: KeyKind::Limit {
            range: 1..=64,
            set: |raw, value| raw.tree.max_depth = value,
            get: |raw| raw.tree.max_depth,
        },
        default: "5",
        help: "Maximum depth of a tree: splits on the way to a leaf",
        ..Key::PLAIN
    },
    Key {
        name: "min_data_in_leaf",
        aliases: &["min_data", "min_child_samples", "min_samples_leaf", "min_examples"],
        kind: KeyKind::Whole {
            range: 0..=i64::MAX as u64,
            // Every leaf has at least one row, so 0 means 1.
            set: |raw, value| raw.tree.min_data_in_leaf = value.max(1),
            get: |raw| raw.tree.min_data_in_leaf,
        },
        default: "20",
        neutral: Some("1"),
        help: "Minimum rows per leaf",
        ..Key::PLAIN
    },
    Key {
        name: "min_data_to_split",
        aliases: &["min_samples_split", "min_rows"],
        kind: KeyKind::Whole {
            range: 0..=i64::MAX as u64,
            // A split has at least one row on either side, so less than 2 means 2.
            set: |raw, value| raw.tree.min_data_to_split = value.max(2),
            get: |raw| raw.tree.min_data_to_split,
        },
        default: "2",
        omits_default: true,
        help: "Minimum rows that a node needs to be split",
        ..Key::PLAIN
    },
    Key {
        name: "min_gain",
        aliases: &["min_gain_to_split", "min_split_gain", "gamma", "min_split_loss"],
        kind: real!(tree.min_gain, NOT_NEGATIVE),
        default: "0.0",
        help: "Minimum gain of a split",
        ..Key::PLAIN
    },
    Key {
        name: "bagging_fraction",
        aliases: &["subsample", "bagging", "sub_row", "row_fraction"],
        kind: real!(tree.sampling.fraction, SHARE),
        default: "1.0",
        help: "Fraction of rows or queries sampled for each tree",
        ..Key::PLAIN
    },
    Key {
        name: "bagging_by",
        aliases: &["sampling"],
        kind: word!(tree.sampling.unit),
        default: "rows",
        help: "Unit of sampling: single rows, or queries with all their rows",
        ..Key::PLAIN
    },
    Key {
        name: "queries_per_tree",
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |raw, value| raw.tree.sampling.queries = value,
            get: |raw| raw.tree.sampling.queries,
        },
        default: "0",
        help: "Number of queries sampled for each tree, instead of a fraction",
        ..Key::PLAIN
    },
    Key {
        name: "query_fraction",
        kind: KeyKind::QueryFraction,
        default: "",
        help: "Shorthand for bagging_fraction with bagging_by=queries",
        ..Key::PLAIN
    },
    Key {
        name: "feature_fraction",
        aliases: &["colsample_bytree", "sub_feature"],
        kind: real!(tree.feature_fraction, SHARE),
        default: "1.0",
        help: "Fraction of features sampled for each tree",
        ..Key::PLAIN
    },
    Key {
        name: "features_per_node",
        aliases: &["max_features", ALWAYS_FRACTIONS[0], ALWAYS_FRACTIONS[1]],
        kind: KeyKind::Custom {
            expected: |name| match ALWAYS_FRACTIONS.contains(&name) {
                true => "a fraction above 0, at most 1, or log2 or all",
                false => "a count such as 10, a fraction with a decimal point such as 0.1, log2 or all",
            },
            set: set_features,
            get: |raw| match raw.tree.features_per_node {
                FeatureCount::All => "\"all\"".to_owned(),
                FeatureCount::Log2 => "\"log2\"".to_owned(),
                FeatureCount::Count(count) => count.to_string(),
                FeatureCount::Fraction(fraction) => format!("{fraction:?}"),
            },
        },
        default: "all",
        help: "Number of features sampled for each node from those of its tree; a fraction is of all features",
        ..Key::PLAIN
    },
];

fn set_features(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    raw.tree.features_per_node = feature_count(written).ok_or(None)?;
    Ok(())
}

fn feature_count(Written { name, text }: Written<'_>) -> Option<FeatureCount> {
    if text.eq_ignore_ascii_case("all") {
        return Some(FeatureCount::All);
    }
    if text.eq_ignore_ascii_case("log2") {
        return Some(FeatureCount::Log2);
    }
    // The decimal point decides: 1 means one feature, 1.0 means all features.
    if ALWAYS_FRACTIONS.contains(&name) || text.contains(['.', 'e', 'E']) {
        let fraction = text.parse().ok()?;
        SHARE.contains(fraction).then_some(FeatureCount::Fraction(fraction))
    } else {
        let count: u32 = text.parse().ok()?;
        (count > 0).then_some(FeatureCount::Count(count as usize))
    }
}

/// Rejects candidates that the learner does not have, and conflicting ways to sample rows.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    let unfit = if raw.learner == &FOREST { Candidates::Streaming } else { Candidates::Random };
    if raw.candidates.kind == unfit {
        if settings.is_chosen("candidates") || !settings.is_chosen("ensemble") {
            return Err(settings.fault(
                "candidates",
                &format!("{} does not support {} candidates", raw.learner.noun, unfit.name()),
                "set candidates=static or candidates=exact",
            ));
        }
        raw.candidates.kind = Candidates::Static;
    }
    let is_preset = raw.candidates.kind != Candidates::Random && !settings.is_chosen("max_bin");
    if raw.candidates.max_bin == 0 && is_preset {
        Key::named("max_bin").iter().for_each(|key| key.reset(raw));
    }
    if raw.tree.sampling.queries.is_some() {
        if settings.is_chosen("bagging_by") && raw.tree.sampling.unit == Sampling::Rows {
            return Err(settings.fault(
                "bagging_by",
                "conflicts with queries_per_tree",
                "remove one of them",
            ));
        }
        let both = settings.is_chosen("queries_per_tree") && settings.is_chosen("bagging_fraction");
        if both && raw.tree.sampling.fraction < 1.0 {
            return Err(settings.fault(
                "queries_per_tree",
                "conflicts with bagging_fraction or query_fraction",
                "set a number of queries or a fraction, not both",
            ));
        }
        raw.tree.sampling.unit = Sampling::Queries;
        raw.tree.sampling.fraction = 1.0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_aliases_of_a_parameter() {
        for name in ALWAYS_FRACTIONS {
            assert_eq!(Key::named(name).unwrap().name, "features_per_node");
        }
    }
}
