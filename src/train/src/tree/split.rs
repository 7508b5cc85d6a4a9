//! Scores splits, and finds the best cut of a feature in its histogram.

use super::cell::{Cell, GradientSums, Scale};
use super::cut_scan::{BY_ONE, BY_ROWS, BY_WEIGHT, BestCut, NodeTotals};
use crate::bins::{MissingBranch, MissingSides};
use serde::{Deserialize, Serialize};

/// Constraints on splits, and how they are scored.
#[derive(Debug, Clone, Copy)]
pub struct SplitRules {
    /// Minimum number of rows on either side of a split.
    pub min_data: i64,
    /// Minimum sum of weights or hessians on either side of a split.
    pub min_weight: f64,
    /// Minimum number of rows of a node that is split.
    pub min_to_split: i64,
    /// Minimum gain; the gain of a split must be above it.
    pub min_gain: f64,
    /// The sides that missing values may be on.
    pub missing: MissingSides,
    /// Divisor of the squared gradients that score a split.
    pub split: Divisor,
    /// How leaves get their values.
    pub leaf: LeafRule,
    /// Quantisation scale of the sums.
    pub scale: Scale,
}

/// What sums of gradients are divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Divisor {
    /// The sum of weights or hessians plus lambda, which is the L2 regularisation.
    Weight {
        /// L2 regularisation.
        lambda: f64,
    },
    /// The number of rows.
    Rows,
    /// 1: the sums themselves are compared.
    One,
}

/// How leaves get their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeafRule {
    /// The sum of gradients divided by another sum.
    Quotient(Divisor),
    /// The weight of RankBoost's weak ranker on the right side of the split, and 0 on the left side.
    WeakRanker,
}

/// A split found for a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FoundSplit {
    /// Index of the feature.
    pub feature: u32,
    /// Rows with at most this code go left.
    pub code: u32,
    /// Rows with at most this value go left. These are the same rows as those selected by `code`.
    pub threshold: f32,
    /// Code of missing values, if the feature has one.
    pub missing_code: Option<u32>,
    /// Where missing values go.
    pub missing: MissingBranch,
    /// Reduction of the loss by the split.
    pub gain: f64,
}

impl FoundSplit {
    /// Returns whether all values go left, and only missing ones right.
    pub fn is_apart(&self) -> bool {
        self.missing == MissingBranch::Right && self.threshold == f32::MAX
    }

    /// Returns the code of missing values if they go left.
    pub fn missing_goes_left(&self) -> Option<u32> {
        self.missing_code.filter(|_| self.missing == MissingBranch::Left)
    }

    /// Returns the code of missing values if they go neither left nor right.
    pub fn missing_goes_elsewhere(&self) -> Option<u32> {
        self.missing_code.filter(|_| matches!(self.missing, MissingBranch::Middle | MissingBranch::Unseen))
    }

    /// Returns the child of rows with a code: 0 is the left child, 1 the right child and 2 the child for missing values.
    /// Returns `None` if the code is that of missing values, and no row of the node had one in training: such rows stay
    /// at the node.
    #[inline]
    pub fn child_of(&self, code: u32) -> Option<usize> {
        if Some(code) == self.missing_goes_elsewhere() {
            return (self.missing == MissingBranch::Middle).then_some(2);
        }
        Some(usize::from(!(code <= self.code || Some(code) == self.missing_goes_left())))
    }

    /// Returns the sums over the children, given the sums of the node by code and over all its rows.
    pub fn children<C: Cell>(&self, by_code: impl Iterator<Item = (u32, C)>, total: C) -> Vec<C> {
        let mut children = vec![C::default(); self.missing.children()];
        for (code, cell) in by_code {
            match self.child_of(code) {
                // What is not in another child is in the right one.
                Some(1) | None => {}
                Some(child) => children[child].add(cell),
            }
        }
        let mut right = total;
        children.iter().for_each(|child| right.subtract(*child));
        children[1] = right;
        children
    }
}

/// A split of one feature between two codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Rows with at most this code go left.
    pub code: u32,
    /// Where missing values go.
    pub missing: MissingBranch,
    /// Reduction of the loss by the split.
    pub gain: f64,
}

impl SplitRules {
    /// Returns the score of a node: G^2 / D, where G is the sum of gradients and D the divisor of splits.
    #[inline]
    pub fn score(&self, sums: GradientSums) -> f64 {
        let gradient = sums.gradient as f64 / self.scale.gradient;
        self.split.divide(gradient * gradient, sums, &self.scale)
    }

    /// Like [`SplitRules::score`], but for sums that are not quantised, divided by weights.
    #[inline]
    pub fn score_of(&self, gradient: f64, weight: f64) -> f64 {
        let lambda = match self.split {
            Divisor::Weight { lambda } => lambda,
            Divisor::Rows | Divisor::One => 0.0,
        };
        let weight = weight + lambda;
        if weight > 0.0 { gradient * gradient / weight } else { 0.0 }
    }

    /// Returns the value of a leaf with these sums. `root` has the sums over all rows, and `is_right` says whether the
    /// leaf is on the right side of its parent's split.
    pub fn value(&self, sums: GradientSums, root: GradientSums, is_right: bool) -> f64 {
        let gradient = sums.gradient as f64 / self.scale.gradient;
        match self.leaf {
            LeafRule::Quotient(divisor) => divisor.divide(gradient, sums, &self.scale),
            LeafRule::WeakRanker if is_right => {
                weak_ranker_weight(gradient, root.weight as f64 / self.scale.weight)
            }
            LeafRule::WeakRanker => 0.0,
        }
    }

    /// Returns the score that the split of a node must exceed, where `before` is the score of the unsplit node.
    pub fn threshold(&self, before: f64) -> f64 {
        // If all rows have the same gradient, scores differ only by rounding errors.
        before + self.min_gain.max(before.abs() * ROUNDING)
    }

    /// Returns the score that both sides of a cut must exceed together if missing values have a child of their own.
    /// `before` is the score of the unsplit node, `values` that of its rows with a value, and `missing` that of the
    /// others. A cut must separate values, not only values from missing ones.
    pub fn threshold_beside(&self, before: f64, values: f64, missing: f64) -> f64 {
        (self.threshold(before) - missing).max(values + values.abs() * ROUNDING)
    }

    /// Returns whether a node has enough rows to be split.
    pub fn may_split(&self, sums: GradientSums) -> bool {
        sums.count >= self.min_data.max(1).saturating_mul(2).max(self.min_to_split)
    }

    /// Returns whether a feature can be cut in a node with this total, given the cell of its missing values: some rows
    /// must have a value, and missing values must be enough for a child of their own if they have one.
    pub fn may_cut<C: Cell>(&self, total: C, missing: Option<C>) -> bool {
        let count = |cell: C| cell.sums(self.scale.count_bits).count;
        let (missing, least) = (missing.map_or(0, count), self.min_data.max(1));
        let is_enough = missing == 0 || missing >= least || self.missing != MissingSides::Own;
        missing < count(total) && is_enough
    }

    /// Returns the best cut between bins. `missing` is the cell of missing values, which are tried on all allowed sides.
    pub fn best_cut<C: Cell>(&self, bins: &[C], missing: Option<C>, total: GradientSums) -> Option<Cut> {
        let missing = missing.filter(|cell| cell.sums(self.scale.count_bits).count > 0);
        if let (MissingSides::Own, Some(missing)) = (self.missing, missing) {
            return self.best_cut_beside(bins, missing.sums(self.scale.count_bits), total);
        }
        let before = self.score(total);
        let mut best = BestCut { cut: None, score: self.threshold(before) };
        let (totals, sides) = (NodeTotals::of(self, total), (self.missing, missing));
        match self.split {
            Divisor::Weight { .. } => totals.scan_sides::<C, BY_WEIGHT>(bins, sides, &mut best),
            Divisor::Rows => totals.scan_sides::<C, BY_ROWS>(bins, sides, &mut best),
            Divisor::One => totals.scan_sides::<C, BY_ONE>(bins, sides, &mut best),
        }
        best.cut.map(|cut| Cut { gain: best.score - before, ..cut })
    }

    /// Returns the best cut of a node in which some values are missing, if these have a child of their own. The cut
    /// maximises the sum of three scores. If values cannot be cut, they are separated from missing values.
    fn best_cut_beside<C: Cell>(
        &self,
        bins: &[C],
        missing: GradientSums,
        total: GradientSums,
    ) -> Option<Cut> {
        let values = total - missing;
        let totals = NodeTotals::of(self, values);
        if !totals.is_enough(missing) || !totals.is_enough(values) {
            return None; // a part of the values is not enough, either
        }
        let (before, apart, beside) = (self.score(total), self.score(values), self.score(missing));
        let mut best = BestCut { cut: None, score: self.threshold_beside(before, apart, beside) };
        match self.split {
            Divisor::Weight { .. } => totals.scan_values::<C, BY_WEIGHT>(bins, &mut best),
            Divisor::Rows => totals.scan_values::<C, BY_ROWS>(bins, &mut best),
            Divisor::One => totals.scan_values::<C, BY_ONE>(bins, &mut best),
        }
        let last = bins.len() as u32 - 1; // there is always a bin
        let separates = Cut { code: last, missing: MissingBranch::Right, gain: 0.0 };
        let (cut, score) = match best.cut {
            Some(cut) => (cut, best.score),
            None if apart + beside > self.threshold(before) => (separates, apart),
            None => return None,
        };
        Some(Cut { gain: score + beside - before, ..cut })
    }
}

/// Relative difference of two scores that may be a rounding error.
const ROUNDING: f64 = 1e-10;

impl Divisor {
    /// Returns the divisor that these sums have.
    #[inline]
    pub(super) fn of(self, sums: GradientSums, scale: &Scale) -> f64 {
        match self {
            Divisor::Weight { lambda } => sums.weight as f64 / scale.weight + lambda,
            Divisor::Rows => sums.count as f64,
            Divisor::One => 1.0,
        }
    }

    /// Divides a number by these sums. The result is 0 if the divisor is 0.
    #[inline]
    fn divide(self, number: f64, sums: GradientSums, scale: &Scale) -> f64 {
        let divisor = self.of(sums, scale);
        if divisor > 0.0 { number / divisor } else { 0.0 }
    }
}

/// Returns the weight of a weak ranker: ln((Z + R) / (Z - R)) / 2 (Freund et al. 2003, eq. 6). R is the sum of gradients of
/// the documents that it selects, and Z the sum of the weights of all pairs.
fn weak_ranker_weight(selected: f64, pairs: f64) -> f64 {
    /// A weak ranker without errors would have an infinite weight, so its share of errors counts as at least this.
    const LEAST_ERROR: f64 = 1e-9;
    if pairs <= 0.0 {
        return 0.0;
    }
    let share = (selected / pairs).clamp(LEAST_ERROR - 1.0, 1.0 - LEAST_ERROR);
    0.5 * libm::log((1.0 + share) / (1.0 - share))
}
