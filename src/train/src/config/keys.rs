//! What a parameter is: its names, range, default and help. Parsing, validation, printing and `train --help` all use
//! these. The parameters themselves are listed in `sections/` and `learners/`.

use super::foreign::foreign_answer;
use super::plan_keys::PlanKey;
use super::raw::RawParameters;
use super::sections::{SECTIONS, Section};
use super::value::ValueError;
use planetree_metric::Metric;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// A parameter of the user interface.
pub struct Key {
    /// Canonical name, used when printing.
    pub name: &'static str,
    /// Other names, such as LightGBM's, XGBoost's and scikit-learn's.
    pub aliases: &'static [&'static str],
    /// Type and range of the values, with accessors.
    pub kind: KeyKind,
    /// The default value, as a user would write it.
    pub default: &'static str,
    /// The value that learners which do not use the parameter record; `None` if it is the default.
    pub neutral: Option<&'static str>,
    /// Whether configurations leave out the default value. It is set for parameters that earlier versions did not have,
    /// so that the configuration of a training that does not use them keeps its text.
    pub omits_default: bool,
    /// Whether configurations may give the value as a table of names and values.
    pub accepts_table: bool,
    /// One line of help.
    pub help: &'static str,
}

/// Type and range of a parameter's values, with accessors. Numbers are range-checked before `set` is called.
pub enum KeyKind {
    /// An integer.
    Whole { range: RangeInclusive<u64>, set: fn(&mut RawParameters, u64), get: fn(&RawParameters) -> u64 },
    /// An integer, or 0 or -1 for no limit.
    Limit {
        range: RangeInclusive<u32>,
        set: fn(&mut RawParameters, Option<u32>),
        get: fn(&RawParameters) -> Option<u32>,
    },
    /// A number.
    Real { range: Reals, set: fn(&mut RawParameters, f64), get: fn(&RawParameters) -> f64 },
    /// A word from a fixed list; `set` returns whether the word is valid.
    Word {
        words: fn() -> Vec<&'static str>,
        set: fn(&mut RawParameters, &str) -> bool,
        get: fn(&RawParameters) -> &'static str,
    },
    /// A metric.
    Metric { set: fn(&mut RawParameters, Metric), get: fn(&RawParameters) -> Metric },
    /// A boolean.
    Flag { set: fn(&mut RawParameters, bool), get: fn(&RawParameters) -> bool },
    /// A value with a syntax of its own.
    Custom {
        /// Describes the valid values, given the name or alias that was used.
        expected: fn(&str) -> &'static str,
        /// Parses a value. The error `None` stands for a value that is not as `expected`.
        set: fn(&mut RawParameters, Written<'_>) -> Result<(), Option<ValueError>>,
        /// Formats the value as TOML.
        get: fn(&RawParameters) -> String,
    },
    /// The learner.
    Learner,
    /// A shorthand for two other parameters, into which it is expanded when read.
    QueryFraction,
    /// A key of other tools that is not a parameter of planetree. It is accepted only with values that match
    /// planetree's fixed behaviour.
    Agreed { values: &'static [&'static str], does: &'static str },
}

/// A value as it was written.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    /// The name or alias of the parameter that was used.
    pub name: &'a str,
    /// The value.
    pub text: &'a str,
}

/// Numbers from 0 up to and including `most`.
pub struct Reals {
    /// Whether 0 is included.
    pub zero: bool,
    /// The maximum; infinity for no upper bound.
    pub most: f64,
}

/// Fractions of a whole.
pub(super) const SHARE: Reals = Reals { zero: false, most: 1.0 };
/// All numbers from 0.
pub(super) const NOT_NEGATIVE: Reals = Reals { zero: true, most: f64::INFINITY };

/// The order in which configurations list the parameters. Those that are not listed here follow, in the order of their
/// sections.
const PRINTED: [&str; 52] = [
    "ensemble",
    "objective",
    "lambda_metric",
    "truncation_level",
    "sigma",
    "lambda_norm",
    "margin",
    "label_gain",
    "relevant_from",
    "unbiased",
    "bias_norm",
    "base_score",
    "candidates",
    "criterion",
    "redraw_features",
    "leaf_score",
    "listwise_metric",
    "queries_per_node",
    "listwise_levels",
    "leaf_order",
    "listwise_discount",
    "listwise_truncation",
    "pairs_per_document",
    "num_trees",
    "learning_rate",
    "max_depth",
    "num_leaves",
    "min_data_in_leaf",
    "min_data_to_split",
    "min_gain",
    "split_by",
    "leaf",
    "lambda_l2",
    "normalise_features",
    "min_sum_hessian",
    "max_bin",
    "value_groups",
    "workers",
    "bagging_fraction",
    "bagging_by",
    "bagging_per",
    "queries_per_tree",
    "bootstrap",
    "feature_fraction",
    "features_per_node",
    "missing",
    "seed",
    "early_stopping_rounds",
    "tree_strength",
    "metric",
    "convention",
    "label_map",
];

/// Returns whether a name is that of a parameter or of a key of training plans, or an alias.
pub fn is_parameter(name: &str) -> bool {
    Key::named(name).is_some() || PlanKey::named(name).is_some() || foreign_answer(name).is_some()
}

/// Returns whether a parameter says what is optimised.
pub fn chooses_objective(name: &str) -> bool {
    let chooses = ["objective", "ensemble", "criterion", "target"];
    let canonical = Key::named(name).map_or(name, |key| key.name);
    chooses.contains(&canonical)
}

/// A parameter and its section.
#[derive(Clone, Copy)]
pub(super) struct SectionKey {
    pub key: &'static Key,
    pub section: &'static Section,
}

static KEYS: LazyLock<Vec<SectionKey>> = LazyLock::new(|| {
    let all = SECTIONS.iter().flat_map(|section| section.keys.iter().map(|key| SectionKey { key, section }));
    let mut all: Vec<SectionKey> = all.collect();
    let place = |name: &str| PRINTED.iter().position(|printed| *printed == name).unwrap_or(PRINTED.len());
    all.sort_by_key(|entry| place(entry.key.name));
    all
});

/// Returns all parameters with their sections, in the order in which they are printed.
pub(super) fn section_keys() -> impl Iterator<Item = SectionKey> {
    KEYS.iter().copied()
}

/// Returns all parameters, in the order in which they are printed.
pub(super) fn keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().map(|entry| entry.key)
}

impl Key {
    /// The fields that most parameters share.
    pub const PLAIN: Key = Key {
        name: "",
        aliases: &[],
        kind: KeyKind::QueryFraction,
        default: "",
        neutral: None,
        omits_default: false,
        accepts_table: false,
        help: "",
    };

    /// Returns all names, the canonical name first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns all names, separated by commas.
    pub fn names_listed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// Finds a parameter by name or alias.
    pub fn named(name: &str) -> Option<&'static Key> {
        keys().find(|key| key.names().any(|known| known == name))
    }

    /// Resets the parameter to its default.
    pub fn reset(&'static self, raw: &mut RawParameters) {
        let _ = self.read(self.name, self.default, raw); // cannot fail: a test checks all defaults
    }

    /// Sets the parameter to the value that learners which do not use it record.
    pub fn neutralise(&'static self, raw: &mut RawParameters) {
        let _ = self.read(self.name, self.neutral.unwrap_or(self.default), raw); // a test checks all values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_name_means_one_parameter() {
        let mut seen = HashSet::new();
        for key in keys() {
            for name in key.names() {
                assert!(seen.insert(name), "{name}");
                assert_eq!(Key::named(name).map(|key| key.name), Some(key.name));
            }
        }
        for name in PRINTED {
            assert_eq!(Key::named(name).map(|key| key.name), Some(name));
        }
    }

    #[test]
    fn defaults_and_neutral_values_are_valid() {
        let mut raw = RawParameters::default();
        for key in keys().filter(|key| !key.default.is_empty()) {
            for value in [Some(key.default), key.neutral].into_iter().flatten() {
                assert!(key.read(key.name, value, &mut raw).is_ok(), "{}", key.name);
            }
        }
    }
}
