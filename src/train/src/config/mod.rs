//! Defines the training parameters with their names, aliases and presets, and validates their values.
//!
//! ```text
//! preset ──► config file ──► --set ──► settings ──check──► parameters
//!        later sources override earlier ones
//! ```

mod choice;
mod forest_checks;
mod help;
mod keys;
mod learner_keys;
mod load;
mod parameters;
mod plan;
mod plan_keys;
mod presets;
mod raw;
mod settings;
mod source;
mod value;
mod words;

pub use choice::{Choice, ValueKind, kind_of};
pub use help::help_table;
pub use help::wrap;
pub use load::{load, load_with};
pub use parameters::{
    BoostCandidates, BoostParameters, BoostSettings, ForestCandidates, ForestCriterion, ForestParameters,
    ForestSettings, LearnerParameters, LinearLoss, LinearParameters, LinearSettings, ListwiseParameters,
    ObjectiveParameters, PairwiseLoss, PairwiseParameters, Parameters, PointCriterion, RowSampling,
    StreamingParameters, TreeParameters,
};
pub use plan::{
    ClassScores, ClassWeights, LeastSquaresData, OrdinalTarget, StageStart, Target, TrainingPlan,
};
pub use presets::{TrainPreset, presets};
pub use source::value_text;

use planetree_base::error::{Error, Result};
use settings::TrainSettings;
use std::fmt::Write;

/// Training objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveName {
    /// Regression on the labels with squared error.
    Squared,
    /// Classification as relevant or not, with log loss.
    Logistic,
    /// Pairwise ranking with logistic loss.
    RankNet,
    /// RankNet with each pair weighted by how much a metric changes when the two documents are swapped.
    LambdaRank,
    /// Pairwise ranking with squared hinge loss.
    GbRank,
    /// Listwise cross entropy that bounds NDCG.
    XeNdcg,
    /// Listwise cross entropy between the softmax of the labels and the softmax of the scores.
    ListNet,
    /// Squared error after subtracting the mean error of each query, so that only differences within a query count.
    QueryRmse,
}

/// Ensemble type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsembleName {
    /// Gradient boosting: each tree fits the errors of its predecessors, and scores are sums over trees.
    Boost,
    /// Random forest: each tree fits the labels on sampled rows and features, and scores are means over trees.
    Bag,
    /// Linear model: scores are weighted sums of the features.
    Linear,
}

/// Split criterion of forests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriterionName {
    /// Reduction in the sum of squared deviations of the labels from their mean.
    Variance,
    /// Reduction in the entropy of the labels.
    Entropy,
    /// Reduction in the Gini impurity of the labels.
    Gini,
    /// Increase in the expected NDCG of whole queries.
    Ndcg,
}

/// Order in which the leaves of a listwise tree are split. Such a tree chooses splits by the expected NDCG of whole
/// queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// The oldest leaf, so that trees grow level by level.
    Breadth,
    /// A random leaf.
    Random,
    /// The leaf with the most rows.
    Biggest,
    /// The leaf with the highest score.
    MostRelevant,
    /// The newest leaf, the left child before the right one, so that a subtree is complete before the next begins.
    Depth,
}

/// How the leaf value of a forest that treats labels as classes follows from the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafScore {
    /// The mean label.
    Expected,
    /// The mean of the squared labels.
    Square,
    /// The mean of 2 to the power of the label.
    Exp2,
}

/// How boosting scores a split, with G the sum of gradients, H the sum of hessians and n the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBy {
    /// G^2 / (H + lambda).
    Newton,
    /// G^2 / n: least squares on the gradients, as in MART (Friedman 2001).
    Gradient,
}

/// How boosting computes leaf values; see [`SplitBy`] for the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafStep {
    /// G / (H + lambda).
    Newton,
    /// G / n, the mean gradient.
    Mean,
}

/// Initial score, before the first tree.
#[derive(Debug, Clone, PartialEq)]
pub enum BaseScore {
    /// The best constant for the objective: the mean label, the log odds, or 0.
    Auto,
    /// A fixed number.
    Constant(f64),
    /// Each row's value of the feature with this name.
    Feature(String),
}

/// Source of candidate splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// Boundaries of bins with about equal numbers of rows, computed once before training, as in PLANET (Panda et al.
    /// 2009).
    Static,
    /// Quantiles of a streaming histogram (Ben-Haim & Yom-Tov 2010), which is rebuilt for every node, as in pGBRT
    /// (Tyree et al. 2011).
    Streaming,
    /// Midpoints between all neighbouring values in a node, as in CART.
    Exact,
    /// One random value between the minimum and maximum in a node; forests only.
    Random,
}

/// How missing values are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingPolicy {
    /// They are replaced by 0.
    Zero,
    /// They are replaced by 1.
    One,
    /// They are replaced by the feature's mean over the training rows that have a value.
    Mean,
    /// They are replaced by the feature's median over the training rows that have a value.
    Median,
    /// They are smaller than all other values, so every split sends them left or separates them from all others.
    Low,
    /// They are larger than all other values, so every split sends them right.
    High,
    /// They are kept, and each split sends them to the side with the higher gain.
    Learned,
}

/// What is sampled for each tree.
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

impl<L> Parameters<L> {
    /// Returns the same parameters with another learner.
    pub fn with<M>(&self, learner: M) -> Parameters<M> {
        Parameters {
            num_trees: self.num_trees,
            seed: self.seed,
            missing: self.missing,
            metrics: self.metrics.clone(),
            convention: self.convention.clone(),
            label_map: self.label_map.clone(),
            early_stopping_rounds: self.early_stopping_rounds,
            learner,
        }
    }

    /// Returns an error if early stopping is set without a validation set.
    pub fn check_validation(&self, has_validation: bool) -> Result<()> {
        match self.early_stopping_rounds {
            Some(rounds) if !has_validation => Err(Error::usage(
                format_args!("early_stopping_rounds = {rounds}: there is no validation set"),
                "add one with --valid, or set early_stopping_rounds=0",
            )),
            _ => Ok(()),
        }
    }
}

impl Parameters {
    /// Formats all parameters as `key = value` lines of TOML, in a fixed order.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let raw = raw::RawParameters::of(self, settings::defaults());
        for key in keys::KEYS.iter().filter(|key| learner_keys::is_recorded(key.name, raw.ensemble)) {
            if let Some(value) = key.print(&raw)
                && !key.is_omitted(&value)
            {
                let _ = writeln!(text, "{} = {value}", key.name); // writing to a String cannot fail
            }
        }
        text
    }

    /// Parses and validates the output of [`Parameters::to_toml`]. Missing keys get their defaults.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut settings = TrainSettings::default();
        settings.add(source::read_toml("configuration", text, &[])?.settings)?;
        settings.check()
    }

    /// Returns the parameters of boosting; `None` for other learners.
    pub fn boost(&self) -> Option<&BoostParameters> {
        match &self.learner {
            LearnerParameters::Boost(boost) => Some(boost),
            LearnerParameters::Forest(_) | LearnerParameters::Linear(_) => None,
        }
    }

    /// Returns the parameters of a forest; `None` for other learners.
    pub fn forest(&self) -> Option<&ForestParameters> {
        match &self.learner {
            LearnerParameters::Forest(forest) => Some(forest),
            LearnerParameters::Boost(_) | LearnerParameters::Linear(_) => None,
        }
    }

    /// Returns the parameters for growing a tree; `None` if the learner grows no trees.
    pub fn tree(&self) -> Option<&TreeParameters> {
        match &self.learner {
            LearnerParameters::Boost(boost) => Some(&boost.tree),
            LearnerParameters::Forest(forest) => Some(&forest.tree),
            LearnerParameters::Linear(_) => None,
        }
    }
}

impl LeafScore {
    /// Returns the score of a label.
    pub fn of(self, label: f32) -> f64 {
        let label = f64::from(label);
        match self {
            LeafScore::Expected => label,
            LeafScore::Square => label * label,
            LeafScore::Exp2 => libm::exp2(label),
        }
    }
}

impl FeatureCount {
    /// Returns how many of `features` features are sampled, which is at least 1 and at most all.
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
mod plan_tests;
#[cfg(test)]
mod tests;
