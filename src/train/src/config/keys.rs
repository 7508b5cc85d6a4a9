//! The table of all parameters, with names, ranges, defaults and help. Parsing, validation, printing and `train --help`
//! all use this table. To add a parameter, add a field to [`RawParameters`] and an entry here.

use super::raw::RawParameters;
use super::words::{NamedEnum, choose, names};
use super::{
    Candidates, CriterionName, EnsembleName, LeafOrder, LeafScore, LeafStep, MissingPolicy, ObjectiveName,
    Sampling, SplitBy,
};
use planetree_metric::Metric;
use planetree_model::model::FeatureNormalisation;
use std::ops::RangeInclusive;

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
    /// Number of features sampled for each node.
    Features,
    /// A list of metrics.
    Metrics,
    /// A metric.
    Metric { set: fn(&mut RawParameters, Metric), get: fn(&RawParameters) -> Metric },
    /// Convention for computing metrics.
    Convention,
    /// Gain of each label.
    LabelGain,
    /// Map of labels to others.
    LabelMap,
    /// Rank discount of listwise trees.
    Discount,
    /// Initial score.
    BaseScore,
    /// A boolean.
    Flag { set: fn(&mut RawParameters, bool), get: fn(&RawParameters) -> bool },
    /// How often rows are sampled: for every tree, or once. It is printed only if it is not the default.
    BaggingPer,
    /// A shorthand for two other parameters, into which it is expanded when read.
    QueryFraction,
    /// A key of other tools that is not a parameter of planetree. It is accepted only with values that match
    /// planetree's fixed behaviour.
    Agreed { values: &'static [&'static str], does: &'static str },
}

/// Numbers from 0 up to and including `most`.
pub struct Reals {
    /// Whether 0 is included.
    pub zero: bool,
    /// The maximum; infinity for no upper bound.
    pub most: f64,
}

const SHARE: Reals = Reals { zero: false, most: 1.0 };
const NOT_NEGATIVE: Reals = Reals { zero: true, most: f64::INFINITY };

/// Aliases of `features_per_node` for which every number is a fraction, even an integer.
pub const ALWAYS_FRACTIONS: [&str; 2] = ["colsample_bynode", "feature_fraction_bynode"];

/// All parameters, in the order in which they are printed.
pub static KEYS: [Key; 55] = [
    Key {
        name: "ensemble",
        aliases: &["boosting", "boosting_type", "booster"],
        kind: KeyKind::Word {
            words: names::<EnsembleName>,
            set: |parameters, text| choose(&mut parameters.ensemble, text),
            get: |parameters| parameters.ensemble.name(),
        },
        default: "boost",
        help: "Model type: boost (gradient boosting), bag (random forest) or linear (weighted sum of features)",
    },
    Key {
        name: "objective",
        aliases: &["objective_type", "application", "app", "loss"],
        kind: KeyKind::Word {
            words: names::<ObjectiveName>,
            set: |parameters, text| choose(&mut parameters.objective, text),
            get: |parameters| parameters.objective.name(),
        },
        default: "squared",
        help: "Training objective: regression on the labels, or a pairwise or listwise ranking loss",
    },
    Key {
        name: "lambda_metric",
        aliases: &["lambdarank_target"],
        kind: KeyKind::Metric {
            set: |parameters, metric| parameters.lambda_metric = metric,
            get: |parameters| parameters.lambda_metric,
        },
        default: "ndcg",
        help: "LambdaRank only: metric whose change under a swap weights each pair; any metric except rmse",
    },
    Key {
        name: "truncation_level",
        aliases: &["lambdarank_truncation_level", "lambdarank_num_pair_per_sample", "max_position"],
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.truncation_level = value,
            get: |parameters| parameters.truncation_level,
        },
        default: "30",
        help: "Pairwise objectives: use pairs with at least one document in the top K by score; 0 uses all pairs",
    },
    Key {
        name: "sigma",
        aliases: &["sigmoid"],
        kind: KeyKind::Real {
            range: Reals { zero: false, most: 1000.0 },
            set: |parameters, value| parameters.sigma = value,
            get: |parameters| parameters.sigma,
        },
        default: "1.0",
        help: "RankNet and LambdaRank: steepness of the sigmoid in the pairwise loss",
    },
    Key {
        name: "lambda_norm",
        aliases: &["lambdarank_norm", "lambdarank_normalization"],
        kind: KeyKind::Flag {
            set: |parameters, value| parameters.lambda_norm = value,
            get: |parameters| parameters.lambda_norm,
        },
        default: "true",
        help: "Pairwise objectives: normalise pair weights by score distance, and the gradients of each query by their total",
    },
    Key {
        name: "margin",
        aliases: &["tau"],
        kind: KeyKind::Real {
            range: Reals { zero: false, most: 1e6 },
            set: |parameters, value| parameters.margin = value,
            get: |parameters| parameters.margin,
        },
        default: "1.0",
        help: "GBRANK: required score margin between the two documents of a pair",
    },
    Key {
        name: "label_gain",
        aliases: &["gain"],
        kind: KeyKind::LabelGain,
        default: "exp2",
        help: "LambdaRank on NDCG and listwise trees: gain of each label, as exp2, linear, a table such as 0,1,3,7,15, or an expression",
    },
    Key {
        name: "relevant_from",
        aliases: &[],
        kind: KeyKind::Real {
            range: Reals { zero: true, most: 1e30 },
            set: |parameters, value| parameters.relevant_from = value as f32,
            get: |parameters| f64::from(parameters.relevant_from),
        },
        default: "1.0",
        help: "Minimum label that counts as relevant, for the logistic objective and for LambdaRank on binary metrics such as MAP",
    },
    Key {
        name: "unbiased",
        aliases: &["lambdarank_unbiased"],
        kind: KeyKind::Flag {
            set: |parameters, value| parameters.unbiased = value,
            get: |parameters| parameters.unbiased,
        },
        default: "false",
        help: "RankNet and LambdaRank: treat labels as clicks and correct for position bias, using the position column",
    },
    Key {
        name: "bias_norm",
        aliases: &["lambdarank_bias_norm"],
        kind: KeyKind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.bias_norm = value,
            get: |parameters| parameters.bias_norm,
        },
        default: "1.0",
        help: "Unbiased only: regularisation of the position bias; larger values weaken the correction",
    },
    Key {
        name: "base_score",
        aliases: &["init_score", "start_score"],
        kind: KeyKind::BaseScore,
        default: "auto",
        help: "Initial score: auto (the best constant), a number, or feature:NAME for the values of that feature",
    },
    Key {
        name: "candidates",
        aliases: &["splits"],
        kind: KeyKind::Word {
            words: names::<Candidates>,
            set: |parameters, text| choose(&mut parameters.candidates, text),
            get: |parameters| parameters.candidates.name(),
        },
        default: "static",
        help: "Source of candidate splits: fixed bins, centroids recomputed per node, every value, or (forests) one random value",
    },
    Key {
        name: "criterion",
        aliases: &["split_criterion"],
        kind: KeyKind::Word {
            words: names::<CriterionName>,
            set: |parameters, text| choose(&mut parameters.forest.criterion, text),
            get: |parameters| parameters.forest.criterion.name(),
        },
        default: "variance",
        help: "Forests: split criterion; entropy and gini treat labels as classes, ndcg scores the ranking of whole queries",
    },
    Key {
        name: "redraw_features",
        aliases: &[],
        kind: KeyKind::Flag {
            set: |parameters, value| parameters.forest.redraw_features = value,
            get: |parameters| parameters.forest.redraw_features,
        },
        default: "true",
        help: "Forests: if all features sampled for a node are constant in it, sample more; false makes the node a leaf",
    },
    Key {
        name: "leaf_score",
        aliases: &[],
        kind: KeyKind::Word {
            words: names::<LeafScore>,
            set: |parameters, text| choose(&mut parameters.forest.leaf_score, text),
            get: |parameters| parameters.forest.leaf_score.name(),
        },
        default: "expected",
        help: "Forests that treat labels as classes: leaf value, the mean of the labels c (expected), of c^2 (square) or of 2^c (exp2)",
    },
    Key {
        name: "listwise_metric",
        aliases: &[],
        kind: KeyKind::Metric {
            set: |parameters, metric| parameters.forest.listwise.metric = metric,
            get: |parameters| parameters.forest.listwise.metric,
        },
        default: "ndcg",
        help: "Listwise trees: metric whose expected value chooses splits; ndcg is the fastest",
    },
    Key {
        name: "queries_per_node",
        aliases: &[],
        kind: KeyKind::Real {
            range: SHARE,
            set: |parameters, value| parameters.forest.listwise.queries_per_node = value,
            get: |parameters| parameters.forest.listwise.queries_per_node,
        },
        default: "1.0",
        help: "Listwise trees: fraction of the queries sampled for the gains of each node",
    },
    Key {
        name: "listwise_levels",
        aliases: &[],
        kind: KeyKind::Limit {
            range: 1..=1000,
            set: |parameters, value| parameters.forest.listwise.levels = value,
            get: |parameters| parameters.forest.listwise.levels,
        },
        default: "0",
        help: "Forests: number of top levels split by the expected NDCG of whole queries; deeper levels use criterion",
    },
    Key {
        name: "leaf_order",
        aliases: &[],
        kind: KeyKind::Word {
            words: names::<LeafOrder>,
            set: |parameters, text| choose(&mut parameters.forest.listwise.order, text),
            get: |parameters| parameters.forest.listwise.order.name(),
        },
        default: "breadth",
        help: "Listwise trees: order in which leaves are split; the gain of a split depends on all other leaves",
    },
    Key {
        name: "listwise_discount",
        aliases: &[],
        kind: KeyKind::Discount,
        default: "log2",
        help: "Listwise trees: discount of a document's gain by rank, as log2, log2^ALPHA, power:BETA or letor",
    },
    Key {
        name: "listwise_truncation",
        aliases: &[],
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.forest.listwise.truncation = value,
            get: |parameters| parameters.forest.listwise.truncation,
        },
        default: "0",
        help: "Listwise trees: number of top ranks that contribute to NDCG; 0 for all",
    },
    Key {
        name: "pairs_per_document",
        aliases: &[],
        kind: KeyKind::Limit {
            range: 1..=10_000,
            set: |parameters, value| parameters.forest.pairs_per_document = value,
            get: |parameters| parameters.forest.pairs_per_document,
        },
        default: "0",
        help: "Forests: train on the feature differences of document pairs, with at most this many pairs per document; 0 trains on single documents",
    },
    Key {
        name: "num_trees",
        aliases: &[
            "num_iterations",
            "n_estimators",
            "num_boost_round",
            "num_round",
            "num_rounds",
            "n_iter",
            "iterations",
            "num_iteration",
            "nrounds",
            "trees",
        ],
        kind: KeyKind::Whole {
            range: 1..=1_000_000,
            set: |parameters, value| parameters.num_trees = value as u32,
            get: |parameters| parameters.num_trees.into(),
        },
        default: "250",
        help: "Maximum number of trees, or of rounds of a linear model",
    },
    Key {
        name: "learning_rate",
        aliases: &["eta", "shrinkage_rate", "lr"],
        kind: KeyKind::Real {
            range: Reals { zero: false, most: 10.0 },
            set: |parameters, value| parameters.learning_rate = value,
            get: |parameters| parameters.learning_rate,
        },
        default: "0.06",
        help: "Shrinkage factor applied to the leaf values of each tree",
    },
    Key {
        name: "max_depth",
        aliases: &["depth"],
        kind: KeyKind::Limit {
            range: 1..=64,
            set: |parameters, value| parameters.max_depth = value,
            get: |parameters| parameters.max_depth,
        },
        default: "5",
        help: "Maximum depth of a tree: splits on the way to a leaf",
    },
    Key {
        name: "num_leaves",
        aliases: &["max_leaves", "max_leaf_nodes", "num_leaf", "leaves"],
        kind: KeyKind::Limit {
            range: 2..=1_048_576,
            set: |parameters, value| parameters.num_leaves = value,
            get: |parameters| parameters.num_leaves,
        },
        default: "0",
        help: "Maximum leaves per tree; if set, trees grow best-first, otherwise level by level",
    },
    Key {
        name: "min_data_in_leaf",
        aliases: &["min_data", "min_child_samples", "min_samples_leaf", "min_examples"],
        kind: KeyKind::Whole {
            range: 0..=i64::MAX as u64,
            // Every leaf has at least one row, so 0 means 1.
            set: |parameters, value| parameters.min_data_in_leaf = value.max(1),
            get: |parameters| parameters.min_data_in_leaf,
        },
        default: "20",
        help: "Minimum rows per leaf",
    },
    Key {
        name: "min_data_to_split",
        aliases: &["min_samples_split", "min_rows"],
        kind: KeyKind::Whole {
            range: 0..=i64::MAX as u64,
            // A split has at least one row on either side, so less than 2 means 2.
            set: |parameters, value| parameters.min_data_to_split = value.max(2),
            get: |parameters| parameters.min_data_to_split,
        },
        default: "2",
        help: "Minimum rows of a node that is split",
    },
    Key {
        name: "min_gain",
        aliases: &["min_gain_to_split", "min_split_gain", "gamma", "min_split_loss"],
        kind: KeyKind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.min_gain = value,
            get: |parameters| parameters.min_gain,
        },
        default: "0.0",
        help: "Minimum gain of a split",
    },
    Key {
        name: "split_by",
        aliases: &[],
        kind: KeyKind::Word {
            words: names::<SplitBy>,
            set: |parameters, text| choose(&mut parameters.split_by, text),
            get: |parameters| parameters.split_by.name(),
        },
        default: "newton",
        help: "Boosting: score of splits, newton (G^2 / (H + lambda_l2)) or gradient (least squares on the gradients, G^2 / n)",
    },
    Key {
        name: "leaf",
        aliases: &[],
        kind: KeyKind::Word {
            words: names::<LeafStep>,
            set: |parameters, text| choose(&mut parameters.leaf, text),
            get: |parameters| parameters.leaf.name(),
        },
        default: "newton",
        help: "Boosting: value of leaves, newton (G / (H + lambda_l2)) or mean (the mean gradient, G / n)",
    },
    Key {
        name: "lambda_l2",
        aliases: &["lambda", "reg_lambda", "l2_regularization"],
        kind: KeyKind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.lambda_l2 = value,
            get: |parameters| parameters.lambda_l2,
        },
        default: "0.0",
        help: "L2 regularisation of leaf values, or of the weights of a linear model",
    },
    Key {
        name: "normalise_features",
        aliases: &["normalize_features", "feature_normalisation"],
        kind: KeyKind::Word {
            words: names::<FeatureNormalisation>,
            set: |parameters, text| choose(&mut parameters.normalise_features, text),
            get: |parameters| parameters.normalise_features.name(),
        },
        default: "none",
        help: "Linear models: normalise features by query (minimum 0, maximum 1), over all training rows by z (mean 0, deviation 1) or minmax (minimum 0, maximum 1), or not at all",
    },
    Key {
        name: "min_sum_hessian",
        aliases: &["min_sum_hessian_in_leaf", "min_child_weight", "min_sum_hessian_per_leaf"],
        kind: KeyKind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.min_sum_hessian = value,
            get: |parameters| parameters.min_sum_hessian,
        },
        default: "0.0",
        help: "Minimum sum of hessians per leaf; with squared error, the hessian of a row is its weight",
    },
    Key {
        name: "max_bin",
        aliases: &["max_bins", "b", "bins", "border_count"],
        kind: KeyKind::Whole {
            range: 0..=10_000,
            set: |parameters, value| parameters.max_bin = value as u32,
            get: |parameters| parameters.max_bin.into(),
        },
        default: "255",
        help: "Maximum bins per feature (static, random: 2 to 255; forests: 0 keeps all values), or centroids per feature and node (streaming: 2 to 10000)",
    },
    Key {
        name: "value_groups",
        aliases: &[],
        kind: KeyKind::Whole {
            range: 0..=255,
            set: |parameters, value| parameters.value_groups = value as u32,
            get: |parameters| parameters.value_groups.into(),
        },
        default: "255",
        help: "Streaming only: maximum groups of neighbouring values per feature, 2 to 255; 0 keeps all values distinct",
    },
    Key {
        name: "workers",
        aliases: &["num_workers"],
        kind: KeyKind::Whole {
            range: 0..=100_000,
            set: |parameters, value| parameters.workers = value as u32,
            get: |parameters| parameters.workers.into(),
        },
        default: "1",
        help: "Streaming only: number of workers; each builds histograms of its queries, which are then merged",
    },
    Key {
        name: "bagging_fraction",
        aliases: &["subsample", "bagging", "sub_row", "row_fraction"],
        kind: KeyKind::Real {
            range: SHARE,
            set: |parameters, value| parameters.bagging_fraction = value,
            get: |parameters| parameters.bagging_fraction,
        },
        default: "1.0",
        help: "Fraction of rows or queries sampled for each tree",
    },
    Key {
        name: "bagging_by",
        aliases: &["sampling"],
        kind: KeyKind::Word {
            words: names::<Sampling>,
            set: |parameters, text| choose(&mut parameters.bagging_by, text),
            get: |parameters| parameters.bagging_by.name(),
        },
        default: "rows",
        help: "Unit of sampling: single rows, or queries with all their rows",
    },
    Key {
        name: "bagging_per",
        aliases: &[],
        kind: KeyKind::BaggingPer,
        default: "tree",
        help: "Boosting: draw a new sample of rows or queries for every tree, or one for the whole run (bagged boosting)",
    },
    Key {
        name: "queries_per_tree",
        aliases: &[],
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.queries_per_tree = value,
            get: |parameters| parameters.queries_per_tree,
        },
        default: "0",
        help: "Number of queries sampled for each tree, instead of a fraction",
    },
    Key {
        name: "bootstrap",
        aliases: &["with_replacement"],
        kind: KeyKind::Flag {
            set: |parameters, value| parameters.forest.bootstrap = value,
            get: |parameters| parameters.forest.bootstrap,
        },
        default: "false",
        help: "Forests: sample rows or queries with replacement",
    },
    Key {
        name: "query_fraction",
        aliases: &[],
        kind: KeyKind::QueryFraction,
        default: "",
        help: "Shorthand for bagging_fraction with bagging_by=queries",
    },
    Key {
        name: "feature_fraction",
        aliases: &["colsample_bytree", "sub_feature"],
        kind: KeyKind::Real {
            range: SHARE,
            set: |parameters, value| parameters.feature_fraction = value,
            get: |parameters| parameters.feature_fraction,
        },
        default: "1.0",
        help: "Fraction of features sampled for each tree",
    },
    Key {
        name: "features_per_node",
        aliases: &["max_features", "colsample_bynode", "feature_fraction_bynode"],
        kind: KeyKind::Features,
        default: "all",
        help: "Number of features sampled for each node from those of its tree; a fraction is of all features",
    },
    Key {
        name: "missing",
        aliases: &[],
        kind: KeyKind::Word {
            words: names::<MissingPolicy>,
            set: |parameters, text| choose(&mut parameters.missing, text),
            get: |parameters| parameters.missing.name(),
        },
        default: "zero",
        help: "Replacement of missing values. low and high keep them, smaller or larger than all others: every split sends them left or right. learned keeps them, too: each split sends them to the side with the higher gain, and linear models give them the normalised value 0",
    },
    Key {
        name: "seed",
        aliases: &["random_seed", "random_state"],
        kind: KeyKind::Whole {
            // The largest integer that TOML can represent.
            range: 0..=i64::MAX as u64,
            set: |parameters, value| parameters.seed = value,
            get: |parameters| parameters.seed,
        },
        default: "0",
        help: "Random seed",
    },
    Key {
        name: "early_stopping_rounds",
        aliases: &["early_stopping", "early_stopping_round"],
        kind: KeyKind::Limit {
            range: 1..=1_000_000,
            set: |parameters, value| parameters.early_stopping_rounds = value,
            get: |parameters| parameters.early_stopping_rounds,
        },
        default: "0",
        help: "Stop after this many rounds without improvement of the first metric on the first validation set",
    },
    Key {
        name: "tree_strength",
        aliases: &[],
        kind: KeyKind::Flag {
            set: |parameters, value| parameters.forest.tree_strength = value,
            get: |parameters| parameters.forest.tree_strength,
        },
        default: "false",
        help: "Forests: also log the metrics of each single tree, under NAME.tree for each validation set NAME",
    },
    Key {
        name: "metric",
        aliases: &["metrics", "eval_metric"],
        kind: KeyKind::Metrics,
        default: "ndcg@10,rmse",
        help: "Metrics computed after each round; the first one drives early stopping",
    },
    Key {
        name: "convention",
        aliases: &[],
        kind: KeyKind::Convention,
        default: "planetree",
        help: "Rules by which metrics are computed: the name of a tool (lightgbm, xgboost, trec, letor4, ...), and switches; see planetree evaluate --help",
    },
    Key {
        name: "label_map",
        aliases: &[],
        kind: KeyKind::LabelMap,
        default: "none",
        help: "Labels that replace those of training and validation data, such as 0,1,2=0;3,4=1; a label that is not listed is an error",
    },
    Key {
        name: "lambda_l1",
        aliases: &["reg_alpha", "l1_regularization", "alpha"],
        kind: KeyKind::Agreed { values: &["0", "0.0"], does: "no L1 regularisation" },
        default: "",
        help: "",
    },
    Key {
        name: "bagging_freq",
        aliases: &["subsample_freq"],
        kind: KeyKind::Agreed { values: &["1"], does: "a new sample for every tree" },
        default: "",
        help: "",
    },
];

impl Key {
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
        KEYS.iter().find(|key| key.names().any(|known| known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_name_means_one_parameter() {
        let mut seen = HashSet::new();
        for key in &KEYS {
            for name in key.names() {
                assert!(seen.insert(name), "{name}");
                assert_eq!(Key::named(name).map(|key| key.name), Some(key.name));
            }
        }
        for name in ALWAYS_FRACTIONS {
            assert_eq!(Key::named(name).unwrap().name, "features_per_node");
        }
    }
}
