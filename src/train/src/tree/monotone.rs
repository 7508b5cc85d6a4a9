//! Monotone constraints, by the method that LightGBM calls basic and XGBoost uses: a split on a constrained feature must
//! order the values of its children, and no leaf below a child has a value beyond the middle between them. So values of
//! leaves have bounds, and are moved into them. A split is scored with the values that its children have within the bounds.
//!
//! A missing value has no place among the others, so wherever it goes, it breaks no constraint; with `missing=low` and
//! `missing=high` it counts as smaller or larger than all others, and is ordered like them.

use super::cell::{Cell, GradientSums};
use super::cut_scan::NodeTotals;
use super::finder::{GrowContext, OpenNode};
use super::split::{Cut, Divisor, FoundSplit, LeafRule, SplitRules};
use crate::bins::{MissingBranch, MissingSides};
use crate::config::{Constraint, Direction};

/// The range in which the values of all leaves below a node must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueBounds {
    least: f64,
    most: f64,
}

impl ValueBounds {
    /// All values.
    pub const ALL: ValueBounds = ValueBounds { least: f64::NEG_INFINITY, most: f64::INFINITY };

    /// Returns the nearest value in the range.
    pub fn nearest(self, value: f64) -> f64 {
        value.max(self.least).min(self.most)
    }

    /// Returns the bounds of the left, the right and, if there is one, the middle child of a node with these bounds.
    /// `order` is the direction from the value of the left child to that of the right one; both are within the bounds.
    pub fn of_children(self, order: Constraint, left: f64, right: f64) -> [ValueBounds; 3] {
        let middle = f64::midpoint(left, right);
        let (below, above) = (ValueBounds { most: middle, ..self }, ValueBounds { least: middle, ..self });
        match order {
            None => [self; 3],
            Some(Direction::Increasing) => [below, above, self],
            Some(Direction::Decreasing) => [above, below, self],
        }
    }
}

/// Returns the direction from the value of the left child to that of the right one. `is_apart` says whether all values are
/// on the left, and only missing ones on the right.
pub(crate) fn order_of_children(constraint: Constraint, sides: MissingSides, is_apart: bool) -> Constraint {
    match sides {
        _ if !is_apart => constraint,
        // Missing values on the right count as smaller than those on the left.
        MissingSides::Left => constraint.map(Direction::reversed),
        MissingSides::Right => constraint,
        MissingSides::Either | MissingSides::Own => None,
    }
}

/// What restricts the splits of a node on one feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitLimits {
    /// The constraint of the feature.
    pub constraint: Constraint,
    /// The bounds of the node.
    pub bounds: ValueBounds,
}

impl GrowContext<'_> {
    /// Returns what restricts the splits of a node on a feature. `None` if nothing does.
    pub(super) fn limits<C>(&self, open: &OpenNode<C>, feature: u32) -> Option<SplitLimits> {
        let constraint = self.monotone?[feature as usize];
        let is_free = constraint.is_none() && open.bounds == ValueBounds::ALL;
        (!is_free).then_some(SplitLimits { constraint, bounds: open.bounds })
    }

    /// Returns the best cut of a node between the bins of a feature.
    pub(super) fn best_cut<C: Cell>(
        &self,
        open: &OpenNode<C>,
        feature: u32,
        bins: &[C],
        missing: Option<C>,
    ) -> Option<Cut> {
        let total = open.total.sums(self.rules.scale.count_bits);
        match self.limits(open, feature) {
            None => self.rules.best_cut(bins, missing, total),
            Some(limits) => self.rules.best_cut_within(limits, bins, missing, total),
        }
    }

    /// Returns the bounds of the children of a split, given the bounds of the node and the sums of the children.
    pub(super) fn bounds_of_children(
        &self,
        bounds: ValueBounds,
        split: &FoundSplit,
        left: GradientSums,
        right: GradientSums,
    ) -> [ValueBounds; 3] {
        let Some(constraints) = self.monotone else { return [ValueBounds::ALL; 3] };
        let constraint = constraints[split.feature as usize];
        let order = order_of_children(constraint, self.rules.missing, split.is_apart());
        let (left, right) = self.rules.leaves(left, right, bounds);
        bounds.of_children(order, left.value, right.value)
    }
}

/// A node as a leaf with a value within its bounds.
#[derive(Debug, Clone, Copy)]
struct BoundedLeaf {
    value: f64,
    /// Score of the node's rows with this value.
    score: f64,
    /// Whether the value was moved into the bounds.
    is_moved: bool,
}

impl SplitRules {
    /// Returns the score of rows whose leaf has a value within bounds.
    pub(super) fn score_within(&self, sums: GradientSums, bounds: ValueBounds) -> f64 {
        if bounds == ValueBounds::ALL {
            return self.score(sums);
        }
        self.leaf_of(sums, self.value(sums, sums, false), bounds).score
    }

    /// Like [`SplitRules::score_within`], but for sums that are not quantised, divided by weights. If leaves divide by the
    /// number of rows, which is not known, values count as within the bounds.
    pub(super) fn score_of_within(&self, gradient: f64, weight: f64, bounds: ValueBounds) -> f64 {
        let (Divisor::Weight { lambda: of_split }, LeafRule::Quotient(Divisor::Weight { lambda: of_leaf })) =
            (self.split, self.leaf)
        else {
            return self.score_of(gradient, weight);
        };
        let (splits, leaves) = (weight + of_split, weight + of_leaf);
        let free = if leaves > 0.0 { gradient / leaves } else { 0.0 };
        let value = bounds.nearest(free);
        match value == free {
            true => self.score_of(gradient, weight),
            false => score_with(gradient, value, leaves, splits),
        }
    }

    /// Returns whether a split with these sums on its left and right side is allowed. `is_apart` says whether only missing
    /// values are on the right.
    pub(super) fn allows(
        &self,
        limits: SplitLimits,
        left: GradientSums,
        right: GradientSums,
        is_apart: bool,
    ) -> bool {
        let (left, right) = self.leaves(left, right, limits.bounds);
        self.are_in_order(limits, (&left, &right), is_apart)
    }

    fn are_in_order(
        &self,
        limits: SplitLimits,
        (left, right): (&BoundedLeaf, &BoundedLeaf),
        is_apart: bool,
    ) -> bool {
        // Two leaves with the value of the same bound are one leaf.
        let is_useless = (left.is_moved || right.is_moved) && left.value == right.value;
        let order = order_of_children(limits.constraint, self.missing, is_apart);
        !is_useless && order.is_none_or(|order| order.allows(left.value, right.value))
    }

    /// Returns both sides of a split as leaves. A weak ranker has a single split, whose sides have all rows of the tree.
    fn leaves(
        &self,
        left: GradientSums,
        right: GradientSums,
        bounds: ValueBounds,
    ) -> (BoundedLeaf, BoundedLeaf) {
        let all = left + right;
        let left_leaf = self.leaf_of(left, self.value(left, all, false), bounds);
        (left_leaf, self.leaf_of(right, self.value(right, all, true), bounds))
    }

    /// Returns rows as a leaf that has the value `free` unless bounds forbid it.
    fn leaf_of(&self, sums: GradientSums, free: f64, bounds: ValueBounds) -> BoundedLeaf {
        let value = bounds.nearest(free);
        let score = match self.leaf {
            LeafRule::Quotient(divisor) if value != free => {
                let gradient = sums.gradient as f64 / self.scale.gradient;
                let [splits, leaves] = [self.split, divisor].map(|divisor| divisor.of(sums, &self.scale));
                score_with(gradient, value, leaves, splits)
            }
            _ => self.score(sums),
        };
        BoundedLeaf { value, score, is_moved: value != free }
    }

    /// Like [`SplitRules::best_cut`], but with limits, and one cut at a time.
    pub(super) fn best_cut_within<C: Cell>(
        &self,
        limits: SplitLimits,
        bins: &[C],
        missing: Option<C>,
        total: GradientSums,
    ) -> Option<Cut> {
        let bits = self.scale.count_bits;
        let missing = missing.map(|cell| cell.sums(bits)).filter(|missing| missing.count > 0);
        let (some, missing) = (missing.is_some(), missing.unwrap_or_default());
        let totals = NodeTotals::of(self, total);
        let score = |sums| self.score_within(sums, limits.bounds);
        let (before, apart, beside) = (score(total), score(total - missing), score(missing));
        let mut best: Option<Cut> = None;
        for branch in
            [MissingBranch::Right, MissingBranch::Left, MissingBranch::Middle, MissingBranch::Unseen]
        {
            let (start, middle) = match branch {
                MissingBranch::Left => (missing, GradientSums::default()),
                MissingBranch::Middle => (GradientSums::default(), missing),
                MissingBranch::Right | MissingBranch::Unseen => Default::default(),
            };
            let (least, beside) = match branch {
                MissingBranch::Middle => (self.threshold_beside(before, apart, beside), beside),
                _ => (self.threshold(before), 0.0),
            };
            let mut left = start;
            for (code, bin) in bins.iter().enumerate() {
                left = left + bin.sums(bits);
                let is_last = code + 1 == bins.len();
                let right = total - middle - left;
                let is_candidate = self.missing.branches(some, is_last).contains(&branch)
                    && totals.is_enough(left)
                    && totals.is_enough(right)
                    && (branch != MissingBranch::Middle || totals.is_enough(middle));
                if !is_candidate {
                    continue;
                }
                let leaves = self.leaves(left, right, limits.bounds);
                let both = leaves.0.score + leaves.1.score;
                let gain = both + beside - before;
                let is_better = both > least && best.is_none_or(|best| gain > best.gain);
                if is_better && self.are_in_order(limits, (&leaves.0, &leaves.1), is_last && some) {
                    best = Some(Cut { code: code as u32, missing: branch, gain });
                }
            }
        }
        best
    }
}

/// Returns the score of rows whose leaf has a given value: by how much 2 G s - D s^2 exceeds 0, where G is the sum of
/// gradients, D the divisor of splits and s the step. If leaves and splits have the same divisor, the step is the value.
/// Otherwise the step of the best score, G / D, differs from the value of a free leaf, and changes in proportion to it.
fn score_with(gradient: f64, value: f64, leaves: f64, splits: f64) -> f64 {
    if splits <= 0.0 {
        return 0.0;
    }
    let step = value * leaves.max(0.0) / splits;
    step * (2.0 * gradient - splits * step)
}
