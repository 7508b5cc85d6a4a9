//! Lists all parameters with their types, for interfaces other than the command line.

use super::keys::{KeyKind, keys};
use super::learners::LEARNERS;
use super::plan_keys::PLAN_KEYS;

/// A parameter as other interfaces see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedParameter {
    /// Canonical name.
    pub name: &'static str,
    /// Other names, such as LightGBM's, XGBoost's and scikit-learn's.
    pub aliases: &'static [&'static str],
    /// Type of the values.
    pub kind: ListedKind,
    /// The default value, as a user would write it.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// Type of a parameter's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedKind {
    /// Integers.
    Whole,
    /// Numbers.
    Real,
    /// `true` or `false`.
    Flag,
    /// A word from a list.
    Word(Vec<&'static str>),
    /// A value with a syntax of its own.
    Text,
    /// Integers in the order of the features, or by name.
    Table,
}

/// Returns all parameters of a training, in the order in which they are printed. Keys of other tools that are accepted
/// only with planetree's fixed behaviour are not listed.
pub fn listed_parameters() -> Vec<ListedParameter> {
    let of_stages = keys().filter_map(|key| {
        let kind = match &key.kind {
            KeyKind::Whole { .. } | KeyKind::Limit { .. } => ListedKind::Whole,
            KeyKind::Real { .. } | KeyKind::QueryFraction => ListedKind::Real,
            KeyKind::Flag { .. } => ListedKind::Flag,
            KeyKind::Word { words, .. } => ListedKind::Word(words()),
            KeyKind::Learner => ListedKind::Word(LEARNERS.iter().map(|learner| learner.name).collect()),
            KeyKind::Custom { .. } if key.accepts_table => ListedKind::Table,
            KeyKind::Metric { .. } | KeyKind::Custom { .. } => ListedKind::Text,
            KeyKind::Agreed { .. } => return None,
        };
        let (name, aliases, default, help) = (key.name, key.aliases, key.default, key.help);
        Some(ListedParameter { name, aliases, kind, default, help })
    });
    let of_plan = PLAN_KEYS.iter().map(|key| {
        let (name, default, help) = (key.name, key.default, key.help);
        ListedParameter { name, aliases: &[], kind: ListedKind::Text, default, help }
    });
    of_stages.chain(of_plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_listed_once_with_its_type() {
        let all = listed_parameters();
        let kind = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.kind.clone());
        assert_eq!(kind("num_trees"), Some(ListedKind::Whole));
        assert_eq!(kind("learning_rate"), Some(ListedKind::Real));
        assert_eq!(kind("bootstrap"), Some(ListedKind::Flag));
        assert_eq!(kind("metric"), Some(ListedKind::Text));
        assert_eq!(kind("monotone_constraints"), Some(ListedKind::Table));
        assert_eq!(kind("runs"), Some(ListedKind::Text));
        assert!(matches!(kind("objective"), Some(ListedKind::Word(words)) if words.contains(&"lambdarank")));
        let mut names: Vec<&str> = all.iter().map(|one| one.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
