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
    /// What decided the splits of the first tree that has any.
    first: Option<FirstTree>,
}

/// What decided the splits of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FirstTree {
    /// Largest gain of a split.
    gain: f64,
    /// Number of splits.
    splits: usize,
    /// Number of splits that were decided by costs alone: any other feature costs so much more or less than the one that
    /// was chosen that no gain makes up for it. Cheaper features had no split there.
    by_costs: usize,
    /// Cost of the cheapest and of the most expensive feature, times `lambda`.
    range: (f64, f64),
}

impl FirstTree {
    /// Examines a tree: for each split the feature and the gain. `penalties` has the cost of each feature times `lambda`.
    fn of(splits: &[(u32, f64)], penalties: &[f64]) -> Self {
        let gain = splits.iter().map(|(_, gain)| *gain).fold(0.0, f64::max);
        let mut sorted = penalties.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let has_no_rival = |feature: u32| {
            let penalty = penalties[feature as usize];
            let place = sorted.partition_point(|other| *other < penalty);
            let cheaper = place.checked_sub(1).map(|below| penalty - sorted[below]);
            let dearer = sorted.get(place + 1).map(|above| above - penalty);
            cheaper.into_iter().chain(dearer).all(|difference| difference > gain)
        };
        FirstTree {
            gain,
            splits: splits.len(),
            by_costs: splits.iter().filter(|(feature, _)| has_no_rival(*feature)).count(),
            range: (sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(0.0)),
        }
    }

    /// Returns whether costs alone decided nearly all splits, so that one feature, or a few, were used everywhere.
    fn ignores_gains(&self) -> bool {
        /// Tenths of the splits. Where the cheapest feature has no cut, others of equal cost may compete.
        const NEARLY_ALL: usize = 9;
        let (cheapest, most) = self.range;
        most > cheapest && self.gain > 0.0 && 10 * self.by_costs >= NEARLY_ALL * self.splits
    }
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
        if self.first.is_none() {
            let splits = tree.nodes.iter().filter_map(|node| node.split.as_ref());
            let splits: Vec<(u32, f64)> = splits.map(|split| (split.feature, split.gain)).collect();
            self.first = (!splits.is_empty()).then(|| FirstTree::of(&splits, &self.penalties()));
        }
        self.pending.extend(tree.used_features());
        if number == self.batch_end(number) {
            let pending = std::mem::take(&mut self.pending);
            self.pay(pending.into_iter());
        }
    }

    /// Returns a warning if costs are so large compared to gains that they alone decide.
    pub(crate) fn warning(&self) -> Option<String> {
        let first = self.first.filter(FirstTree::ignores_gains)?;
        let FirstTree { gain, splits, by_costs, range: (cheapest, most) } = first;
        let lambda = self.lambda;
        // A tenth of the gain, in one digit.
        let less = lambda * 0.1 * gain / (most - cheapest);
        let less = format!("{less:.0e}").parse().unwrap_or(less);
        Some(format!(
            "costs outweigh gains: the largest gain in the first tree is {gain:.4}, but the costs of features, times \
             cost_lambda ({lambda}), are {cheapest} to {most}, so that {by_costs} of its {splits} splits were decided by \
             costs alone; try cost_lambda={less:?}, at which the most expensive feature must gain a tenth of that more \
             than the cheapest one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::FirstTree;

    #[test]
    fn costs_decide_where_no_gain_makes_up_for_them() {
        let ignores = |features: &[u32], penalties: &[f64]| {
            let splits: Vec<(u32, f64)> = features.iter().map(|feature| (*feature, 50.0)).collect();
            FirstTree::of(&splits, penalties).ignores_gains()
        };
        let free_one = [1000.0, 0.0, 1000.0, 1000.0];
        assert!(ignores(&[1; 19], &free_one));
        // Features of equal cost compete, where the free one has no cut.
        let with_others = |others: usize| [vec![1; 18], vec![3; others]].concat();
        assert!(ignores(&with_others(2), &free_one) && !ignores(&with_others(3), &free_one));
        // All costs are far apart: the cheapest feature with a cut wins, whatever it gains.
        assert!(ignores(&[0, 0, 1, 2], &[100.0, 200.0, 300.0]));
        // A difference that a gain makes up for, two features without costs, equal costs, and a single feature.
        assert!(!ignores(&[0; 9], &[0.0, 50.0, 1000.0]));
        assert!(!ignores(&[0; 9], &[0.0, 0.0, 1000.0]));
        assert!(!ignores(&[0; 9], &[1000.0, 1000.0]));
        assert!(!ignores(&[0; 9], &[1000.0]));
    }
}
