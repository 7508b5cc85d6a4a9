//! Defines ensembles of trees, which implement [`Family`].

use super::rows::{append_row, tree_rows};
use super::scorer::TreeScorer;
use super::tree::{Split, Tree};
use crate::family::{
    Comparison, Family, FeatureImportance, FeatureNormalisation, ModelFeature, ModelRow, PartScorer,
};
use fearless_simd::Level;
use planetree_base::error::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Name of the family in files.
pub(crate) const KIND: &str = "trees";

/// How the value of a part is computed from the values of its trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combine {
    /// The base score plus the sum of the trees' values.
    Sum,
    /// The base score plus the mean of the trees' values.
    Mean,
    /// A pairwise model: the base score plus the mean of the trees' values is the probability that a document is better
    /// than another document of its query, given the difference of their features. The value is the mean probability
    /// over the other documents.
    Wins,
}

impl Combine {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Combine::Sum => "sum",
            Combine::Mean => "mean",
            Combine::Wins => "wins",
        }
    }
}

/// An ensemble of trees, whose values are combined into one value per document.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeEnsemble {
    /// How the values of the trees are combined.
    pub combine: Combine,
    /// The constant to which the combined value of the trees is added.
    pub base_score: f64,
    /// Index of the feature whose value is added to the base score. A missing value counts as the feature's fill
    /// value, or as 0 if it has none.
    pub base_feature: Option<u32>,
    /// How features are normalised before they are compared with thresholds: not at all, or by query.
    pub normalisation: FeatureNormalisation,
    /// The trees, in the order of the training rounds. The learning rate is already included in their values.
    pub trees: Vec<Tree>,
}

/// The settings of an ensemble in a model file: everything except the trees.
#[derive(Serialize, Deserialize)]
struct TreeSettings {
    combine: Combine,
    base_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_feature: Option<u32>,
    #[serde(default, skip_serializing_if = "FeatureNormalisation::is_none")]
    normalise_features: FeatureNormalisation,
}

impl TreeEnsemble {
    /// Creates an ensemble whose features are not normalised.
    pub fn new(combine: Combine, base_score: f64, base_feature: Option<u32>, trees: Vec<Tree>) -> Self {
        TreeEnsemble { combine, base_score, base_feature, normalisation: FeatureNormalisation::None, trees }
    }

    /// Returns the factor by which the value of each tree is multiplied: 1 for a sum, and 1 / number of trees for a
    /// mean.
    pub fn tree_weight(&self) -> f64 {
        match self.combine {
            Combine::Sum => 1.0,
            Combine::Mean | Combine::Wins => 1.0 / self.trees.len().max(1) as f64,
        }
    }

    /// Returns the splits of all trees.
    pub fn splits(&self) -> impl Iterator<Item = &Split> {
        self.trees.iter().flat_map(|tree| &tree.nodes).filter_map(|node| node.split.as_ref())
    }

    /// Creates an ensemble without trees from the settings in a model file.
    pub(crate) fn from_settings(settings: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let TreeSettings { combine, base_score, base_feature, normalise_features } =
            serde_json::from_value(Value::Object(settings))?;
        Ok(TreeEnsemble {
            normalisation: normalise_features,
            ..TreeEnsemble::new(combine, base_score, base_feature, Vec::new())
        })
    }
}

impl Family for TreeEnsemble {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn used_features(&self) -> BTreeSet<u32> {
        self.splits().map(|split| split.feature).chain(self.base_feature).collect()
    }

    fn comparison(&self) -> Option<Comparison> {
        let wins = (self.combine == Combine::Wins).then_some(Comparison {
            reason: "is a pairwise model, which compares the documents of a query",
            remedy: "use `planetree predict`, or train with another preset, such as rf-point",
        });
        wins.or_else(|| self.normalisation.comparison())
    }

    fn scorer(&self, features: &[ModelFeature], level: Level) -> Box<dyn PartScorer> {
        Box::new(TreeScorer::new(self, features, level))
    }

    fn fault(&self, features: usize) -> Option<String> {
        if !self.base_score.is_finite() {
            return Some(format!("the base score is {}, but it must be finite", self.base_score));
        }
        if let Some(feature) = self.base_feature.filter(|feature| *feature as usize >= features) {
            return Some(format!("unknown base feature {feature}: there are {features} features"));
        }
        if self.normalisation.has_constants() {
            let name = self.normalisation.name();
            return Some(format!(
                "the features of trees are normalised by {name}, but only query is possible"
            ));
        }
        self.trees.iter().enumerate().find_map(|(number, tree)| {
            tree.fault(features).map(|(node, problem)| format!("tree {number}, node {node}: {problem}"))
        })
    }

    fn add_importance(&self, all: &mut [FeatureImportance]) {
        for node in self.trees.iter().flat_map(|tree| &tree.nodes) {
            if let Some(split) = &node.split
                && let Some(importance) = all.get_mut(split.feature as usize)
            {
                importance.gain += split.gain;
                importance.cover += node.cover;
                importance.splits += 1;
            }
        }
    }

    fn row_count(&self) -> u64 {
        self.trees.iter().map(|tree| tree.nodes.len() as u64).sum()
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&mut dyn Iterator<Item = ModelRow>) -> Result<()>,
    ) -> Result<()> {
        (0..).zip(&self.trees).try_for_each(|(number, tree)| sink(&mut tree_rows(number, tree)))
    }

    fn read_row(&mut self, row: ModelRow) -> Result<(), String> {
        append_row(&mut self.trees, &row)
            .map_err(|problem| format!("tree {}, node {}: {problem}", row.tree, row.node))
    }

    fn renumber_features(&mut self, numbers: &[u32]) {
        let splits =
            self.trees.iter_mut().flat_map(|tree| &mut tree.nodes).filter_map(|node| node.split.as_mut());
        splits.for_each(|split| split.feature = numbers[split.feature as usize]);
        self.base_feature = self.base_feature.map(|feature| numbers[feature as usize]);
    }

    fn settings(&self) -> Map<String, Value> {
        let TreeEnsemble { combine, base_score, base_feature, normalisation, .. } = *self;
        let settings = TreeSettings { combine, base_score, base_feature, normalise_features: normalisation };
        match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => settings,
            _ => unreachable!("a struct of numbers is a JSON object"),
        }
    }
}
