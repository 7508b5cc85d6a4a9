//! Training parameters: names and aliases, presets, validation.
//!
//! ```text
//! preset ──► config file ──► --set ──► settings ──check──► parameters
//!        later sources override earlier ones
//! ```

mod choice;
mod help;
mod keys;
mod presets;
mod raw;
mod settings;
mod source;
mod value;
mod words;

pub use choice::{Choice, ValueKind, kind_of};
pub use help::help_table;
pub use help::wrap;
pub use presets::{TrainPreset, presets};
pub use source::value_text;

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_metric::{Convention, Discount, Gain, Metric};
use settings::TrainSettings;
use std::fmt::Write;

/// Training objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveName {
    /// Regression on the labels, squared error.
    Squared,
    /// Binary relevance, log loss.
    Logistic,
    /// Pairwise, logistic loss.
    RankNet,
    /// RankNet with every pair weighted by the change of a metric under a swap.
    LambdaRank,
    /// Pairwise, squared hinge loss.
    GbRank,
    /// Listwise cross entropy that bounds NDCG.
    XeNdcg,
    /// Listwise cross entropy with the softmax of the labels.
    ListNet,
    /// Squared error of label differences within a query.
    QueryRmse,
}

/// Ensemble type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleName {
    /// Gradient boosting: each tree fits the errors of its predecessors; scores are sums.
    Boost,
    /// Random forest: each tree fits the labels on sampled rows and features; scores are means.
    Bag,
}

/// Split criterion of forests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriterionName {
    /// Reduction of the labels' sum of squares about the mean.
    Variance,
    /// Reduction of the labels' entropy.
    Entropy,
    /// Reduction of the labels' Gini impurity.
    Gini,
    /// Increase of the expected NDCG of whole queries.
    Ndcg,
}

/// Order in which the leaves of a listwise tree are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// Oldest leaf first: level by level.
    Breadth,
    /// A random leaf.
    Random,
    /// The leaf with the most rows.
    Biggest,
    /// The leaf with the highest score.
    MostRelevant,
}

/// Initial score, before the first tree.
#[derive(Debug, Clone, PartialEq)]
pub enum BaseScore {
    /// The best constant for the objective: the mean label, the log odds, or 0.
    Auto,
    /// A number.
    Constant(f64),
    /// The values of a feature.
    Feature(String),
}

/// Source of candidate splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// Equi-depth bins, computed once before training (PLANET).
    Static,
    /// Centroids recomputed for every node (Ben-Haim & Yom-Tov, pGBRT).
    Streaming,
    /// Midpoints between all neighbouring values of a node (CART).
    Exact,
    /// One random value between the minimum and maximum of a node; forests only.
    Random,
}

/// Replacement of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingPolicy {
    /// The number 0.
    Zero,
    /// The number 1.
    One,
    /// The feature's mean over the training rows that have it.
    Mean,
    /// The feature's median over the training rows that have it.
    Median,
    /// Each split sends missing values to the side with the higher gain.
    Learned,
}

/// Unit of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Single rows.
    Rows,
    /// Queries with all their rows.
    Queries,
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

/// How queries or rows of a tree are sampled, without replacement unless the learner says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSampling {
    /// Fraction sampled for each tree.
    pub fraction: f64,
    /// Unit of sampling.
    pub unit: Sampling,
    /// Number of queries sampled for each tree, instead of a fraction.
    pub queries: Option<u32>,
}

/// Parameters of growing a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeParameters {
    /// Maximum depth of a tree.
    pub max_depth: Option<u32>,
    /// Minimum rows per leaf.
    pub min_data_in_leaf: u64,
    /// Minimum gain of a split.
    pub min_gain: f64,
    /// Fraction of features sampled for each tree.
    pub feature_fraction: f64,
    /// Number of features sampled for each node, out of those of the tree.
    pub features_per_node: FeatureCount,
    /// Rows sampled for each tree.
    pub sampling: RowSampling,
}

/// Parameters of streaming candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamingParameters {
    /// Maximum centroids per feature and node.
    pub max_bin: u32,
    /// Maximum groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Number of workers, each with its own rows and histograms.
    pub workers: u32,
}

/// Candidate splits of boosting; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoostCandidates {
    /// Equi-depth bins.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Centroids of a node.
    Streaming(StreamingParameters),
    /// Every midpoint.
    Exact,
}

/// Loss of the score difference of two documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairLoss {
    /// RankNet and LambdaRank.
    Logistic {
        /// Steepness of the sigmoid.
        sigma: f64,
        /// Whether labels are clicks subject to position bias.
        unbiased: bool,
        /// Regularisation of the position bias.
        bias_norm: f64,
    },
    /// GBRANK: squared hinge.
    Hinge {
        /// Required score margin.
        margin: f64,
    },
}

/// Parameters of pairwise objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseParameters {
    /// The loss of a pair.
    pub loss: PairLoss,
    /// The metric that LambdaRank optimises; `None` weights all pairs equally.
    pub metric: Option<Metric>,
    /// At least one document of a pair is in the top K by score; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Whether pair weights are normalised by score distance, and gradients by their total per query.
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
    /// Listwise cross entropy with the softmax of the labels.
    ListNet,
    /// Squared error of label differences within a query.
    QueryRmse,
}

impl ObjectiveParameters {
    /// Its name.
    pub fn name(&self) -> ObjectiveName {
        match self {
            ObjectiveParameters::Squared => ObjectiveName::Squared,
            ObjectiveParameters::Logistic { .. } => ObjectiveName::Logistic,
            ObjectiveParameters::Pairwise(pairwise) => match (pairwise.loss, pairwise.metric) {
                (PairLoss::Hinge { .. }, _) => ObjectiveName::GbRank,
                (PairLoss::Logistic { .. }, None) => ObjectiveName::RankNet,
                (PairLoss::Logistic { .. }, Some(_)) => ObjectiveName::LambdaRank,
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
    /// Growing a tree.
    pub tree: TreeParameters,
    /// Candidate splits.
    pub candidates: BoostCandidates,
    /// Training objective.
    pub objective: ObjectiveParameters,
    /// Initial score.
    pub base_score: BaseScore,
    /// Shrinkage factor applied to leaf values.
    pub learning_rate: f64,
    /// Maximum leaves per tree; if set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// L2 regularisation of leaf values.
    pub lambda_l2: f64,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
}

/// Candidate splits of forests; see [`Candidates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestCandidates {
    /// Equi-depth bins.
    Static {
        /// Maximum bins per feature.
        max_bin: u32,
    },
    /// Every midpoint.
    Exact,
    /// One random cut per feature and node.
    Random {
        /// Maximum bins per feature; 0 keeps all values distinct.
        max_bin: u32,
    },
}

impl ForestCandidates {
    /// Maximum bins per feature; `None` keeps all values distinct.
    pub fn max_bin(self) -> Option<usize> {
        match self {
            ForestCandidates::Static { max_bin } => Some(max_bin as usize),
            ForestCandidates::Random { max_bin } => Some(max_bin as usize).filter(|bins| *bins > 0),
            ForestCandidates::Exact => None,
        }
    }
}

impl BoostCandidates {
    /// Maximum bins per feature; `None` keeps all values distinct.
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

/// Split criterion of single rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointCriterion {
    /// Reduction of the labels' sum of squares about the mean.
    Variance,
    /// Reduction of the labels' entropy.
    Entropy,
    /// Reduction of the labels' Gini impurity.
    Gini,
}

/// Parameters of listwise splits.
#[derive(Debug, Clone, PartialEq)]
pub struct ListwiseParameters {
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Rank discount.
    pub discount: Discount,
    /// Number of top ranks that count; `None` for all.
    pub truncation: Option<u32>,
}

/// Split criterion of a forest.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestCriterion {
    /// By single rows.
    Pointwise(PointCriterion),
    /// By the expected NDCG of whole queries.
    Listwise(ListwiseParameters),
    /// Listwise at the top of a tree, pointwise below.
    Hybrid {
        /// Number of listwise levels.
        levels: u32,
        /// The listwise levels.
        listwise: ListwiseParameters,
        /// The criterion below them.
        below: PointCriterion,
    },
}

impl ForestCriterion {
    /// The listwise splits, if any level has them.
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
    /// Growing a tree.
    pub tree: TreeParameters,
    /// Candidate splits.
    pub candidates: ForestCandidates,
    /// Split criterion.
    pub criterion: ForestCriterion,
    /// Whether rows or queries are drawn with replacement.
    pub bootstrap: bool,
    /// Maximum pairs per document; `None` learns labels instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are logged too.
    pub tree_strength: bool,
    /// Gain of each label, for listwise splits and tree strength.
    pub label_gain: Gain,
}

/// Parameters of a boosted training.
pub type BoostSettings = Parameters<BoostParameters>;

/// Parameters of a forest.
pub type ForestSettings = Parameters<ForestParameters>;

/// A learner and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum LearnerParameters {
    /// Gradient boosting.
    Boost(BoostParameters),
    /// A random forest.
    Forest(ForestParameters),
}

/// Validated training parameters: those that all learners share, and those of the learner.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<L = LearnerParameters> {
    /// Maximum number of trees, one per round.
    pub num_trees: u32,
    /// Random seed.
    pub seed: u64,
    /// Replacement of missing values.
    pub missing: MissingPolicy,
    /// Metrics computed after each round, such as `ndcg@10`; the first one drives early stopping.
    pub metrics: Vec<Metric>,
    /// Metric convention.
    pub convention: Convention,
    /// Stop after this many rounds without improvement of the first metric on the first validation set.
    pub early_stopping_rounds: Option<u32>,
    /// The learner's own parameters.
    pub learner: L,
}

/// Loads training parameters from a preset, then a TOML file, then `key=value` arguments; later sources
/// override earlier ones. The file may name the preset; the argument `preset` takes precedence.
pub fn load(preset: Option<&str>, config: Option<&Location>, set: &[String]) -> Result<Parameters> {
    load_with(preset, config, set, &[])
}

/// Like [`load`], with `choices` overriding all other sources.
pub fn load_with(
    preset: Option<&str>,
    config: Option<&Location>,
    set: &[String],
    choices: &[Choice],
) -> Result<Parameters> {
    let file = match config {
        Some(location) => Some(read_file(location)?),
        None => None,
    };
    let in_file = file.as_ref().and_then(|file| file.others.get("preset"));
    let preset = match (preset, in_file) {
        (None, Some(other)) => TrainPreset::named(&other.text).map_err(|error| {
            Error::usage(format_args!("{}: {error}", other.place), error.remedy().unwrap_or_default())
        })?,
        (name, _) => TrainPreset::named(name.unwrap_or(presets::DEFAULT))?,
    };
    let mut settings = TrainSettings::default();
    settings.add(preset.settings()?)?;
    settings.add(file.map(|file| file.settings).unwrap_or_default())?;
    settings.add(source::read_command(set)?)?;
    settings.add(choices.iter().map(Choice::setting).collect::<Result<_>>()?)?;
    settings.check()
}

fn read_file(location: &Location) -> Result<source::ConfigDocument> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::usage(format_args!("{location}: not a text file"), "name a TOML file"))?;
    source::read_toml(&location.to_string(), text.trim_start_matches('\u{feff}'), &["preset"])
}

impl<L> Parameters<L> {
    /// The same parameters with those of another learner.
    pub fn with<M>(&self, learner: M) -> Parameters<M> {
        Parameters {
            num_trees: self.num_trees,
            seed: self.seed,
            missing: self.missing,
            metrics: self.metrics.clone(),
            convention: self.convention.clone(),
            early_stopping_rounds: self.early_stopping_rounds,
            learner,
        }
    }

    /// Rejects early stopping without a validation set.
    pub fn check_validation(&self, has_validation: bool) -> Result<()> {
        match self.early_stopping_rounds {
            Some(rounds) if !has_validation => Err(Error::usage(
                format_args!("early_stopping_rounds = {rounds}: there is no validation set"),
                "name one with --valid, or set early_stopping_rounds=0",
            )),
            _ => Ok(()),
        }
    }
}

impl Parameters {
    /// All parameters as `key = value` lines of TOML, in a fixed order.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let raw = raw::RawParameters::of(self, settings::defaults());
        for key in &keys::KEYS {
            if let Some(value) = key.print(&raw) {
                let _ = writeln!(text, "{} = {value}", key.name); // a String takes everything
            }
        }
        text
    }

    /// Parses and validates the output of [`Parameters::to_toml`]; absent keys take their defaults.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut settings = TrainSettings::default();
        settings.add(source::read_toml("configuration", text, &[])?.settings)?;
        settings.check()
    }

    /// The parameters of boosting, if it is the learner.
    pub fn boost(&self) -> Option<&BoostParameters> {
        match &self.learner {
            LearnerParameters::Boost(boost) => Some(boost),
            LearnerParameters::Forest(_) => None,
        }
    }

    /// The parameters of a forest, if it is the learner.
    pub fn forest(&self) -> Option<&ForestParameters> {
        match &self.learner {
            LearnerParameters::Forest(forest) => Some(forest),
            LearnerParameters::Boost(_) => None,
        }
    }

    /// The parameters of growing a tree.
    pub fn tree(&self) -> &TreeParameters {
        match &self.learner {
            LearnerParameters::Boost(boost) => &boost.tree,
            LearnerParameters::Forest(forest) => &forest.tree,
        }
    }
}

impl RowSampling {
    /// Whether any rows are left out.
    pub fn leaves_out(&self) -> bool {
        self.fraction < 1.0 || self.queries.is_some()
    }
}

impl FeatureCount {
    /// The number of features out of `features`: at least 1, at most all.
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

#[cfg(test)]
mod tests;
