//! The one table of all parameters: names, ranges, defaults, help. Reading, checking, printing and
//! `train --help` all walk it, so a new parameter is a field of [`Parameters`] and an entry here.

use super::words::{Word, choose, names};
use super::{
    Candidates, CriterionName, EnsembleName, LeafOrder, Missing, ObjectiveName, Parameters, Sampling,
};
use std::ops::RangeInclusive;

/// A parameter as users know it.
pub struct Key {
    /// The name under which it is printed.
    pub name: &'static str,
    /// Other names, such as LightGBM's, XGBoost's and scikit-learn's.
    pub aliases: &'static [&'static str],
    /// What its values are, and where they go.
    pub kind: Kind,
    /// The value when nobody gives one, as it would be written.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

/// What a parameter's values are, and where they go. A number is within its range before it is set.
pub enum Kind {
    /// A whole number.
    Whole { range: RangeInclusive<u64>, set: fn(&mut Parameters, u64), get: fn(&Parameters) -> u64 },
    /// A whole number, or 0 or -1 for none.
    Limit {
        range: RangeInclusive<u32>,
        set: fn(&mut Parameters, Option<u32>),
        get: fn(&Parameters) -> Option<u32>,
    },
    /// A number.
    Real { range: Reals, set: fn(&mut Parameters, f64), get: fn(&Parameters) -> f64 },
    /// One of a few words; `set` says whether it knows the word.
    Word {
        words: fn() -> Vec<&'static str>,
        set: fn(&mut Parameters, &str) -> bool,
        get: fn(&Parameters) -> &'static str,
    },
    /// How many features a node may choose from.
    Features,
    /// A list of metrics.
    Metrics,
    /// One metric, that LambdaRank looks at.
    LambdaMetric,
    /// By which rules metrics are taken.
    Convention,
    /// What labels are worth.
    LabelGain,
    /// How little ranks far down count to listwise trees.
    Discount,
    /// The score before the first tree.
    BaseScore,
    /// Yes or no.
    Flag { set: fn(&mut Parameters, bool), get: fn(&Parameters) -> bool },
    /// A shorthand for two other parameters, gone after reading.
    QueryFraction,
    /// No parameter: it may say what planetree does anyway, and nothing else.
    Agreed { values: &'static [&'static str], does: &'static str },
}

/// A range of numbers that ends at `most`.
pub struct Reals {
    /// Whether 0 itself is in it.
    pub zero: bool,
    /// The greatest number in it; infinite when any will do.
    pub most: f64,
}

const SHARE: Reals = Reals { zero: false, most: 1.0 };
const NOT_NEGATIVE: Reals = Reals { zero: true, most: f64::INFINITY };

/// Names of `features_per_node` under which a number is a fraction, also when it is a whole one.
pub const ALWAYS_FRACTIONS: [&str; 2] = ["colsample_bynode", "feature_fraction_bynode"];

/// All parameters, in the order in which they are printed.
pub static KEYS: [Key; 45] = [
    Key {
        name: "ensemble",
        aliases: &["boosting", "boosting_type", "booster"],
        kind: Kind::Word {
            words: names::<EnsembleName>,
            set: |parameters, text| choose(&mut parameters.ensemble, text),
            get: |parameters| parameters.ensemble.name(),
        },
        default: "boost",
        help: "How trees become a model: boost adds trees that mend what those before got wrong, bag is a random forest",
    },
    Key {
        name: "objective",
        aliases: &["objective_type", "application", "app", "loss"],
        kind: Kind::Word {
            words: names::<ObjectiveName>,
            set: |parameters, text| choose(&mut parameters.objective, text),
            get: |parameters| parameters.objective.name(),
        },
        default: "squared",
        help: "What the trees are trained for: the labels themselves, or the order that they say is right",
    },
    Key {
        name: "lambda_metric",
        aliases: &["lambdarank_target"],
        kind: Kind::LambdaMetric,
        default: "ndcg",
        help: "LambdaRank only: a pair counts by what swapping it would change in this metric; any but rmse",
    },
    Key {
        name: "truncation_level",
        aliases: &["lambdarank_truncation_level", "lambdarank_num_pair_per_sample", "max_position"],
        kind: Kind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.truncation_level = value,
            get: |parameters| parameters.truncation_level,
        },
        default: "30",
        help: "Pairwise objectives: one document of a pair is among so many best; 0 takes all pairs",
    },
    Key {
        name: "sigma",
        aliases: &["sigmoid"],
        kind: Kind::Real {
            range: Reals { zero: false, most: 1000.0 },
            set: |parameters, value| parameters.sigma = value,
            get: |parameters| parameters.sigma,
        },
        default: "1.0",
        help: "RankNet and LambdaRank: how steep the logistic cost of a pair is",
    },
    Key {
        name: "lambda_norm",
        aliases: &["lambdarank_norm", "lambdarank_normalization"],
        kind: Kind::Flag {
            set: |parameters, value| parameters.lambda_norm = value,
            get: |parameters| parameters.lambda_norm,
        },
        default: "true",
        help: "Pairwise objectives: pairs count less the further their scores are apart, and no query pulls out of proportion",
    },
    Key {
        name: "margin",
        aliases: &["tau"],
        kind: Kind::Real {
            range: Reals { zero: false, most: 1e6 },
            set: |parameters, value| parameters.margin = value,
            get: |parameters| parameters.margin,
        },
        default: "1.0",
        help: "GBRANK: by how much the better document's score should be higher",
    },
    Key {
        name: "label_gain",
        aliases: &["gain"],
        kind: Kind::LabelGain,
        default: "exp2",
        help: "What a label is worth to LambdaRank on NDCG and to listwise trees: exp2, linear, a table such as 0,1,3,7,15, or an expression",
    },
    Key {
        name: "relevant_from",
        aliases: &[],
        kind: Kind::Real {
            range: Reals { zero: true, most: 1e30 },
            set: |parameters, value| parameters.relevant_from = value as f32,
            get: |parameters| f64::from(parameters.relevant_from),
        },
        default: "1.0",
        help: "Labels from this on are relevant to the logistic objective and to LambdaRank on MAP and its like",
    },
    Key {
        name: "unbiased",
        aliases: &["lambdarank_unbiased"],
        kind: Kind::Flag {
            set: |parameters, value| parameters.unbiased = value,
            get: |parameters| parameters.unbiased,
        },
        default: "false",
        help: "RankNet and LambdaRank: labels are clicks, and the position column says where a document was shown",
    },
    Key {
        name: "bias_norm",
        aliases: &["lambdarank_bias_norm"],
        kind: Kind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.bias_norm = value,
            get: |parameters| parameters.bias_norm,
        },
        default: "1.0",
        help: "Unbiased only: the greater, the less positions are taken to matter",
    },
    Key {
        name: "base_score",
        aliases: &["init_score", "start_score"],
        kind: Kind::BaseScore,
        default: "auto",
        help: "The score before the first tree: auto (what fits best), a number, or feature:NAME for that feature's values",
    },
    Key {
        name: "candidates",
        aliases: &["splits"],
        kind: Kind::Word {
            words: names::<Candidates>,
            set: |parameters, text| choose(&mut parameters.candidates, text),
            get: |parameters| parameters.candidates.name(),
        },
        default: "static",
        help: "Where candidate splits come from: bins found once, centroids found anew for every node, every value, or (forests) one value at random",
    },
    Key {
        name: "criterion",
        aliases: &["split_criterion"],
        kind: Kind::Word {
            words: names::<CriterionName>,
            set: |parameters, text| choose(&mut parameters.forest.criterion, text),
            get: |parameters| parameters.forest.criterion.name(),
        },
        default: "variance",
        help: "Forests: what makes a split a good one; entropy and gini take labels for classes, ndcg looks at the ranking of whole queries",
    },
    Key {
        name: "listwise_levels",
        aliases: &[],
        kind: Kind::Limit {
            range: 1..=1000,
            set: |parameters, value| parameters.forest.listwise.levels = value,
            get: |parameters| parameters.forest.listwise.levels,
        },
        default: "0",
        help: "Forests: so many levels of a tree are split by the expected NDCG of whole queries, those below by criterion",
    },
    Key {
        name: "leaf_order",
        aliases: &[],
        kind: Kind::Word {
            words: names::<LeafOrder>,
            set: |parameters, text| choose(&mut parameters.forest.listwise.order, text),
            get: |parameters| parameters.forest.listwise.order.name(),
        },
        default: "breadth",
        help: "Listwise trees: which leaf is split next; what a split gains depends on all other leaves",
    },
    Key {
        name: "listwise_discount",
        aliases: &[],
        kind: Kind::Discount,
        default: "log2",
        help: "Listwise trees: how little ranks far down count: log2, log2^ALPHA, power:BETA or letor",
    },
    Key {
        name: "listwise_truncation",
        aliases: &[],
        kind: Kind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.forest.listwise.truncation = value,
            get: |parameters| parameters.forest.listwise.truncation,
        },
        default: "0",
        help: "Listwise trees: ranks that count; 0 counts all",
    },
    Key {
        name: "pairs_per_document",
        aliases: &[],
        kind: Kind::Limit {
            range: 1..=10_000,
            set: |parameters, value| parameters.forest.pairs_per_document = value,
            get: |parameters| parameters.forest.pairs_per_document,
        },
        default: "0",
        help: "Forests: learn which of two documents is better from the difference of their features, in so many pairs a document at most; 0 learns labels",
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
        kind: Kind::Whole {
            range: 1..=1_000_000,
            set: |parameters, value| parameters.num_trees = value as u32,
            get: |parameters| parameters.num_trees.into(),
        },
        default: "250",
        help: "Trees at most",
    },
    Key {
        name: "learning_rate",
        aliases: &["eta", "shrinkage_rate", "lr"],
        kind: Kind::Real {
            range: Reals { zero: false, most: 10.0 },
            set: |parameters, value| parameters.learning_rate = value,
            get: |parameters| parameters.learning_rate,
        },
        default: "0.06",
        help: "What a tree's values are multiplied by",
    },
    Key {
        name: "max_depth",
        aliases: &["depth"],
        kind: Kind::Limit {
            range: 1..=64,
            set: |parameters, value| parameters.max_depth = value,
            get: |parameters| parameters.max_depth,
        },
        default: "5",
        help: "Splits from the root to a leaf at most",
    },
    Key {
        name: "num_leaves",
        aliases: &["max_leaves", "max_leaf_nodes", "num_leaf", "leaves"],
        kind: Kind::Limit {
            range: 2..=1_048_576,
            set: |parameters, value| parameters.num_leaves = value,
            get: |parameters| parameters.num_leaves,
        },
        default: "0",
        help: "Leaves at most; when given, trees grow best-first, else level by level",
    },
    Key {
        name: "min_data_in_leaf",
        aliases: &["min_data", "min_child_samples", "min_samples_leaf", "min_examples", "min_rows"],
        kind: Kind::Whole {
            range: 0..=i64::MAX as u64,
            // A leaf has at least one row anyway.
            set: |parameters, value| parameters.min_data_in_leaf = value.max(1),
            get: |parameters| parameters.min_data_in_leaf,
        },
        default: "20",
        help: "Rows that a leaf has at least",
    },
    Key {
        name: "min_gain",
        aliases: &["min_gain_to_split", "min_split_gain", "gamma", "min_split_loss"],
        kind: Kind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.min_gain = value,
            get: |parameters| parameters.min_gain,
        },
        default: "0.0",
        help: "What a split must gain at least",
    },
    Key {
        name: "lambda_l2",
        aliases: &["lambda", "reg_lambda", "l2_regularization"],
        kind: Kind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.lambda_l2 = value,
            get: |parameters| parameters.lambda_l2,
        },
        default: "0.0",
        help: "L2 regularisation of leaf values",
    },
    Key {
        name: "min_sum_hessian",
        aliases: &["min_sum_hessian_in_leaf", "min_child_weight", "min_sum_hessian_per_leaf"],
        kind: Kind::Real {
            range: NOT_NEGATIVE,
            set: |parameters, value| parameters.min_sum_hessian = value,
            get: |parameters| parameters.min_sum_hessian,
        },
        default: "0.0",
        help: "What the hessians of a leaf's rows add up to at least; their weights, for the squared error",
    },
    Key {
        name: "max_bin",
        aliases: &["max_bins", "b", "bins", "border_count"],
        kind: Kind::Whole {
            range: 0..=10_000,
            set: |parameters, value| parameters.max_bin = value as u32,
            get: |parameters| parameters.max_bin.into(),
        },
        default: "255",
        help: "Static: bins a feature, 2 to 255. Streaming: centroids a feature and node, 2 to 10000. Exact: none. Random: 2 to 255, or 0 for all values",
    },
    Key {
        name: "value_groups",
        aliases: &[],
        kind: Kind::Whole {
            range: 0..=255,
            set: |parameters, value| parameters.value_groups = value as u32,
            get: |parameters| parameters.value_groups.into(),
        },
        default: "255",
        help: "Streaming only: groups of neighbouring values that a feature is told apart by, 2 to 255; 0 tells all values apart",
    },
    Key {
        name: "workers",
        aliases: &["num_workers"],
        kind: Kind::Whole {
            range: 0..=100_000,
            set: |parameters, value| parameters.workers = value as u32,
            get: |parameters| parameters.workers.into(),
        },
        default: "1",
        help: "Streaming only: workers that the partitions are dealt to, each with histograms of its own that are merged",
    },
    Key {
        name: "bagging_fraction",
        aliases: &["subsample", "bagging", "sub_row", "row_fraction"],
        kind: Kind::Real {
            range: SHARE,
            set: |parameters, value| parameters.bagging_fraction = value,
            get: |parameters| parameters.bagging_fraction,
        },
        default: "1.0",
        help: "The share of rows or queries that a tree sees, drawn anew for every tree",
    },
    Key {
        name: "bagging_by",
        aliases: &["sampling"],
        kind: Kind::Word {
            words: names::<Sampling>,
            set: |parameters, text| choose(&mut parameters.bagging_by, text),
            get: |parameters| parameters.bagging_by.name(),
        },
        default: "rows",
        help: "What bagging_fraction draws: single rows, or queries with all their rows",
    },
    Key {
        name: "queries_per_tree",
        aliases: &[],
        kind: Kind::Limit {
            range: 1..=u32::MAX,
            set: |parameters, value| parameters.queries_per_tree = value,
            get: |parameters| parameters.queries_per_tree,
        },
        default: "0",
        help: "The number of queries that a tree sees, instead of a share of them",
    },
    Key {
        name: "bootstrap",
        aliases: &["with_replacement"],
        kind: Kind::Flag {
            set: |parameters, value| parameters.forest.bootstrap = value,
            get: |parameters| parameters.forest.bootstrap,
        },
        default: "false",
        help: "Forests: rows or queries are drawn with replacement, so that some come more than once",
    },
    Key {
        name: "query_fraction",
        aliases: &[],
        kind: Kind::QueryFraction,
        default: "",
        help: "Short for bagging_fraction with bagging_by=queries",
    },
    Key {
        name: "feature_fraction",
        aliases: &["colsample_bytree", "sub_feature"],
        kind: Kind::Real {
            range: SHARE,
            set: |parameters, value| parameters.feature_fraction = value,
            get: |parameters| parameters.feature_fraction,
        },
        default: "1.0",
        help: "The share of features that a tree may use",
    },
    Key {
        name: "features_per_node",
        aliases: &["max_features", "colsample_bynode", "feature_fraction_bynode"],
        kind: Kind::Features,
        default: "all",
        help: "How many of the tree's features a node may choose from",
    },
    Key {
        name: "missing",
        aliases: &[],
        kind: Kind::Word {
            words: names::<Missing>,
            set: |parameters, text| choose(&mut parameters.missing, text),
            get: |parameters| parameters.missing.name(),
        },
        default: "zero",
        help: "What a missing value is taken for; learned: every split sends them to the side that fits better",
    },
    Key {
        name: "seed",
        aliases: &["random_seed", "random_state"],
        kind: Kind::Whole {
            // What TOML holds at most.
            range: 0..=i64::MAX as u64,
            set: |parameters, value| parameters.seed = value,
            get: |parameters| parameters.seed,
        },
        default: "0",
        help: "Key of all random draws",
    },
    Key {
        name: "early_stopping_rounds",
        aliases: &["early_stopping", "early_stopping_round"],
        kind: Kind::Limit {
            range: 1..=1_000_000,
            set: |parameters, value| parameters.early_stopping_rounds = value,
            get: |parameters| parameters.early_stopping_rounds,
        },
        default: "0",
        help: "Stop when the first metric of the first validation set has not improved for so many rounds",
    },
    Key {
        name: "tree_strength",
        aliases: &[],
        kind: Kind::Flag {
            set: |parameters, value| parameters.forest.tree_strength = value,
            get: |parameters| parameters.forest.tree_strength,
        },
        default: "false",
        help: "Forests: the log also says how good each tree is alone, as split NAME.tree of every validation set",
    },
    Key {
        name: "metric",
        aliases: &["metrics", "eval_metric"],
        kind: Kind::Metrics,
        default: "ndcg@10,rmse",
        help: "The metrics of every round; the first decides on early stopping",
    },
    Key {
        name: "convention",
        aliases: &[],
        kind: Kind::Convention,
        default: "planetree",
        help: "The rules of metrics: a tool's (lightgbm, xgboost, trec, letor4, ...) and switches, as evaluate takes them",
    },
    Key {
        name: "lambda_l1",
        aliases: &["reg_alpha", "l1_regularization", "alpha"],
        kind: Kind::Agreed { values: &["0", "0.0"], does: "no L1 regularisation" },
        default: "",
        help: "",
    },
    Key {
        name: "bagging_freq",
        aliases: &["subsample_freq"],
        kind: Kind::Agreed { values: &["1"], does: "a new draw for every tree" },
        default: "",
        help: "",
    },
];

impl Key {
    /// All its names, the one it is printed under first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// All its names in one text.
    pub fn names_listed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// The parameter of a name.
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
