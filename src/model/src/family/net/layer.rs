//! Defines a layer of a net, and computes its values for many rows at a time.
//!
//! The values of rows are stored by *columns*: all rows of the first input or unit, then all rows of the second one. The
//! terms of a sum are added to the bias in the order of the inputs, for every row by itself. So the bits of a value depend
//! neither on the number of rows that are computed together nor on the vector instructions.

use super::activation::Activation;
use serde::{Deserialize, Serialize};

/// Number of inputs whose terms are added while a sum is in a register.
pub(super) const TOGETHER: usize = 4;

/// A layer of a net: the weights of its units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetLayer {
    /// Number of inputs of each unit.
    pub inputs: usize,
    /// The bias of each unit.
    pub biases: Vec<f64>,
    /// The weights of all inputs of the first unit, then those of the second unit, and so on.
    pub weights: Vec<f64>,
}

impl NetLayer {
    /// Creates a layer without units.
    pub fn empty(inputs: usize) -> Self {
        NetLayer { inputs, biases: Vec::new(), weights: Vec::new() }
    }

    /// Returns the number of units.
    pub fn units(&self) -> usize {
        self.biases.len()
    }

    /// Returns the weights of a unit's inputs.
    pub fn weights_of(&self, unit: usize) -> &[f64] {
        &self.weights[unit * self.inputs..][..self.inputs]
    }

    /// Sets the sums of all units to their biases.
    pub fn start(&self, rows: usize, sums: &mut Vec<f64>) {
        sums.clear();
        self.biases.iter().for_each(|bias| sums.resize(sums.len() + rows, *bias));
    }

    /// Adds the terms of some inputs to the sums of all units. `columns` are those of the inputs from `first` on.
    #[inline(always)]
    pub fn add_inputs(&self, first: usize, columns: &[f64], rows: usize, sums: &mut [f64]) {
        if rows == 0 {
            return;
        }
        for (number, columns) in columns.chunks(TOGETHER * rows).enumerate() {
            let first = first + number * TOGETHER;
            for (unit, sums) in sums.chunks_exact_mut(rows).enumerate() {
                let weights = &self.weights_of(unit)[first..][..columns.len() / rows];
                match weights {
                    [w0, w1, w2, w3] => {
                        let (x0, others) = columns.split_at(rows);
                        let (x1, others) = others.split_at(rows);
                        let (x2, x3) = others.split_at(rows);
                        let inputs = x0.iter().zip(x1).zip(x2.iter().zip(x3));
                        for (sum, ((x0, x1), (x2, x3))) in sums.iter_mut().zip(inputs) {
                            *sum = (((*sum + w0 * x0) + w1 * x1) + w2 * x2) + w3 * x3;
                        }
                    }
                    _ => {
                        for (weight, column) in weights.iter().zip(columns.chunks_exact(rows)) {
                            sums.iter_mut().zip(column).for_each(|(sum, x)| *sum += weight * x);
                        }
                    }
                }
            }
        }
    }
}

/// Computes the values of all layers after the first one. `values` has a list per layer, of which the first one holds the
/// sums of the first layer; sums of hidden layers are replaced by the values of the activation function.
#[inline(always)]
pub fn finish_layers(layers: &[NetLayer], activation: Activation, rows: usize, values: &mut [Vec<f64>]) {
    for (number, layer) in layers.iter().enumerate().skip(1) {
        let (before, after) = values.split_at_mut(number);
        let (inputs, sums) = (&mut before[number - 1], &mut after[0]);
        activation.apply(inputs);
        layer.start(rows, sums);
        layer.add_inputs(0, inputs, rows, sums);
    }
}
