//! Lists the parameters that only some learners use.

use super::EnsembleName;
use super::forest_checks::OF_LISTS;

/// A parameter that a learner does not use.
#[derive(Debug, Clone, Copy)]
pub struct ForeignKey {
    /// Name of the parameter.
    pub name: &'static str,
    /// The value that has no effect.
    pub neutral: &'static str,
    /// The setting that makes the parameter take effect.
    pub remedy: &'static str,
}

const fn key(name: &'static str, neutral: &'static str, remedy: &'static str) -> ForeignKey {
    ForeignKey { name, neutral, remedy }
}

/// Parameters that only forests use.
const OF_FORESTS: [ForeignKey; 7] = [
    key("criterion", "variance", "ensemble=bag"),
    key("bootstrap", "false", "ensemble=bag"),
    key("pairs_per_document", "0", "ensemble=bag"),
    key("tree_strength", "false", "ensemble=bag"),
    key("listwise_levels", "0", "ensemble=bag"),
    key("redraw_features", "true", "ensemble=bag"),
    key("leaf_score", "expected", "ensemble=bag"),
];

/// Parameters that only boosting uses.
const OF_BOOSTING: [ForeignKey; 7] = [
    key("learning_rate", "1.0", "ensemble=boost"),
    key("num_leaves", "0", "ensemble=boost"),
    key("min_sum_hessian", "0.0", "ensemble=boost"),
    key("base_score", "auto", "ensemble=boost"),
    key("split_by", "newton", "ensemble=boost"),
    key("leaf", "newton", "ensemble=boost"),
    key("bagging_per", "tree", "ensemble=boost"),
];

/// Parameters that boosting and linear models use, but not forests.
const OF_OBJECTIVES: [ForeignKey; 2] =
    [key("objective", "squared", "ensemble=boost"), key("lambda_l2", "0.0", "ensemble=boost")];

/// Parameters that boosting and forests use, but not linear models.
const OF_TREES: [ForeignKey; 13] = [
    key("candidates", "static", "ensemble=boost"),
    key("max_depth", "5", "ensemble=boost"),
    key("min_data_in_leaf", "1", "ensemble=boost"),
    key("min_data_to_split", "2", "ensemble=boost"),
    key("min_gain", "0.0", "ensemble=boost"),
    key("max_bin", "255", "ensemble=boost"),
    key("value_groups", "0", "ensemble=boost"),
    key("workers", "0", "ensemble=boost"),
    key("bagging_fraction", "1.0", "ensemble=boost"),
    key("bagging_by", "rows", "ensemble=boost"),
    key("queries_per_tree", "0", "ensemble=boost"),
    key("feature_fraction", "1.0", "ensemble=boost"),
    key("features_per_node", "all", "ensemble=boost"),
];

/// Parameters that only linear models use.
const OF_LINEAR: [ForeignKey; 1] = [key("normalise_features", "none", "ensemble=linear")];

/// Returns the parameters that a learner does not use.
pub fn foreign(ensemble: EnsembleName) -> impl Iterator<Item = ForeignKey> {
    let lists: [&'static [ForeignKey]; 3] = match ensemble {
        EnsembleName::Boost => [&OF_FORESTS, &OF_LINEAR, &[]],
        EnsembleName::Bag => [&OF_BOOSTING, &OF_OBJECTIVES, &OF_LINEAR],
        EnsembleName::Linear => [&OF_FORESTS, &OF_BOOSTING, &OF_TREES],
    };
    lists.into_iter().flatten().copied()
}

/// Returns whether a parameter is part of the configuration that a model records. Models of trees record the parameters
/// of all tree learners.
pub fn is_recorded(name: &str, ensemble: EnsembleName) -> bool {
    let in_list = |list: &[ForeignKey]| list.iter().any(|key| key.name == name);
    match ensemble {
        EnsembleName::Boost | EnsembleName::Bag => !in_list(&OF_LINEAR),
        EnsembleName::Linear => {
            let pairwise =
                ["truncation_level", "sigma", "lambda_norm", "lambda_metric", "margin", "label_gain"];
            let others = ["unbiased", "bias_norm"];
            foreign(ensemble).all(|key| key.name != name)
                && !pairwise.contains(&name)
                && !others.contains(&name)
                && !OF_LISTS.contains(&name)
        }
    }
}
