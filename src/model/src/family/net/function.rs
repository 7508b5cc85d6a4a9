//! Defines nets, which implement [`Family`].

use super::activation::Activation;
use super::layer::NetLayer;
use super::rows::PendingNet;
use super::scorer::NetScorer;
use crate::family::linear::{FeatureNormalisation, FeatureNormaliser};
use crate::family::{Comparison, Family, FeatureImportance, ModelFeature, ModelRow, PartScorer};
use fearless_simd::Level;
use planetree_base::error::Result;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Name of the family in files.
pub(crate) const KIND: &str = "net";

/// A feed-forward net of normalised features, whose last layer has a single unit.
#[derive(Debug, Clone, PartialEq)]
pub struct NetFunction {
    /// How the features are normalised.
    pub normalisation: FeatureNormalisation,
    /// The function of hidden units.
    pub activation: Activation,
    /// The inputs, in the order in which their terms are added. A feature is at most one input.
    pub inputs: Vec<NetInput>,
    /// The layers, from the inputs to the output.
    pub layers: Vec<NetLayer>,
    /// Total weight of the training rows.
    pub cover: f64,
    /// What has not been read yet of a net in a file.
    pub(super) pending: Option<PendingNet>,
}

/// An input of a net: a feature and the constants of its normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct NetInput {
    /// Index of the feature in the model.
    pub feature: u32,
    /// Subtracted from the values of the feature: the mean (`z`) or the minimum (`minmax`) of the training rows.
    pub centre: f64,
    /// Divides the values of the feature: the standard deviation (`z`) or the range (`minmax`) of the training rows.
    pub spread: f64,
    /// The mean of the normalised feature over the training rows, from which contributions to scores are measured.
    pub mean: f64,
    /// The standard deviation of the normalised feature over the training rows.
    pub deviation: f64,
}

impl NetFunction {
    /// Creates a net.
    pub fn new(
        normalisation: FeatureNormalisation,
        activation: Activation,
        inputs: Vec<NetInput>,
        layers: Vec<NetLayer>,
        cover: f64,
    ) -> Self {
        NetFunction { normalisation, activation, inputs, layers, cover, pending: None }
    }

    /// Returns the normalisers of the inputs. `features` are the features of the model.
    pub(crate) fn normalisers(&self, features: &[ModelFeature]) -> Vec<(usize, FeatureNormaliser)> {
        let normaliser = |input: &NetInput| {
            let feature = input.feature as usize;
            let fill = features.get(feature).and_then(|feature| feature.fill);
            (feature, FeatureNormaliser::new(self.normalisation, fill, input.centre, input.spread))
        };
        self.inputs.iter().map(normaliser).collect()
    }

    /// Returns the number of units of each layer.
    pub fn sizes(&self) -> Vec<usize> {
        self.layers.iter().map(NetLayer::units).collect()
    }

    /// Returns, for each unit of the first layer, how much the value changes at most if the sum of the unit changes by 1:
    /// the sum over all paths to the output of the product of absolute weights and largest slopes.
    pub(super) fn path_weights(&self) -> Vec<f64> {
        let mut paths = vec![1.0];
        for layer in self.layers.iter().skip(1).rev() {
            let mut before = vec![0.0; layer.inputs];
            for (unit, path) in paths.iter().enumerate() {
                for (before, weight) in before.iter_mut().zip(layer.weights_of(unit)) {
                    *before += weight.abs() * path * self.activation.most_slope();
                }
            }
            paths = before;
        }
        paths
    }

    /// Returns the first problem of the shape of the net.
    fn shape_fault(&self) -> Option<String> {
        let mut inputs = self.inputs.len();
        for (number, layer) in self.layers.iter().enumerate() {
            if layer.inputs != inputs || layer.weights.len() != layer.inputs * layer.units() {
                return Some(format!("layer {number}: the number of weights does not fit the layer before"));
            }
            inputs = layer.units();
        }
        (self.layers.is_empty() || inputs != 1).then(|| "the last layer must have one unit".to_owned())
    }
}

impl Family for NetFunction {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn used_features(&self) -> BTreeSet<u32> {
        let Some(first) = self.layers.first() else { return BTreeSet::new() };
        let is_used = |input: usize| (0..first.units()).any(|unit| first.weights_of(unit)[input] != 0.0);
        let used = self.inputs.iter().enumerate().filter(|(number, _)| is_used(*number));
        used.map(|(_, input)| input.feature).collect()
    }

    fn comparison(&self) -> Option<Comparison> {
        self.normalisation.comparison()
    }

    fn scorer(&self, features: &[ModelFeature], level: Level) -> Box<dyn PartScorer> {
        Box::new(NetScorer::new(self, features, level))
    }

    fn fault(&self, features: usize) -> Option<String> {
        if self.pending.is_some() {
            return Some("rows of the net are missing".to_owned());
        }
        if let Some(fault) = self.shape_fault() {
            return Some(fault);
        }
        if !self.cover.is_finite() {
            return Some(format!("the cover is {}, but it must be finite", self.cover));
        }
        let mut seen = BTreeSet::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let NetInput { feature, centre, spread, mean, deviation } = input;
            if *feature as usize >= features {
                return Some(format!(
                    "input {number}: unknown feature {feature}: there are {features} features"
                ));
            }
            if !seen.insert(*feature) {
                return Some(format!("input {number}: the feature is an input already"));
            }
            let numbers = [("centre", centre), ("spread", spread), ("mean", mean), ("deviation", deviation)];
            if let Some((name, value)) = numbers.iter().find(|(_, value)| !value.is_finite()) {
                return Some(format!("input {number}: the {name} is {value}, but it must be finite"));
            }
            if let Some((name, value)) =
                numbers.iter().find(|(name, value)| matches!(*name, "spread" | "deviation") && **value < 0.0)
            {
                return Some(format!("input {number}: the {name} is {value}, but it must not be negative"));
            }
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let all = layer.biases.iter().chain(&layer.weights);
            if let Some(value) = all.into_iter().find(|value| !value.is_finite()) {
                return Some(format!("layer {number}: a weight is {value}, but it must be finite"));
            }
        }
        let is_finite = self.path_weights().iter().all(|path| path.is_finite());
        (!is_finite).then(|| "the weights are too large: values overflow".to_owned())
    }

    fn add_importance(&self, all: &mut [FeatureImportance]) {
        let Some(first) = self.layers.first() else { return };
        let paths = self.path_weights();
        for (number, input) in self.inputs.iter().enumerate() {
            let Some(importance) = all.get_mut(input.feature as usize) else { continue };
            let weights = (0..first.units()).map(|unit| first.weights_of(unit)[number]);
            let used: Vec<(f64, &f64)> = weights.zip(&paths).filter(|(weight, _)| *weight != 0.0).collect();
            if !used.is_empty() {
                let gain = |(weight, path): &(f64, &f64)| weight.abs() * input.deviation * **path;
                importance.gain += used.iter().map(gain).sum::<f64>();
                importance.cover += self.cover;
                importance.splits += used.len() as u64;
            }
        }
    }

    fn row_count(&self) -> u64 {
        self.layers.iter().map(|layer| (layer.biases.len() + layer.weights.len()) as u64).sum()
    }

    fn write_rows(
        &self,
        sink: &mut dyn FnMut(&mut dyn Iterator<Item = ModelRow>) -> Result<()>,
    ) -> Result<()> {
        sink(&mut self.model_rows().into_iter())
    }

    fn read_row(&mut self, row: ModelRow) -> Result<(), String> {
        self.read_next(&row)
    }

    fn renumber_features(&mut self, numbers: &[u32]) {
        for input in &mut self.inputs {
            input.feature = numbers[input.feature as usize];
        }
    }

    fn settings(&self) -> Map<String, Value> {
        self.header()
    }
}
