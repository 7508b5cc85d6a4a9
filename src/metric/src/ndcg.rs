//! The ideal order for NDCG.

use super::convention::Convention;
use super::ranking::Scratch;

/// The highest gains of a query, descending; its buffers are reused between queries.
#[derive(Debug, Default)]
pub struct BestGains {
    scratch: Scratch,
    gains: Vec<f64>,
    best: Vec<f64>,
}

impl BestGains {
    /// Finds the `depth` highest gains, all of them if `None`.
    pub fn find(&mut self, labels: &[f32], convention: &Convention, depth: Option<u32>) {
        self.gains.clear();
        self.gains.extend(labels.iter().map(|label| convention.gain(*label)));
        let order = self.scratch.rank(&self.gains, depth);
        self.best.clear();
        self.best.extend(order.iter().map(|place| self.gains[*place as usize]));
    }

    /// Ideal DCG at `depth`.
    pub fn ideal(&self, convention: &Convention, depth: usize) -> f64 {
        let gains = self.best.iter().take(depth).enumerate();
        gains.map(|(rank, gain)| gain * convention.discount(rank)).sum()
    }

    /// The highest gain.
    pub fn most(&self) -> f64 {
        self.best.first().copied().unwrap_or(0.0)
    }
}
