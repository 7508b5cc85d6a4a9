//! Computes the ideal DCG, by which NDCG is normalised.

use super::convention::Convention;
use super::ranking::Scratch;

/// The highest gains of a query, in descending order. The buffers are reused between queries.
#[derive(Debug, Default)]
pub(crate) struct BestGains {
    scratch: Scratch,
    gains: Vec<f64>,
    best: Vec<f64>,
}

impl BestGains {
    /// Finds the `depth` highest gains, or all gains if `depth` is `None`.
    pub(crate) fn find(&mut self, labels: &[f32], convention: &Convention, depth: Option<u32>) {
        self.gains.clear();
        self.gains.extend(labels.iter().map(|label| convention.gain(*label)));
        let order = self.scratch.rank(&self.gains, depth);
        self.best.clear();
        self.best.extend(order.iter().map(|place| self.gains[*place as usize]));
    }

    /// Returns the ideal DCG at `depth`.
    pub(crate) fn ideal(&self, convention: &Convention, depth: usize) -> f64 {
        let gains = self.best.iter().take(depth).enumerate();
        // `sum` of no numbers would be -0.0.
        gains.map(|(rank, gain)| gain * convention.discount(rank)).fold(0.0, |sum, gain| sum + gain)
    }

    /// Returns the highest gain, or 0 if there are no documents.
    pub(crate) fn most(&self) -> f64 {
        self.best.first().copied().unwrap_or(0.0)
    }
}
