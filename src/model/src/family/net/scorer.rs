//! Scores rows with a net, many rows at a time. The first layer takes a few features at a time, so that their columns stay
//! in the cache.

use super::activation::Activation;
use super::function::NetFunction;
use super::layer::{NetLayer, TOGETHER, finish_layers};
use crate::family::linear::{FeatureNormalisation, FeatureNormaliser};
use crate::family::{ModelFeature, PartScorer, RowValues};
use fearless_simd::{Level, dispatch};

/// Number of rows that are scored together, unless they are a query. The sums of a layer fit in the cache.
const BLOCK: usize = 256;

/// A net prepared for scoring many rows.
#[derive(Debug)]
pub(super) struct NetScorer {
    layers: Vec<NetLayer>,
    activation: Activation,
    /// Index of the feature and normaliser of each input.
    inputs: Vec<(usize, FeatureNormaliser)>,
    /// Whether all rows must be scored together, because they are normalised as a query.
    by_query: bool,
    level: Level,
}

impl NetScorer {
    /// Prepares a valid net.
    pub(super) fn new(net: &NetFunction, features: &[ModelFeature], level: Level) -> Self {
        NetScorer {
            layers: net.layers.clone(),
            activation: net.activation,
            inputs: net.normalisers(features),
            by_query: net.normalisation == FeatureNormalisation::Query,
            level,
        }
    }

    #[inline(always)]
    fn add_inputs(&self, first: usize, loaded: &[f32], columns: &mut [f64], rows: usize, sums: &mut [f64]) {
        let inputs = &self.inputs[first..];
        for (((_, normaliser), values), column) in
            inputs.iter().zip(loaded.chunks_exact(rows)).zip(columns.chunks_exact_mut(rows))
        {
            normaliser.normalise(values, column);
        }
        self.layers[0].add_inputs(first, &columns[..loaded.len()], rows, sums);
    }
}

impl PartScorer for NetScorer {
    fn score(&self, rows: RowValues<'_>, values: &mut [f64]) {
        let block = if self.by_query { values.len() } else { BLOCK.min(values.len()) }.max(1);
        let (mut loaded, mut columns) = (vec![0f32; TOGETHER * block], vec![0f64; TOGETHER * block]);
        let mut layers: Vec<Vec<f64>> = vec![Vec::new(); self.layers.len()];
        for (number, values) in values.chunks_mut(block).enumerate() {
            let (count, rows) = (values.len(), rows.skip(number * block));
            self.layers[0].start(count, &mut layers[0]);
            for first in (0..self.inputs.len()).step_by(TOGETHER) {
                let inputs = &self.inputs[first..(first + TOGETHER).min(self.inputs.len())];
                let loaded = &mut loaded[..inputs.len() * count];
                for ((feature, _), loaded) in inputs.iter().zip(loaded.chunks_exact_mut(count)) {
                    rows.load(*feature, loaded);
                }
                dispatch!(self.level, _ => self.add_inputs(first, loaded, &mut columns, count, &mut layers[0]));
            }
            dispatch!(self.level, _ => finish_layers(&self.layers, self.activation, count, &mut layers));
            values.copy_from_slice(&layers[self.layers.len() - 1]);
        }
    }
}
