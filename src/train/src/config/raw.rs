//! Holds all parameters in one flat struct, as they were parsed. [`Parameters`] contains only those of the chosen
//! learner.

use super::{
    BaseScore, BoostCandidates, BoostParameters, Candidates, CriterionName, EnsembleName, FeatureCount,
    ForestCandidates, ForestCriterion, ForestParameters, LeafOrder, LeafScore, LeafStep, LearnerParameters,
    LinearLoss, LinearParameters, ListwiseParameters, MissingPolicy, ObjectiveName, ObjectiveParameters,
    PairwiseLoss, PairwiseParameters, Parameters, PointCriterion, RowSampling, Sampling, SplitBy,
    StreamingParameters, TreeParameters,
};
use planetree_data::LabelMap;
use planetree_metric::{Convention, Discount, Gain, Metric};
use planetree_model::model::FeatureNormalisation;

/// Parameters of listwise trees, before validation.
#[derive(Debug, Clone, PartialEq)]
pub struct RawListwise {
    /// Number of top levels with listwise splits. Deeper levels use the forest's criterion; `None` if all levels use
    /// it.
    pub levels: Option<u32>,
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Discount of a document's gain by rank.
    pub discount: Discount,
    /// Number of top ranks that contribute to NDCG; `None` for all.
    pub truncation: Option<u32>,
    /// Metric whose expected value chooses splits.
    pub metric: Metric,
    /// Fraction of the queries sampled for the gains of each node.
    pub queries_per_node: f64,
}

/// Parameters of forests, before validation.
#[derive(Debug, Clone, PartialEq)]
pub struct RawForest {
    /// Split criterion.
    pub criterion: CriterionName,
    /// Whether rows or queries are sampled with replacement.
    pub bootstrap: bool,
    /// Maximum number of pairs per document; `None` trains on single documents instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are also logged.
    pub tree_strength: bool,
    /// Whether more features are sampled if all those of a node are constant in it.
    pub redraw_features: bool,
    /// How leaf values follow from labels that are classes.
    pub leaf_score: LeafScore,
    /// Parameters of listwise trees.
    pub listwise: RawListwise,
}

impl RawForest {
    /// Returns whether any level of a tree is split by the ranking of whole queries.
    pub fn is_listwise(&self) -> bool {
        self.criterion == CriterionName::Ndcg || self.listwise.levels.is_some()
    }
}

/// All parameters in one flat struct, with one field per key.
#[derive(Debug, Clone, PartialEq)]
pub struct RawParameters {
    /// Ensemble type.
    pub ensemble: EnsembleName,
    /// Parameters of forests.
    pub forest: RawForest,
    /// Training objective.
    pub objective: ObjectiveName,
    /// The metric that LambdaRank optimises.
    pub lambda_metric: Metric,
    /// Uses only pairs with at least one of this many top-scored documents; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Steepness of the sigmoid in the pairwise loss.
    pub sigma: f64,
    /// Whether pair weights are divided by the score distance, and the gradients of a query are normalised by their
    /// total.
    pub lambda_norm: bool,
    /// Score difference that GBRANK requires between the two documents of a pair.
    pub margin: f64,
    /// Gain of each label, for LambdaRank and listwise trees.
    pub label_gain: Gain,
    /// Minimum label that counts as relevant.
    pub relevant_from: f32,
    /// Whether labels are clicks and the objective corrects for position bias.
    pub unbiased: bool,
    /// Regularisation of the position bias; larger values weaken the correction.
    pub bias_norm: f64,
    /// Initial score, before the first tree.
    pub base_score: BaseScore,
    /// Rules by which metrics are computed, such as those of LightGBM.
    pub convention: Convention,
    /// Map of labels to others; `None` if they are used as they are.
    pub label_map: Option<LabelMap>,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
    /// Source of candidate splits.
    pub candidates: Candidates,
    /// Maximum number of trees.
    pub num_trees: u32,
    /// Shrinkage factor applied to leaf values.
    pub learning_rate: f64,
    /// Maximum depth of a tree; `None` for no limit.
    pub max_depth: Option<u32>,
    /// Maximum number of leaves per tree. If set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// Minimum rows per leaf.
    pub min_data_in_leaf: u64,
    /// Minimum rows of a node that is split.
    pub min_data_to_split: u64,
    /// Minimum gain of a split.
    pub min_gain: f64,
    /// How splits are scored.
    pub split_by: SplitBy,
    /// How leaf values are computed.
    pub leaf: LeafStep,
    /// L2 regularisation of leaf values or weights.
    pub lambda_l2: f64,
    /// How linear models normalise features.
    pub normalise_features: FeatureNormalisation,
    /// Maximum number of bins per feature (static, random), or of centroids per feature and node (streaming).
    pub max_bin: u32,
    /// Streaming: maximum number of groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Streaming: number of workers, each with its own queries and histograms.
    pub workers: u32,
    /// Fraction of rows or queries sampled for each tree.
    pub bagging_fraction: f64,
    /// Whether rows or whole queries are sampled.
    pub bagging_by: Sampling,
    /// Whether all trees have the same sample.
    pub bagging_per_run: bool,
    /// Number of queries sampled for each tree; `None` if `bagging_fraction` applies.
    pub queries_per_tree: Option<u32>,
    /// Fraction of features sampled for each tree.
    pub feature_fraction: f64,
    /// Number of features sampled for each node from the features of its tree.
    pub features_per_node: FeatureCount,
    /// How missing values are handled.
    pub missing: MissingPolicy,
    /// Random seed.
    pub seed: u64,
    /// Number of rounds without improvement of the first metric on the first validation set after which training stops;
    /// `None` never stops early.
    pub early_stopping_rounds: Option<u32>,
    /// Metrics computed after each round, such as `ndcg@10`; the first one drives early stopping.
    pub metrics: Vec<Metric>,
}

impl RawParameters {
    /// Converts to the parameters of the chosen learner. Validation has already rejected combinations that no learner
    /// supports.
    pub fn into_parameters(self) -> Parameters {
        let tree = TreeParameters {
            max_depth: self.max_depth,
            min_data_in_leaf: self.min_data_in_leaf,
            min_data_to_split: self.min_data_to_split,
            min_gain: self.min_gain,
            feature_fraction: self.feature_fraction,
            features_per_node: self.features_per_node,
            sampling: RowSampling {
                fraction: self.bagging_fraction,
                unit: self.bagging_by,
                queries: self.queries_per_tree,
                per_run: self.bagging_per_run,
            },
        };
        let learner = match self.ensemble {
            EnsembleName::Boost => LearnerParameters::Boost(BoostParameters {
                tree,
                candidates: match self.candidates {
                    Candidates::Static | Candidates::Random => {
                        BoostCandidates::Static { max_bin: self.max_bin }
                    }
                    Candidates::Streaming => BoostCandidates::Streaming(StreamingParameters {
                        max_bin: self.max_bin,
                        value_groups: self.value_groups,
                        workers: self.workers,
                    }),
                    Candidates::Exact => BoostCandidates::Exact,
                },
                objective: self.objective(),
                base_score: self.base_score,
                learning_rate: self.learning_rate,
                num_leaves: self.num_leaves,
                split_by: self.split_by,
                leaf: self.leaf,
                lambda_l2: self.lambda_l2,
                min_sum_hessian: self.min_sum_hessian,
            }),
            EnsembleName::Bag => LearnerParameters::Forest(ForestParameters {
                tree,
                candidates: match self.candidates {
                    Candidates::Static | Candidates::Streaming => {
                        ForestCandidates::Static { max_bin: self.max_bin }
                    }
                    Candidates::Exact => ForestCandidates::Exact,
                    Candidates::Random => ForestCandidates::Random { max_bin: self.max_bin },
                },
                criterion: self.criterion(),
                bootstrap: self.forest.bootstrap,
                pairs_per_document: self.forest.pairs_per_document,
                tree_strength: self.forest.tree_strength,
                redraw_features: self.forest.redraw_features,
                leaf_score: self.forest.leaf_score,
                label_gain: self.label_gain,
            }),
            EnsembleName::Linear => LearnerParameters::Linear(LinearParameters {
                loss: match self.objective {
                    ObjectiveName::Logistic => LinearLoss::Logistic { relevant_from: self.relevant_from },
                    _ => LinearLoss::Squared,
                },
                normalisation: self.normalise_features,
                lambda_l2: self.lambda_l2,
            }),
        };
        Parameters {
            num_trees: self.num_trees,
            seed: self.seed,
            missing: self.missing,
            metrics: self.metrics.into_iter().map(|metric| self.convention.meant(metric)).collect(),
            convention: self.convention,
            label_map: self.label_map,
            early_stopping_rounds: self.early_stopping_rounds,
            learner,
        }
    }

    fn objective(&self) -> ObjectiveParameters {
        let pairwise = |loss: PairwiseLoss, metric: Option<Metric>| {
            ObjectiveParameters::Pairwise(PairwiseParameters {
                loss,
                metric,
                truncation_level: self.truncation_level,
                normalised: self.lambda_norm,
                label_gain: self.label_gain.clone(),
                relevant_from: self.relevant_from,
            })
        };
        let logistic =
            PairwiseLoss::Logistic { sigma: self.sigma, unbiased: self.unbiased, bias_norm: self.bias_norm };
        match self.objective {
            ObjectiveName::Squared => ObjectiveParameters::Squared,
            ObjectiveName::Logistic => ObjectiveParameters::Logistic { relevant_from: self.relevant_from },
            ObjectiveName::RankNet => pairwise(logistic, None),
            ObjectiveName::LambdaRank => pairwise(logistic, Some(self.lambda_metric)),
            ObjectiveName::GbRank => pairwise(PairwiseLoss::Hinge { margin: self.margin }, None),
            ObjectiveName::XeNdcg => ObjectiveParameters::XeNdcg,
            ObjectiveName::ListNet => ObjectiveParameters::ListNet,
            ObjectiveName::QueryRmse => ObjectiveParameters::QueryRmse,
        }
    }

    fn criterion(&self) -> ForestCriterion {
        let RawListwise { levels, order, discount, truncation, metric, queries_per_node } =
            &self.forest.listwise;
        let listwise = ListwiseParameters {
            order: *order,
            discount: *discount,
            truncation: *truncation,
            metric: *metric,
            queries_per_node: *queries_per_node,
        };
        let below = match self.forest.criterion {
            CriterionName::Ndcg => return ForestCriterion::Listwise(listwise),
            CriterionName::Variance => PointCriterion::Variance,
            CriterionName::Entropy => PointCriterion::Entropy,
            CriterionName::Gini => PointCriterion::Gini,
        };
        match levels {
            None => ForestCriterion::Pointwise(below),
            Some(levels) => ForestCriterion::Hybrid { levels: *levels, listwise, below },
        }
    }

    /// Converts parameters back to the flat struct, to print them. Keys that the learner does not use have their values
    /// from `neutral`.
    pub fn of(parameters: &Parameters, neutral: RawParameters) -> Self {
        let mut raw = RawParameters {
            num_trees: parameters.num_trees,
            seed: parameters.seed,
            missing: parameters.missing,
            metrics: parameters.metrics.clone(),
            convention: parameters.convention.clone(),
            label_map: parameters.label_map.clone(),
            early_stopping_rounds: parameters.early_stopping_rounds,
            ..neutral
        };
        let tree = match &parameters.learner {
            LearnerParameters::Boost(boost) => {
                raw.set_boost(boost);
                &boost.tree
            }
            LearnerParameters::Forest(forest) => {
                raw.set_forest(forest);
                &forest.tree
            }
            LearnerParameters::Linear(linear) => {
                raw.set_linear(linear);
                return raw;
            }
        };
        RawParameters {
            max_depth: tree.max_depth,
            min_data_in_leaf: tree.min_data_in_leaf,
            min_data_to_split: tree.min_data_to_split,
            min_gain: tree.min_gain,
            feature_fraction: tree.feature_fraction,
            features_per_node: tree.features_per_node,
            bagging_fraction: tree.sampling.fraction,
            bagging_by: tree.sampling.unit,
            queries_per_tree: tree.sampling.queries,
            bagging_per_run: tree.sampling.per_run,
            ..raw
        }
    }

    fn set_boost(&mut self, boost: &BoostParameters) {
        self.ensemble = EnsembleName::Boost;
        self.base_score = boost.base_score.clone();
        self.learning_rate = boost.learning_rate;
        self.num_leaves = boost.num_leaves;
        self.split_by = boost.split_by;
        self.leaf = boost.leaf;
        self.lambda_l2 = boost.lambda_l2;
        self.min_sum_hessian = boost.min_sum_hessian;
        (self.value_groups, self.workers) = (0, 0);
        (self.candidates, self.max_bin) = match &boost.candidates {
            BoostCandidates::Static { max_bin } => (Candidates::Static, *max_bin),
            BoostCandidates::Exact => (Candidates::Exact, 0),
            BoostCandidates::Streaming(streaming) => {
                (self.value_groups, self.workers) = (streaming.value_groups, streaming.workers);
                (Candidates::Streaming, streaming.max_bin)
            }
        };
        self.objective = boost.objective.name();
        match &boost.objective {
            ObjectiveParameters::Logistic { relevant_from } => self.relevant_from = *relevant_from,
            ObjectiveParameters::Pairwise(pairwise) => {
                match pairwise.loss {
                    PairwiseLoss::Hinge { margin } => self.margin = margin,
                    PairwiseLoss::Logistic { sigma, unbiased, bias_norm } => {
                        (self.sigma, self.unbiased, self.bias_norm) = (sigma, unbiased, bias_norm);
                    }
                }
                self.truncation_level = pairwise.truncation_level;
                self.lambda_norm = pairwise.normalised;
                if let Some(metric) = pairwise.metric {
                    self.lambda_metric = metric;
                    self.label_gain = pairwise.label_gain.clone();
                    self.relevant_from = pairwise.relevant_from;
                }
            }
            ObjectiveParameters::Squared
            | ObjectiveParameters::XeNdcg
            | ObjectiveParameters::ListNet
            | ObjectiveParameters::QueryRmse => {}
        }
    }

    fn set_linear(&mut self, linear: &LinearParameters) {
        self.ensemble = EnsembleName::Linear;
        self.lambda_l2 = linear.lambda_l2;
        self.normalise_features = linear.normalisation;
        self.objective = match &linear.loss {
            LinearLoss::Squared => ObjectiveName::Squared,
            LinearLoss::Logistic { relevant_from } => {
                self.relevant_from = *relevant_from;
                ObjectiveName::Logistic
            }
        };
    }

    fn set_forest(&mut self, forest: &ForestParameters) {
        self.ensemble = EnsembleName::Bag;
        self.learning_rate = 1.0;
        self.num_leaves = None;
        self.lambda_l2 = 0.0;
        self.min_sum_hessian = 0.0;
        (self.value_groups, self.workers) = (0, 0);
        self.label_gain = forest.label_gain.clone();
        (self.candidates, self.max_bin) = match forest.candidates {
            ForestCandidates::Static { max_bin } => (Candidates::Static, max_bin),
            ForestCandidates::Exact => (Candidates::Exact, 0),
            ForestCandidates::Random { max_bin } => (Candidates::Random, max_bin),
        };
        self.forest.bootstrap = forest.bootstrap;
        self.forest.pairs_per_document = forest.pairs_per_document;
        self.forest.tree_strength = forest.tree_strength;
        self.forest.redraw_features = forest.redraw_features;
        self.forest.leaf_score = forest.leaf_score;
        let named = |criterion: PointCriterion| match criterion {
            PointCriterion::Variance => CriterionName::Variance,
            PointCriterion::Entropy => CriterionName::Entropy,
            PointCriterion::Gini => CriterionName::Gini,
        };
        let (criterion, levels, listwise) = match &forest.criterion {
            ForestCriterion::Pointwise(criterion) => (named(*criterion), None, None),
            ForestCriterion::Listwise(listwise) => (CriterionName::Ndcg, None, Some(listwise)),
            ForestCriterion::Hybrid { levels, listwise, below } => {
                (named(*below), Some(*levels), Some(listwise))
            }
        };
        self.forest.criterion = criterion;
        self.forest.listwise.levels = levels;
        if let Some(ListwiseParameters { order, discount, truncation, metric, queries_per_node }) = listwise {
            self.forest.listwise = RawListwise {
                levels,
                order: *order,
                discount: *discount,
                truncation: *truncation,
                metric: *metric,
                queries_per_node: *queries_per_node,
            };
        }
    }
}

/// Returns placeholder values, all of which are overwritten from the table of parameters.
pub fn blank() -> RawParameters {
    RawParameters {
        ensemble: EnsembleName::Boost,
        forest: RawForest {
            criterion: CriterionName::Variance,
            bootstrap: false,
            pairs_per_document: None,
            tree_strength: false,
            redraw_features: false,
            leaf_score: LeafScore::Expected,
            listwise: RawListwise {
                levels: None,
                order: LeafOrder::Breadth,
                discount: Discount::Log2,
                truncation: None,
                metric: Metric::Ndcg(None),
                queries_per_node: 0.0,
            },
        },
        objective: ObjectiveName::Squared,
        lambda_metric: Metric::Ndcg(None),
        truncation_level: None,
        sigma: 0.0,
        lambda_norm: false,
        margin: 0.0,
        label_gain: Gain::Exp2,
        relevant_from: 0.0,
        unbiased: false,
        bias_norm: 0.0,
        base_score: BaseScore::Auto,
        convention: Convention::default(),
        label_map: None,
        min_sum_hessian: 0.0,
        candidates: Candidates::Static,
        num_trees: 0,
        learning_rate: 0.0,
        max_depth: None,
        num_leaves: None,
        min_data_in_leaf: 0,
        min_data_to_split: 0,
        min_gain: 0.0,
        split_by: SplitBy::Newton,
        leaf: LeafStep::Newton,
        lambda_l2: 0.0,
        normalise_features: FeatureNormalisation::None,
        max_bin: 0,
        value_groups: 0,
        workers: 0,
        bagging_fraction: 0.0,
        bagging_by: Sampling::Rows,
        bagging_per_run: false,
        queries_per_tree: None,
        feature_fraction: 0.0,
        features_per_node: FeatureCount::All,
        missing: MissingPolicy::Zero,
        seed: 0,
        early_stopping_rounds: None,
        metrics: Vec::new(),
    }
}
