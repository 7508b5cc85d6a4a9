//! The costs of features in training (Mohan 2010, chapter 6). Of all splits of a node, the one with the highest gain
//! minus `lambda` times the cost of its feature is chosen. The cost decides which split is chosen, never whether the
//! node is split. Features that earlier trees use are free.

use crate::config::CostParameters;
use planetree_base::error::Result;
use planetree_model::cost::{CostTable, PaidFeatures};
use planetree_model::model::{ModelFeature, Tree};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Costs of splitting on each feature in the next tree.
#[derive(Debug)]
pub(crate) struct SplitCosts {
    lambda: f64,
    batch: u32,
    paid: PaidFeatures,
    /// Features that trees of the current batch use.
    pending: BTreeSet<u32>,
    /// Largest gain of a split in the first tree that has splits, and the number of its different features.
    first: Option<(f64, usize)>,
}

impl SplitCosts {
    /// Prepares the costs for features. Returns `None` without costs, and if they count nothing.
    pub(crate) fn new(
        table: Option<&CostTable>,
        parameters: CostParameters,
        features: &[ModelFeature],
        place: &str,
    ) -> Result<Option<Self>> {
        let Some(table) = table else { return Ok(None) };
        let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
        let costs = table.of_features(&names, place)?;
        let (lambda, batch) = (parameters.lambda(), parameters.batch());
        let (paid, pending) = (PaidFeatures::new(costs), BTreeSet::new());
        Ok((lambda > 0.0).then_some(SplitCosts { lambda, batch, paid, pending, first: None }))
    }

    /// Returns, for each feature, how much a split on it must gain more than a split on a free feature.
    pub(crate) fn penalties(&self) -> Arc<[f64]> {
        let features = 0..self.paid.costs().features() as u32;
        features.map(|feature| self.lambda * self.paid.price(feature)).collect()
    }

    /// Returns the last tree of the batch that contains the given tree. Trees are counted from 1.
    pub(crate) fn batch_end(&self, tree: u32) -> u32 {
        tree.div_ceil(self.batch).saturating_mul(self.batch)
    }

    /// Makes features free for all later trees, whatever their batch.
    pub(crate) fn pay(&mut self, features: impl Iterator<Item = u32>) {
        self.paid.pay(features);
    }

    /// Adds a tree. Its features are free for the trees of later batches.
    pub(crate) fn add_tree(&mut self, number: u32, tree: &Tree) {
        let used = tree.used_features();
        let gains = tree.nodes.iter().filter_map(|node| Some(node.split.as_ref()?.gain));
        if self.first.is_none() && !used.is_empty() {
            self.first = Some((gains.fold(0.0, f64::max), used.len()));
        }
        self.pending.extend(used);
        if number == self.batch_end(number) {
            let pending = std::mem::take(&mut self.pending);
            self.pay(pending.into_iter());
        }
    }

    /// Returns a warning if costs are so large compared to gains that they alone decide.
    pub(crate) fn warning(&self) -> Option<String> {
        let (gain, used) = self.first?;
        let costs = self.paid.costs();
        let all: Vec<f64> = (0..costs.features() as u32).map(|feature| costs.of(feature)).collect();
        let cheapest = all.iter().copied().fold(f64::INFINITY, f64::min);
        // Another feature wins only if it gains more than its additional cost.
        let hopeless = all.iter().filter(|cost| self.lambda * (**cost - cheapest) > gain).count();
        let (lambda, most) = (self.lambda, all.iter().copied().fold(0.0, f64::max));
        (used == 1 && hopeless + 1 >= all.len() && all.len() > 1).then(|| {
            format!(
                "costs outweigh gains: the largest gain in the first tree is {gain:.4}, but {hopeless} of {} features \
                 cost more than that (cost_lambda {lambda} times costs from {cheapest} to {most}), so one feature \
                 always wins; lower cost_lambda or the costs",
                all.len()
            )
        })
    }
}
