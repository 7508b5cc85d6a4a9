//! Explains the values of a part that is a net: how the value differs from that of the *mean row*, whose normalised features
//! have their means over the training rows.
//!
//! The contribution of a feature is its difference from the mean times a factor, which is found layer by layer from the
//! output to the inputs. A unit passes on the slope of the straight line between its values in the mean row and in the row
//! (the rescale rule of DeepLIFT, Shrikumar et al. 2017). So the contributions add up to the difference of the two values.
//! If there is at most one hidden layer, these are the integrated gradients along the straight line between the two rows
//! (Sundararajan et al. 2017), without the error of a numerical integration: the sum of a hidden unit changes linearly
//! along it. If there is no hidden layer, they are the contributions of a linear function.

use super::explainer::PartExplainer;
use crate::family::linear::FeatureNormaliser;
use crate::family::{Family, RowValues};
use crate::model::{Activation, ModelFeature, NetFunction, NetLayer};
use std::collections::BTreeSet;

/// A net prepared for explaining many rows.
#[derive(Debug)]
pub(super) struct NetExplainer {
    /// The weight of the part.
    weight: f64,
    activation: Activation,
    layers: Vec<NetLayer>,
    /// Index of the feature, normaliser and mean of each input.
    inputs: Vec<(usize, FeatureNormaliser, f64)>,
    used: BTreeSet<u32>,
    /// The mean row.
    mean: RowSums,
}

/// The units of all layers for one row.
#[derive(Debug, Default)]
struct RowSums {
    /// The sums of each layer.
    sums: Vec<Vec<f64>>,
    /// The values of each layer: those of the activation function in hidden layers, and the sums in the last layer.
    values: Vec<Vec<f64>>,
}

impl NetExplainer {
    /// Prepares a net. `weight` is the weight of the part.
    pub(super) fn new(net: &NetFunction, weight: f64, features: &[ModelFeature]) -> Self {
        let inputs = net.normalisers(features).into_iter().zip(&net.inputs);
        let mut explainer = NetExplainer {
            weight,
            activation: net.activation,
            layers: net.layers.clone(),
            inputs: inputs.map(|((feature, normaliser), input)| (feature, normaliser, input.mean)).collect(),
            used: net.used_features(),
            mean: RowSums::default(),
        };
        let means: Vec<f64> = net.inputs.iter().map(|input| input.mean).collect();
        explainer.mean = explainer.sums(&means);
        explainer
    }

    /// Computes all units for one row.
    fn sums(&self, inputs: &[f64]) -> RowSums {
        let mut all = RowSums::default();
        for (number, layer) in self.layers.iter().enumerate() {
            let mut sums = layer.biases.clone();
            layer.add_inputs(0, all.values.last().map_or(inputs, Vec::as_slice), 1, &mut sums);
            let mut values = sums.clone();
            if number + 1 < self.layers.len() {
                self.activation.apply(&mut values);
            }
            all.sums.push(sums);
            all.values.push(values);
        }
        all
    }

    /// Returns, for each input, the factor of its difference from the mean.
    fn factors(&self, inputs: &[f64]) -> Vec<f64> {
        let row = self.sums(inputs);
        let mut factors = vec![1.0];
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let mut before = vec![0.0; layer.inputs];
            for (unit, factor) in factors.iter().enumerate() {
                let weights = layer.weights_of(unit);
                before.iter_mut().zip(weights).for_each(|(before, weight)| *before += weight * factor);
            }
            if let Some(hidden) = number.checked_sub(1) {
                for (unit, before) in before.iter_mut().enumerate() {
                    let by = row.sums[hidden][unit] - self.mean.sums[hidden][unit];
                    let value = row.values[hidden][unit];
                    *before *= match by == 0.0 {
                        true => self.activation.slope(value),
                        false => (value - self.mean.values[hidden][unit]) / by,
                    };
                }
            }
            factors = before;
        }
        factors
    }
}

impl PartExplainer for NetExplainer {
    fn expected(&self) -> f64 {
        self.weight * self.mean.values.last().map_or(0.0, |output| output[0])
    }

    fn used_features(&self) -> BTreeSet<u32> {
        self.used.clone()
    }

    fn add(&self, rows: RowValues<'_>, features: usize, out: &mut [f64]) {
        let count = out.len() / features.max(1);
        let (mut loaded, mut normalised) = (vec![0f32; count], vec![0f64; count * self.inputs.len()]);
        for ((feature, normaliser, _), column) in
            self.inputs.iter().zip(normalised.chunks_exact_mut(count.max(1)))
        {
            rows.load(*feature, &mut loaded);
            normaliser.normalise(&loaded, column);
        }
        for (row, out) in out.chunks_mut(features.max(1)).enumerate() {
            let inputs: Vec<f64> =
                (0..self.inputs.len()).map(|input| normalised[input * count + row]).collect();
            let factors = self.factors(&inputs);
            for (((feature, _, mean), value), factor) in self.inputs.iter().zip(&inputs).zip(factors) {
                out[*feature] += self.weight * factor * (value - mean);
            }
        }
    }
}
