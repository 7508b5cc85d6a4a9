//! What to train: parameters under the names people know, presets, and their checks.
//!
//! ```text
//! preset ──► config file ──► --set ──► settings ──check──► parameters
//!        later ones replace earlier ones
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
pub use presets::{Preset, presets};
pub use source::value_text;

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_metric::{Convention, Discount, Gain, Metric};
use settings::Settings;
use std::fmt::Write;

/// What the trees are trained for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveName {
    /// The labels themselves, by squared error.
    Squared,
    /// Whether a label is relevant, by log loss.
    Logistic,
    /// The order of every pair, by logistic cost.
    RankNet,
    /// The same, each pair by what it means to a metric.
    LambdaRank,
    /// The order of every pair, by squared hinge cost.
    GbRank,
    /// The distribution over a query's documents that bounds NDCG.
    XeNdcg,
    /// The distribution over a query's documents that the labels make.
    ListNet,
    /// Differences of labels within a query.
    QueryRmse,
}

/// How trees become a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleName {
    /// Each tree mends what those before it got wrong; their values add up.
    Boost,
    /// Each tree is grown from the labels, on rows and features of its own; their mean counts.
    Bag,
}

/// What makes a split of a forest's tree a good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriterionName {
    /// By how much the squared distance of labels from their mean shrinks.
    Variance,
    /// By how much the entropy of the labels shrinks.
    Entropy,
    /// By how much the chance of mistaking one label for another shrinks.
    Gini,
    /// By how much the expected NDCG of whole queries grows.
    Ndcg,
}

/// Which leaf of a listwise tree is split next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// The one that waits longest: level by level.
    Breadth,
    /// Any.
    Random,
    /// The one with most rows.
    Biggest,
    /// The one with the highest score.
    MostRelevant,
}

/// What listwise trees alone have.
#[derive(Debug, Clone, PartialEq)]
pub struct ListwiseParameters {
    /// Levels of a tree whose splits are listwise, before another criterion takes over.
    pub levels: Option<u32>,
    /// Which leaf is split next.
    pub order: LeafOrder,
    /// What a gain is multiplied by at a rank.
    pub discount: Discount,
    /// Ranks that count; `None` for all.
    pub truncation: Option<u32>,
}

/// What forests alone have.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestParameters {
    /// What makes a split a good one.
    pub criterion: CriterionName,
    /// Whether rows or queries are drawn with replacement.
    pub bootstrap: bool,
    /// The pairs of documents a document is in at most; `None` learns labels, not pairs.
    pub pairs_per_document: Option<u32>,
    /// Whether every tree is also judged alone.
    pub tree_strength: bool,
    /// What listwise trees alone have.
    pub listwise: ListwiseParameters,
}

impl ForestParameters {
    /// Whether the ranking of whole queries decides on splits, of all levels or of some.
    pub fn is_listwise(&self) -> bool {
        self.criterion == CriterionName::Ndcg || self.listwise.levels.is_some()
    }
}

/// The score before the first tree.
#[derive(Debug, Clone, PartialEq)]
pub enum BaseScore {
    /// What fits best: the mean label, log odds, or 0.
    Auto,
    /// A number.
    Constant(f64),
    /// The values of a feature.
    Feature(String),
}

/// Where candidate splits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// Bins of equal depth, found once before the training (PLANET).
    Static,
    /// Centroids found anew for every node (Ben-Haim & Yom-Tov, pGBRT).
    Streaming,
    /// The middle between any two neighbouring values of a node (CART).
    Exact,
    /// One value between the least and the greatest of a node, drawn at random; forests only.
    Random,
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
    /// How trees become a model.
    pub ensemble: EnsembleName,
    /// What forests alone have.
    pub forest: ForestParameters,
    /// What the trees are trained for.
    pub objective: ObjectiveName,
    /// What a pair means to LambdaRank.
    pub lambda_metric: Metric,
    /// One document of a pair is among so many best.
    pub truncation_level: Option<u32>,
    /// How steep the logistic cost of a pair is.
    pub sigma: f64,
    /// Whether pairs count by the distance of their scores, and queries in proportion.
    pub lambda_norm: bool,
    /// The margin of GBRANK.
    pub margin: f64,
    /// What labels are worth to LambdaRank.
    pub label_gain: Gain,
    /// Labels from this on are relevant.
    pub relevant_from: f32,
    /// Whether labels are clicks that depend on positions.
    pub unbiased: bool,
    /// How little positions are taken to matter.
    pub bias_norm: f64,
    /// The score before the first tree.
    pub base_score: BaseScore,
    /// By which rules metrics are taken.
    pub convention: Convention,
    /// What the hessians of a leaf's rows add up to at least.
    pub min_sum_hessian: f64,
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
    /// Streaming: workers that the partitions are dealt to, each with histograms of its own.
    pub workers: u32,
    /// The share of rows or queries that a tree sees.
    pub bagging_fraction: f64,
    /// What is drawn.
    pub bagging_by: Sampling,
    /// The number of queries that a tree sees, instead of a share.
    pub queries_per_tree: Option<u32>,
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
    pub metrics: Vec<planetree_metric::Metric>,
}

/// The parameters of a training: those of a preset, then those of a TOML file, then those of
/// `key=value` arguments; later ones replace earlier ones. The file may name the preset; the
/// argument `preset` goes before it.
pub fn load(preset: Option<&str>, config: Option<&Location>, set: &[String]) -> Result<Parameters> {
    load_with(preset, config, set, &[])
}

/// The same, and then what was chosen elsewhere, which replaces all of them.
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
        (None, Some(other)) => Preset::named(&other.text).map_err(|error| {
            Error::usage(format_args!("{}: {error}", other.place), error.remedy().unwrap_or_default())
        })?,
        (name, _) => Preset::named(name.unwrap_or(presets::DEFAULT))?,
    };
    let mut settings = Settings::default();
    settings.add(preset.settings()?)?;
    settings.add(file.map(|file| file.settings).unwrap_or_default())?;
    settings.add(source::read_command(set)?)?;
    settings.add(choices.iter().map(Choice::setting).collect::<Result<_>>()?)?;
    settings.check()
}

fn read_file(location: &Location) -> Result<source::Document> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::usage(format_args!("{location}: this is no text"), "name a TOML file"))?;
    source::read_toml(&location.to_string(), text.trim_start_matches('\u{feff}'), &["preset"])
}

impl Parameters {
    /// Every parameter as `key = value` lines of TOML, always in the same order.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for key in &keys::KEYS {
            if let Some(value) = key.print(self) {
                let _ = writeln!(text, "{} = {value}", key.name); // a String takes everything
            }
        }
        text
    }

    /// Reads and checks what [`Parameters::to_toml`] printed; what is not there has its default.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut settings = Settings::default();
        settings.add(source::read_toml("configuration", text, &[])?.settings)?;
        settings.check()
    }

    /// Refuses early stopping when there is nothing to validate on.
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
    /// How many out of so many: at least 1, at most all.
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
