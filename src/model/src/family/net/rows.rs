//! The rows of a net in the model table, and its settings in the header of the file.
//!
//! There is a row per weight. `tree` is the layer and `node` the unit; the bias of a unit comes first, followed by the
//! weights of its inputs. In the first layer, `feature` is the input of a weight; in later layers, `left` is the unit of the
//! layer before. `value` is the weight. `gain` is how much the value of the net changes at most if the feature changes by its
//! standard deviation, as far as this weight is concerned.

use super::activation::Activation;
use super::function::{NetFunction, NetInput};
use super::layer::NetLayer;
use crate::family::ModelRow;
use crate::family::linear::FeatureNormalisation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The settings of a net in a model file: everything except the weights.
#[derive(Serialize, Deserialize)]
struct NetMetadata {
    normalise_features: FeatureNormalisation,
    activation: Activation,
    /// Number of units of each layer.
    layers: Vec<u64>,
    /// Total weight of the training rows.
    cover: f64,
    /// One entry per input.
    constants: Vec<InputConstants>,
}

/// The numbers of an input that are stored in the header of a model file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct InputConstants {
    centre: f64,
    spread: f64,
    mean: f64,
    deviation: f64,
}

/// What has not been read yet of a net.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingNet {
    /// Number of units of each layer.
    sizes: Vec<u64>,
    constants: Vec<InputConstants>,
}

impl NetFunction {
    /// Creates a net without weights from the settings in a model file.
    pub(crate) fn from_settings(settings: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let NetMetadata { normalise_features, activation, layers, cover, constants } =
            serde_json::from_value(Value::Object(settings))?;
        Ok(NetFunction {
            normalisation: normalise_features,
            activation,
            inputs: Vec::new(),
            layers: Vec::new(),
            cover,
            pending: Some(PendingNet { sizes: layers, constants }),
        })
    }

    /// Returns the settings of the header.
    pub(super) fn header(&self) -> Map<String, Value> {
        let constants = |input: &NetInput| {
            let NetInput { centre, spread, mean, deviation, .. } = *input;
            InputConstants { centre, spread, mean, deviation }
        };
        let settings = NetMetadata {
            normalise_features: self.normalisation,
            activation: self.activation,
            layers: self.sizes().into_iter().map(|units| units as u64).collect(),
            cover: self.cover,
            constants: self.inputs.iter().map(constants).collect(),
        };
        match serde_json::to_value(settings) {
            Ok(Value::Object(settings)) => settings,
            _ => unreachable!("a struct of numbers is a JSON object"),
        }
    }

    /// Returns the rows of the model table.
    pub(super) fn model_rows(&self) -> Vec<ModelRow> {
        let paths = self.path_weights();
        let row = |layer: usize, unit: usize, value: f64| ModelRow {
            tree: layer as u32,
            node: unit as u32,
            depth: 0,
            feature: None,
            threshold: None,
            missing: None,
            left: None,
            right: None,
            middle: None,
            value,
            gain: None,
            cover: self.cover,
        };
        let mut rows = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            for (unit, bias) in layer.biases.iter().enumerate() {
                rows.push(row(number, unit, *bias));
                for (place, weight) in layer.weights_of(unit).iter().enumerate() {
                    let plain = row(number, unit, *weight);
                    rows.push(match (number, &self.inputs[..]) {
                        (0, inputs) => ModelRow {
                            feature: Some(inputs[place].feature),
                            gain: Some(weight.abs() * inputs[place].deviation * paths[unit]),
                            ..plain
                        },
                        _ => ModelRow { left: Some(place as u32), ..plain },
                    });
                }
            }
        }
        rows
    }

    /// Appends a weight. Returns an error if the row does not continue the previous rows.
    pub(super) fn read_next(&mut self, row: &ModelRow) -> Result<(), String> {
        let problem = |problem: &str| Err(format!("layer {}, unit {}: {problem}", row.tree, row.node));
        let Some(pending) = &mut self.pending else { return problem("the net has no such weight") };
        let is_full = |layer: &NetLayer, sizes: &[u64], number: usize| {
            layer.biases.len() as u64 == sizes[number] && layer.weights.len() == layer.inputs * layer.units()
        };
        let next_inputs = match self.layers.last() {
            None => Some(pending.constants.len()),
            Some(last) => is_full(last, &pending.sizes, self.layers.len() - 1).then_some(last.units()),
        };
        if let Some(inputs) = next_inputs {
            if self.layers.len() == pending.sizes.len() {
                return problem("the net has no such layer");
            }
            self.layers.push(NetLayer::empty(inputs));
        }
        let number = self.layers.len() - 1;
        let Some(layer) = self.layers.last_mut() else { return problem("the net has no layers") };
        let is_bias = layer.weights.len() == layer.inputs * layer.units();
        let unit = if is_bias { layer.units() } else { layer.units() - 1 };
        if (row.tree as usize, row.node as usize) != (number, unit) {
            return problem("rows are out of order");
        }
        if is_bias {
            if row.feature.is_some() || row.left.is_some() {
                return problem("the first row of a unit is its bias, which has no input");
            }
            if layer.biases.len() as u64 == pending.sizes[number] {
                return problem("the net has no such unit");
            }
            layer.biases.push(row.value);
        } else {
            let place = layer.weights.len() - unit * layer.inputs;
            match (number, row.feature, row.left) {
                (0, Some(feature), None) if unit == 0 => {
                    let InputConstants { centre, spread, mean, deviation } = pending.constants[place];
                    self.inputs.push(NetInput { feature, centre, spread, mean, deviation });
                }
                (0, Some(feature), None) if self.inputs[place].feature == feature => {}
                (1.., None, Some(left)) if left as usize == place => {}
                _ => return problem("the row has the wrong input"),
            }
            layer.weights.push(row.value);
        }
        if self.layers.len() == pending.sizes.len()
            && self.layers.last().is_some_and(|layer| is_full(layer, &pending.sizes, number))
        {
            self.pending = None;
        }
        Ok(())
    }
}
