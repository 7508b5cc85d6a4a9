//! Draws the initial weights of a net and the batches of an epoch. All draws are keyed, so they depend on nothing but the
//! seed, the restart, the epoch and the query.

use crate::config::NetSettings;
use planetree_base::random::Stream;
use planetree_model::model::NetLayer;

/// Separates the random numbers of nets from others.
const OF_WEIGHTS: u64 = 0x6e65_7401;
const OF_BATCHES: u64 = 0x6e65_7402;

/// Draws the weights of a restart. They are uniform, with a range that depends on the size of the layers (Glorot & Bengio
/// 2010, eq. 16). Biases are 0, and so are all weights of a net without a hidden layer, whose loss has one minimum. `features`
/// are the numbers of the inputs, and `output` is the bias of the output. Without it, the weights of the output are 0, too,
/// so that the net is 0 everywhere.
pub(super) fn initial_layers(
    settings: &NetSettings,
    restart: u32,
    features: &[u32],
    output: Option<f64>,
) -> Vec<NetLayer> {
    let mut layers = Vec::new();
    let mut inputs = features.len();
    let sizes: Vec<usize> = settings.learner.hidden.iter().map(|size| *size as usize).chain([1]).collect();
    for (number, units) in sizes.iter().copied().enumerate() {
        let most = if sizes.len() == 1 { 0.0 } else { (6.0 / (inputs + units) as f64).sqrt() };
        let weight = |unit: usize, input: usize| {
            // The weight of a feature does not depend on which other features are constant.
            let input = if number == 0 { u64::from(features[input]) } else { input as u64 };
            let key = [settings.seed, OF_WEIGHTS, u64::from(restart), number as u64, unit as u64, input];
            most * (2.0 * Stream::new(&key).uniform() - 1.0)
        };
        let weights = (0..units).flat_map(|unit| (0..inputs).map(move |input| (unit, input)));
        layers.push(NetLayer {
            inputs,
            biases: vec![0.0; units],
            weights: weights.map(|(unit, input)| weight(unit, input)).collect(),
        });
        inputs = units;
    }
    if let Some(last) = layers.last_mut() {
        match output {
            Some(output) => last.biases.fill(output),
            None => last.weights.fill(0.0),
        }
    }
    layers
}

/// Divides queries into the batches of an epoch, in random order. The queries of a batch are in ascending order.
pub(super) fn batches(settings: &NetSettings, restart: u32, epoch: u32, queries: &[u64]) -> Vec<Vec<u64>> {
    let Some(size) = settings.learner.batch_queries.filter(|size| (*size as usize) < queries.len()) else {
        return vec![queries.to_vec()];
    };
    let key = |query: u64| {
        let key = [settings.seed, OF_BATCHES, u64::from(restart), u64::from(epoch), query];
        Stream::new(&key).bits()
    };
    let mut keyed: Vec<(u64, u64)> = queries.iter().map(|query| (key(*query), *query)).collect();
    keyed.sort_unstable();
    let batch = |keyed: &[(u64, u64)]| {
        let mut batch: Vec<u64> = keyed.iter().map(|(_, query)| *query).collect();
        batch.sort_unstable();
        batch
    };
    keyed.chunks(size as usize).map(batch).collect()
}
