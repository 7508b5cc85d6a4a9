//! Computes the scores of a query by a net, and the gradient of its weights.
//!
//! Values are stored by columns, padded to a multiple of [`LANES`] documents. The gradients of padding are 0.

use super::jobs::NetTarget;
use crate::linear::{GradientBuffers, LANES, LinearRows, QueryPlace, RowObjective, ScoredQuery, dot};
use planetree_model::family::linear::FeatureNormaliser;
use planetree_model::family::net::finish_layers;
use planetree_model::model::NetLayer;

/// What is the same for all queries.
pub(super) struct NetContext<'a> {
    /// The features.
    pub target: &'a NetTarget,
    /// The normalisers of the features.
    pub normalisers: Vec<FeatureNormaliser>,
    /// The weights.
    pub layers: &'a [NetLayer],
    /// The rows.
    pub rows: &'a LinearRows,
}

/// The values of a query in all layers. The buffers are reused from query to query.
#[derive(Default)]
pub(super) struct NetQuery {
    /// The normalised features.
    columns: Vec<f64>,
    /// The values of each layer.
    values: Vec<Vec<f64>>,
    /// The scores, with those that training started from.
    pub scores: Vec<f64>,
    /// The gradients of the scores.
    row_gradients: Vec<f64>,
    /// The gradients of the sums of a layer, and of the layer before.
    sums: Vec<f64>,
    before: Vec<f64>,
    /// The gradient of all weights, in the order of [`gradient_count`].
    pub gradient: Vec<f64>,
    buffers: GradientBuffers,
}

/// Returns the number of weights: for each layer, the biases and then the weights of the inputs.
pub(super) fn gradient_count(layers: &[NetLayer]) -> usize {
    layers.iter().map(|layer| layer.biases.len() + layer.weights.len()).sum()
}

impl NetQuery {
    /// Computes the values of all layers and the scores.
    #[inline(always)]
    pub(super) fn forward(&mut self, context: &NetContext<'_>, query: &QueryPlace) {
        let NetContext { target, normalisers, layers, rows } = context;
        let (documents, padded) = (query.rows.len(), padded(query));
        let columns = &rows.values()[query.partition];
        self.columns.resize(padded * normalisers.len(), 0.0);
        for ((planned, normaliser), column) in
            target.plan.features.iter().zip(normalisers).zip(self.columns.chunks_exact_mut(padded))
        {
            let (column, padding) = column.split_at_mut(documents);
            normaliser.normalise(&columns[planned.feature as usize][query.rows.clone()], column);
            padding.fill(0.0);
        }
        self.values.resize(layers.len(), Vec::new());
        layers[0].start(padded, &mut self.values[0]);
        layers[0].add_inputs(0, &self.columns, padded, &mut self.values[0]);
        finish_layers(layers, target.activation, padded, &mut self.values);
        self.scores.clear();
        self.scores.extend_from_slice(&self.values[layers.len() - 1][..documents]);
        if let Some(offsets) = rows.offsets(query.partition, query.rows.clone()) {
            self.scores.iter_mut().zip(offsets).for_each(|(score, offset)| *score += offset);
        }
    }

    /// Computes the gradient of all weights after [`NetQuery::forward`]: the direction in which the loss falls.
    #[inline(always)]
    pub(super) fn backward(
        &mut self,
        context: &NetContext<'_>,
        query: &QueryPlace,
        objective: &RowObjective,
        round: u32,
    ) {
        let scored = ScoredQuery {
            rows: &context.rows.partitions()[query.partition],
            partition: query.partition,
            number: query.number,
            scores: &self.scores,
            round,
        };
        objective.gradients(&scored, &mut self.buffers, &mut self.row_gradients);
        let (layers, padded) = (context.layers, padded(query));
        self.gradient.resize(gradient_count(layers), 0.0);
        self.sums.clear();
        self.sums.extend_from_slice(&self.row_gradients);
        self.sums.resize(padded, 0.0);
        let mut rest = self.gradient.as_mut_slice();
        for (number, layer) in layers.iter().enumerate().rev() {
            let inputs = if number == 0 { &self.columns } else { &self.values[number - 1] };
            let (others, own) = rest.split_at_mut(rest.len() - layer.biases.len() - layer.weights.len());
            rest = others;
            let (biases, weights) = own.split_at_mut(layer.biases.len());
            for (unit, (bias, sums)) in biases.iter_mut().zip(self.sums.chunks_exact(padded)).enumerate() {
                *bias = sums.iter().sum();
                let weights = &mut weights[unit * layer.inputs..][..layer.inputs];
                for (weight, column) in weights.iter_mut().zip(inputs.chunks_exact(padded)) {
                    *weight = dot(column, sums);
                }
            }
            if number > 0 {
                self.before.clear();
                self.before.resize(inputs.len(), 0.0);
                for (unit, sums) in self.sums.chunks_exact(padded).enumerate() {
                    let weights = layer.weights_of(unit);
                    for (before, weight) in self.before.chunks_exact_mut(padded).zip(weights) {
                        before.iter_mut().zip(sums).for_each(|(before, sum)| *before += weight * sum);
                    }
                }
                for (before, value) in self.before.iter_mut().zip(inputs) {
                    *before *= context.target.activation.slope(*value);
                }
                std::mem::swap(&mut self.sums, &mut self.before);
            }
        }
    }
}

fn padded(query: &QueryPlace) -> usize {
    query.rows.len().next_multiple_of(LANES).max(LANES)
}
