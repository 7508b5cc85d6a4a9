//! Checked training parameters: those that all learners share, and those of each learner. A combination that no learner
//! has cannot be expressed.

use super::{
    BaseScore, FeatureCount, LeafOrder, LeafScore, LeafStep, MissingPolicy, ObjectiveName, Sampling, SplitBy,
};
use planetree_data::LabelMap;
use planetree_metric::{Convention, Discount, Gain, Metric};
use planetree_model::model::FeatureNormalisation;
use serde::{Deserialize, Serialize};

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

/// Parameters for growing a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeParameters {
    /// Maximum depth of a tree; `None` for no limit.
    pub max_depth: Option<u32>,
    /// Minimum rows per leaf.
    pub min_data_in_leaf: u64,
    /// Minimum rows of a node that is split.
    pub min_data_to_split: u64,
    /// Minimum gain of a split.
    pub min_gain: f64,
    /// Fraction of features sampled for each tree.
    pub feature_fraction: f64,
    /// Number of features sampled for each node from the features of its tree. A fraction is of all features.
    pub features_per_node: FeatureCount,
    /// How rows are sampled for each tree.
    pub sampling: RowSampling,
}

/// Parameters of streaming candidate splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamingParameters {
    /// Maximum number of centroids per feature and node.
    pub max_bin: u32,
    /// Maximum number of groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Number of workers, each with its own rows and histograms.
    pub workers: u32,
}

/// How boosting generates candidate splits; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoostCandidates {
    /// Boundaries of bins with about equal numbers of rows.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Quantiles of streaming histograms, which are rebuilt for every node.
    Streaming(StreamingParameters),
    /// Midpoints between all neighbouring values in a node.
    Exact,
}

/// Loss of a document pair as a function of the score difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairwiseLoss {
    /// Logistic loss of RankNet and LambdaRank.
    Logistic {
        /// Steepness of the sigmoid.
        sigma: f64,
        /// Whether labels are clicks and the objective corrects for position bias.
        unbiased: bool,
        /// Regularisation of the position bias; larger values weaken the correction.
        bias_norm: f64,
    },
    /// Squared hinge loss of GBRANK.
    Hinge {
        /// Score difference that is required between the two documents of a pair.
        margin: f64,
    },
}

/// Parameters of pairwise objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseParameters {
    /// Loss of a pair.
    pub loss: PairwiseLoss,
    /// Metric that LambdaRank optimises; `None` weights all pairs equally.
    pub metric: Option<Metric>,
    /// Uses only pairs with at least one of this many top-scored documents; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Whether pair weights are divided by the score distance, and the gradients of a query are normalised by their
    /// total.
    pub normalised: bool,
    /// Gain of each label.
    pub label_gain: Gain,
    /// Minimum label that counts as relevant.
    pub relevant_from: f32,
}

/// The objective of boosting; see [`ObjectiveName`].
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectiveParameters {
    /// Squared error.
    Squared,
    /// Log loss of binary relevance.
    Logistic {
        /// Minimum label that counts as relevant.
        relevant_from: f32,
    },
    /// RankNet, LambdaRank and GBRANK.
    Pairwise(PairwiseParameters),
    /// Listwise cross entropy that bounds NDCG.
    XeNdcg,
    /// Listwise cross entropy between the softmax of the labels and the softmax of the scores.
    ListNet,
    /// Squared error after subtracting the mean error of each query.
    QueryRmse,
}

impl ObjectiveParameters {
    /// Returns the name of the objective.
    pub fn name(&self) -> ObjectiveName {
        match self {
            ObjectiveParameters::Squared => ObjectiveName::Squared,
            ObjectiveParameters::Logistic { .. } => ObjectiveName::Logistic,
            ObjectiveParameters::Pairwise(pairwise) => match (pairwise.loss, pairwise.metric) {
                (PairwiseLoss::Hinge { .. }, _) => ObjectiveName::GbRank,
                (PairwiseLoss::Logistic { .. }, None) => ObjectiveName::RankNet,
                (PairwiseLoss::Logistic { .. }, Some(_)) => ObjectiveName::LambdaRank,
            },
            ObjectiveParameters::XeNdcg => ObjectiveName::XeNdcg,
            ObjectiveParameters::ListNet => ObjectiveName::ListNet,
            ObjectiveParameters::QueryRmse => ObjectiveName::QueryRmse,
        }
    }
}

/// Parameters of boosting.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostParameters {
    /// Parameters for growing a tree.
    pub tree: TreeParameters,
    /// How candidate splits are generated.
    pub candidates: BoostCandidates,
    /// Training objective.
    pub objective: ObjectiveParameters,
    /// Initial score, before the first tree.
    pub base_score: BaseScore,
    /// Shrinkage factor applied to leaf values.
    pub learning_rate: f64,
    /// Maximum number of leaves per tree. If set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// How splits are scored.
    pub split_by: SplitBy,
    /// How leaf values are computed.
    pub leaf: LeafStep,
    /// L2 regularisation of leaf values and of splits, for Newton steps.
    pub lambda_l2: f64,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
}

/// How forests generate candidate splits; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestCandidates {
    /// Boundaries of bins with about equal numbers of rows.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Midpoints between all neighbouring values in a node.
    Exact,
    /// One random value per feature and node.
    Random {
        /// Maximum bins per feature; 0 keeps all values distinct.
        max_bin: u32,
    },
}

impl ForestCandidates {
    /// Returns the maximum number of bins per feature; `None` keeps all values distinct.
    pub fn max_bin(self) -> Option<usize> {
        match self {
            ForestCandidates::Static { max_bin } => Some(max_bin as usize),
            ForestCandidates::Random { max_bin } => Some(max_bin as usize).filter(|bins| *bins > 0),
            ForestCandidates::Exact => None,
        }
    }
}

impl BoostCandidates {
    /// Returns the maximum number of bins per feature; `None` keeps all values distinct.
    pub fn max_bin(self) -> Option<usize> {
        match self {
            BoostCandidates::Static { max_bin } => Some(max_bin as usize),
            BoostCandidates::Streaming(streaming) => {
                Some(streaming.value_groups as usize).filter(|groups| *groups > 0)
            }
            BoostCandidates::Exact => None,
        }
    }
}

/// Split criterion that depends on the labels of single rows, regardless of their queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointCriterion {
    /// Reduction in the sum of squared deviations of the labels from their mean.
    Variance,
    /// Reduction in the entropy of the labels.
    Entropy,
    /// Reduction in the Gini impurity of the labels.
    Gini,
}

/// Parameters of listwise splits, which are chosen by the expected value of a metric over whole queries.
#[derive(Debug, Clone, PartialEq)]
pub struct ListwiseParameters {
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Discount of a document's gain by rank.
    pub discount: Discount,
    /// Number of top ranks that contribute to NDCG; `None` for all.
    pub truncation: Option<u32>,
    /// The metric. NDCG has the gains, discount and truncation of these parameters; other metrics follow the convention
    /// of the training.
    pub metric: Metric,
    /// Fraction of the queries sampled for the gains of each node.
    pub queries_per_node: f64,
}

/// Split criterion of a forest.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestCriterion {
    /// All levels use the labels of single rows.
    Pointwise(PointCriterion),
    /// All levels use the expected metric of whole queries.
    Listwise(ListwiseParameters),
    /// The top levels are listwise, and the levels below are pointwise.
    Hybrid {
        /// Number of listwise levels.
        levels: u32,
        /// Parameters of the listwise levels.
        listwise: ListwiseParameters,
        /// Criterion of the levels below.
        below: PointCriterion,
    },
}

impl ForestCriterion {
    /// Returns the parameters of listwise splits, if any level has them.
    pub fn listwise(&self) -> Option<&ListwiseParameters> {
        match self {
            ForestCriterion::Pointwise(_) => None,
            ForestCriterion::Listwise(listwise) | ForestCriterion::Hybrid { listwise, .. } => Some(listwise),
        }
    }
}

/// Parameters of forests.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestParameters {
    /// Parameters for growing a tree.
    pub tree: TreeParameters,
    /// How candidate splits are generated.
    pub candidates: ForestCandidates,
    /// Split criterion.
    pub criterion: ForestCriterion,
    /// Whether rows or queries are sampled with replacement.
    pub bootstrap: bool,
    /// Maximum number of pairs per document; `None` trains on single documents instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are also logged.
    pub tree_strength: bool,
    /// Whether more features are sampled if all those of a node are constant in it. Listwise splits never do so.
    pub redraw_features: bool,
    /// How leaf values follow from labels that are classes.
    pub leaf_score: LeafScore,
    /// Gain of each label, used by listwise splits and by the metrics of single trees.
    pub label_gain: Gain,
}

/// The loss of a linear model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LinearLoss {
    /// Half the squared error.
    Squared,
    /// Log loss of binary relevance.
    Logistic {
        /// Minimum label that counts as relevant.
        relevant_from: f32,
    },
}

/// Parameters of linear models.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearParameters {
    /// The loss.
    pub loss: LinearLoss,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// L2 regularisation of the weights: the loss includes half this number times the sum of their squares.
    pub lambda_l2: f64,
}

/// Training parameters of a linear model.
pub type LinearSettings = Parameters<LinearParameters>;

/// Training parameters of boosting.
pub type BoostSettings = Parameters<BoostParameters>;

/// Training parameters of a forest.
pub type ForestSettings = Parameters<ForestParameters>;

/// A learner and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum LearnerParameters {
    /// Gradient boosting.
    Boost(BoostParameters),
    /// A random forest.
    Forest(ForestParameters),
    /// A linear model.
    Linear(LinearParameters),
}

/// Validated training parameters: those shared by all learners, and the learner's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<L = LearnerParameters> {
    /// Maximum number of rounds, each of which grows a tree or improves a linear model.
    pub num_trees: u32,
    /// Random seed.
    pub seed: u64,
    /// How missing values are handled.
    pub missing: MissingPolicy,
    /// Metrics computed after each round, such as `ndcg@10`; the first one drives early stopping.
    pub metrics: Vec<Metric>,
    /// Rules by which metrics are computed, such as those of LightGBM.
    pub convention: Convention,
    /// Map of the labels of training and validation data to others; `None` if labels are used as they are.
    pub label_map: Option<LabelMap>,
    /// Number of rounds without improvement of the first metric on the first validation set after which training stops;
    /// `None` never stops early.
    pub early_stopping_rounds: Option<u32>,
    /// Parameters of the learner.
    pub learner: L,
}

impl RowSampling {
    /// Returns whether some rows are left out of each tree.
    pub fn leaves_out(&self) -> bool {
        self.fraction < 1.0 || self.queries.is_some()
    }
}
