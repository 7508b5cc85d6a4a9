//! Checked training parameters: those that all learners share, and those of the learner. A combination that no learner
//! has cannot be expressed.

use super::learners::LearnerParameters;
use super::sections::{MissingPolicy, MonotoneConstraints};
use super::{BoostParameters, ForestParameters, TreeParameters, raw, settings, source};
use planetree_base::error::{Error, Result};
use planetree_data::LabelMap;
use planetree_metric::{Convention, Metric};
use std::fmt::Write;

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
        let raw = raw::RawParameters::of(self);
        for key in raw.learner.recorded() {
            if let Some(value) = key.print(&raw)
                && !(raw.learner.omits_default(key) && key.is_default(&value))
            {
                let _ = writeln!(text, "{} = {value}", key.name); // writing to a String cannot fail
            }
        }
        text
    }

    /// Parses and validates the output of [`Parameters::to_toml`]. Missing keys get their defaults.
    pub fn from_toml(text: &str) -> Result<Self> {
        let mut settings = settings::TrainSettings::default();
        settings.add(source::read_toml("configuration", text, &[])?.settings)?;
        settings.check()
    }

    /// Returns the parameters of boosting; `None` for other learners.
    pub fn boost(&self) -> Option<&BoostParameters> {
        match &self.learner {
            LearnerParameters::Boost(boost) => Some(boost),
            _ => None,
        }
    }

    /// Returns the parameters of a forest; `None` for other learners.
    pub fn forest(&self) -> Option<&ForestParameters> {
        match &self.learner {
            LearnerParameters::Forest(forest) => Some(forest),
            _ => None,
        }
    }

    /// Returns the same parameters with other monotone constraints. Learners that grow no trees have none.
    pub(crate) fn with_monotone(mut self, monotone: MonotoneConstraints) -> Self {
        match &mut self.learner {
            LearnerParameters::Boost(boost) => boost.tree.monotone = monotone,
            LearnerParameters::Forest(forest) => forest.tree.monotone = monotone,
            _ => {}
        }
        self
    }

    /// Returns the parameters for growing a tree; `None` if the learner grows no trees.
    pub fn tree(&self) -> Option<&TreeParameters> {
        self.learner.config().tree()
    }
}
