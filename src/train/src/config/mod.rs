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

/// Parameters of listwise trees.
#[derive(Debug, Clone, PartialEq)]
pub struct ListwiseParameters {
    /// Number of top levels with listwise splits; deeper levels use the forest's criterion.
    pub levels: Option<u32>,
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Rank discount.
    pub discount: Discount,
    /// Number of top ranks that count; `None` for all.
    pub truncation: Option<u32>,
}

/// Parameters of forests.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestParameters {
    /// Split criterion.
    pub criterion: CriterionName,
    /// Whether rows or queries are drawn with replacement.
    pub bootstrap: bool,
    /// Maximum pairs per document; `None` learns labels instead of pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether the metrics of each single tree are logged too.
    pub tree_strength: bool,
    /// Parameters of listwise trees.
    pub listwise: ListwiseParameters,
}

impl ForestParameters {
    /// Whether any level of a tree is split by the ranking of whole queries.
    pub fn is_listwise(&self) -> bool {
        self.criterion == CriterionName::Ndcg || self.listwise.levels.is_some()
    }
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

/// Validated training parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Ensemble type.
    pub ensemble: EnsembleName,
    /// Parameters of forests.
    pub forest: ForestParameters,
    /// Training objective.
    pub objective: ObjectiveName,
    /// The metric that LambdaRank optimises.
    pub lambda_metric: Metric,
    /// At least one document of a pair is in the top K by score; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Steepness of the sigmoid in the pairwise loss.
    pub sigma: f64,
    /// Whether pair weights are normalised by score distance, and gradients by their total per query.
    pub lambda_norm: bool,
    /// Score margin of GBRANK.
    pub margin: f64,
    /// Gain of each label, for LambdaRank and listwise trees.
    pub label_gain: Gain,
    /// Minimum label that counts as relevant.
    pub relevant_from: f32,
    /// Whether labels are clicks subject to position bias.
    pub unbiased: bool,
    /// Regularisation of the position bias.
    pub bias_norm: f64,
    /// Initial score.
    pub base_score: BaseScore,
    /// Metric convention.
    pub convention: Convention,
    /// Minimum sum of hessians per leaf.
    pub min_sum_hessian: f64,
    /// Source of candidate splits.
    pub candidates: Candidates,
    /// Maximum number of trees.
    pub num_trees: u32,
    /// Shrinkage factor applied to leaf values.
    pub learning_rate: f64,
    /// Maximum depth of a tree.
    pub max_depth: Option<u32>,
    /// Maximum leaves per tree; if set, trees grow best-first, otherwise level by level.
    pub num_leaves: Option<u32>,
    /// Minimum rows per leaf.
    pub min_data_in_leaf: u64,
    /// Minimum gain of a split.
    pub min_gain: f64,
    /// L2 regularisation of leaf values.
    pub lambda_l2: f64,
    /// Maximum bins per feature (static), or centroids per feature and node (streaming).
    pub max_bin: u32,
    /// Streaming: maximum groups of neighbouring values per feature; 0 keeps all values distinct.
    pub value_groups: u32,
    /// Streaming: number of workers, each with its own partitions and histograms.
    pub workers: u32,
    /// Fraction of rows or queries sampled for each tree.
    pub bagging_fraction: f64,
    /// Unit of sampling.
    pub bagging_by: Sampling,
    /// Number of queries sampled for each tree, instead of a fraction.
    pub queries_per_tree: Option<u32>,
    /// Fraction of features sampled for each tree.
    pub feature_fraction: f64,
    /// Number of features sampled for each node, out of those of the tree.
    pub features_per_node: FeatureCount,
    /// Replacement of missing values.
    pub missing: MissingPolicy,
    /// Random seed.
    pub seed: u64,
    /// Stop after this many rounds without improvement of the first metric on the first validation set.
    pub early_stopping_rounds: Option<u32>,
    /// Metrics computed after each round, such as `ndcg@10`; the first one drives early stopping.
    pub metrics: Vec<planetree_metric::Metric>,
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

impl Parameters {
    /// All parameters as `key = value` lines of TOML, in a fixed order.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for key in &keys::KEYS {
            if let Some(value) = key.print(self) {
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
