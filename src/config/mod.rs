//! What to train: parameters under the names people know, presets, and their checks.

/// Where candidate splits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// Bins of equal depth, found once before the training (PLANET).
    Static,
    /// Centroids found anew for every node (Ben-Haim & Yom-Tov, pGBRT).
    Streaming,
    /// The middle between any two neighbouring values of a node (CART).
    Exact,
}

/// What a missing value is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The number 0.
    Zero,
    /// The number 1.
    One,
    /// The feature's mean over the training rows that have it.
    Mean,
    /// The feature's median over the training rows that have it.
    Median,
    /// Every split sends missing values to the side that fits them better.
    Learned,
}

/// What is drawn when a tree sees a part of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Single rows.
    Rows,
    /// Queries with all their rows.
    Queries,
}

/// How many features a node may choose from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeatureCount {
    /// All of them.
    All,
    /// This many.
    Count(usize),
    /// This share of them.
    Fraction(f64),
    /// log2 of their number, plus 1.
    Log2,
}

/// Checked parameters of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Where candidate splits come from.
    pub candidates: Candidates,
    /// Trees at most.
    pub num_trees: u32,
    /// What a tree's values are multiplied by.
    pub learning_rate: f64,
    /// Splits from the root to a leaf at most.
    pub max_depth: Option<u32>,
    /// Leaves at most; when given, trees grow best-first, else level by level.
    pub num_leaves: Option<u32>,
    /// Rows that a leaf has at least.
    pub min_data_in_leaf: u64,
    /// What a split must gain at least.
    pub min_gain: f64,
    /// L2 regularisation of leaf values.
    pub lambda_l2: f64,
    /// Bins a feature (static), centroids a feature and node (streaming).
    pub max_bin: u32,
    /// Streaming: groups of neighbouring values a feature is told apart by, at most; 0 tells all apart.
    pub value_groups: u32,
    /// The share of rows or queries that a tree sees.
    pub bagging_fraction: f64,
    /// What is drawn.
    pub bagging_by: Sampling,
    /// The share of features that a tree may use.
    pub feature_fraction: f64,
    /// How many of those a node may choose from.
    pub features_per_node: FeatureCount,
    /// What a missing value is taken for.
    pub missing: Missing,
    /// Key of all random draws.
    pub seed: u64,
    /// Stop when the first metric of the first validation set has not improved for so many rounds.
    pub early_stopping_rounds: Option<u32>,
    /// The metrics of every round, such as `ndcg@10`; the first decides on early stopping.
    pub metrics: Vec<crate::metric::Metric>,
}
