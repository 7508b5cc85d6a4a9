//! Finds the best cut (candidate split) of a node by one feature. The input is the sums of the node's rows for each
//! code (bin number), in ascending order of codes.

use super::criterion::{Criterion, FEW_ROWS};
use super::cut_rules::CutRules;
use super::features::Drawn;
use crate::bins::{FeatureBins, MissingBranch, MissingSides};
use crate::config::{Constraint, ForestCandidates};
use crate::driver::ForestSplit;
use crate::tree::{ValueBounds, order_of_children};

/// A cut found for a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundCut<S> {
    /// Index of the feature.
    pub feature: u32,
    /// Rows with at most this code go left.
    pub code: u32,
    /// Rows with at most this value go left.
    pub threshold: f32,
    /// Where missing values go.
    pub missing: MissingBranch,
    /// Sum of the scores of all children.
    pub score: f64,
    /// The score minus the penalty of the feature.
    pub worth: f64,
    /// Sums over the rows of the left side.
    pub left: S,
    /// Sums over the rows with missing values; zero unless these have a child of their own.
    pub middle: S,
}

impl<S> FoundCut<S> {
    /// Returns whether all values go left, and only missing ones right.
    pub(super) fn is_apart(&self) -> bool {
        self.missing == MissingBranch::Right && self.threshold == f32::MAX
    }

    /// Returns the code of missing values if they go left, and otherwise `u32::MAX`.
    pub(super) fn missing_goes_left(&self, bins: &FeatureBins) -> u32 {
        bins.missing_code.filter(|_| self.missing == MissingBranch::Left).unwrap_or(u32::MAX)
    }

    /// Returns the code of missing values if they have a child of their own.
    pub(super) fn missing_goes_middle(&self, bins: &FeatureBins) -> Option<u32> {
        bins.missing_code.filter(|_| self.missing == MissingBranch::Middle)
    }

    /// Converts the cut to a split of a tree.
    pub(super) fn to_split(&self, left: u32, gain: f64) -> ForestSplit {
        ForestSplit {
            feature: self.feature,
            code: self.code,
            threshold: self.threshold,
            missing: self.missing,
            left,
            gain,
        }
    }
}

/// The best cut of a node so far.
pub(super) struct BestForestCut<'a, K: Criterion> {
    criterion: &'a K,
    rules: &'a CutRules,
    total: K::Sums,
    /// The bounds of the values of the children.
    bounds: ValueBounds,
    /// The score of a cut must be above this number.
    least: f64,
    /// The best cut; `None` if there is none so far.
    pub found: Option<FoundCut<K::Sums>>,
}

/// The rows that the cuts of a scan divide, and what is beside them.
struct ForestCutScan<S> {
    /// Where missing values go.
    missing: MissingBranch,
    /// Sums over the rows that are divided.
    total: S,
    /// Sums over the rows that are on the left of every cut.
    start: S,
    /// Sums over the rows that are on no side.
    middle: S,
    /// The score of the rows that are on no side.
    beside: f64,
    /// The score that both sides of a cut must exceed together.
    least: f64,
}

impl<'a, K: Criterion> BestForestCut<'a, K> {
    /// Starts the search for a node with these sums and bounds.
    pub(super) fn new(criterion: &'a K, rules: &'a CutRules, total: K::Sums, bounds: ValueBounds) -> Self {
        let before = criterion.score(&total);
        let least = match rules.candidates {
            // Random cuts need not have a positive gain.
            ForestCandidates::Random { .. } if rules.min_gain <= 0.0 => f64::NEG_INFINITY,
            // A gain within the rounding error is none.
            _ => before + rules.min_gain.max(before.abs() * 1e-12).max(criterion.gain_error(&total)),
        };
        BestForestCut { criterion, rules, total, bounds, least, found: None }
    }

    /// Returns in which order a feature must have the values of both sides of a cut; see [`order_of_children`].
    fn order(&self, feature: u32, is_apart: bool) -> Constraint {
        order_of_children(self.rules.constraint(feature), self.rules.missing, is_apart)
    }

    /// Returns whether the values of both sides of a cut are in order.
    fn are_in_order(&self, order: Constraint, left: &K::Sums, right: &K::Sums) -> bool {
        let value = |sums| self.bounds.nearest(self.criterion.value(sums));
        order.is_none_or(|order| order.allows(value(left), value(right)))
    }

    /// Returns the gain of a cut, in the unit in which models store gains.
    pub(super) fn gain(&self, cut: &FoundCut<K::Sums>) -> f64 {
        (cut.score - self.criterion.score(&self.total)).max(0.0) * self.criterion.unit()
    }

    /// Evaluates the cuts of a feature, given the sums by code in ascending order. Missing values have the last code.
    pub(super) fn consider(&mut self, drawn: &Drawn, bins: &FeatureBins, cells: &[(u32, K::Sums)]) {
        let is_missing = |cell: &&(u32, K::Sums)| Some(cell.0) == bins.missing_code;
        let (values, missing) = match cells.last().filter(is_missing) {
            Some((_, missing)) => (&cells[..cells.len() - 1], Some(missing)),
            None => (cells, None),
        };
        if self.rules.is_random() {
            let codes = CodeExtremes::of(cells.iter().map(|(code, _)| *code), bins);
            self.try_at_random(drawn, bins, &codes, |goes_left| {
                let mut left = K::Sums::default();
                cells.iter().filter(|cell| goes_left(cell.0)).for_each(|(_, sums)| K::plus(&mut left, sums));
                left
            });
            return;
        }
        match (self.rules.missing, missing) {
            (MissingSides::Left, _) => {
                if let Some(missing) = missing {
                    self.try_apart(drawn, bins, missing);
                }
                let missing = missing.copied().unwrap_or_default();
                self.scan(drawn, bins, values, self.two_sides(MissingBranch::Left, missing));
            }
            (MissingSides::Own, None) => {
                self.scan(drawn, bins, values, self.two_sides(MissingBranch::Unseen, K::Sums::default()));
            }
            (MissingSides::Own, Some(missing)) => self.consider_beside(drawn, bins, values, missing),
            (MissingSides::Right, _) | (_, None) => {
                self.scan(drawn, bins, values, self.two_sides(MissingBranch::Right, K::Sums::default()));
            }
            (MissingSides::Either, Some(missing)) => {
                self.scan(drawn, bins, values, self.two_sides(MissingBranch::Right, K::Sums::default()));
                self.scan(drawn, bins, values, self.two_sides(MissingBranch::Left, *missing));
            }
        }
    }

    /// Returns a scan that divides all rows of the node. Those in `start` are on the left of every cut.
    fn two_sides(&self, missing: MissingBranch, start: K::Sums) -> ForestCutScan<K::Sums> {
        let (total, middle) = (self.total, K::Sums::default());
        ForestCutScan { missing, total, start, middle, beside: 0.0, least: self.least }
    }

    /// Evaluates the cuts of a feature whose missing values have a child of their own. If no cut between values gains
    /// anything, missing values may still be separated from all others.
    fn consider_beside(
        &mut self,
        drawn: &Drawn,
        bins: &FeatureBins,
        values: &[(u32, K::Sums)],
        missing: &K::Sums,
    ) {
        let total = K::minus(self.total, missing);
        if K::rows(missing) < self.rules.min_rows || K::rows(&total) < self.rules.min_rows {
            return;
        }
        let beside = self.criterion.score(missing);
        let least = self.least_beside(&total, beside);
        let (start, middle) = (K::Sums::default(), *missing);
        let scan = ForestCutScan { missing: MissingBranch::Middle, total, start, middle, beside, least };
        // What gains the most for this feature alone decides between three children and two.
        let best = self.best_of_scan(drawn.feature, values, &scan, true);
        match best {
            Some(place) => self.take(drawn, bins, values, &scan, place),
            None => self.try_apart(drawn, bins, missing),
        }
    }

    /// Returns the score that both sides of a cut must exceed together, given the sums over the rows that have a value
    /// and the score of the others. The cut must gain something for the rows that have a value.
    fn least_beside(&self, values: &K::Sums, beside: f64) -> f64 {
        let alone = self.criterion.score(values);
        let error = (alone.abs() * 1e-12).max(self.criterion.gain_error(values));
        (self.least - beside).max(alone + error)
    }

    /// Tries the cut that separates missing values from all others.
    fn try_apart(&mut self, drawn: &Drawn, bins: &FeatureBins, missing: &K::Sums) {
        let left = K::minus(self.total, missing);
        if K::rows(&left).min(K::rows(missing)) < self.rules.min_rows {
            return;
        }
        let score = self.criterion.score(&left) + self.criterion.score(missing);
        let order = self.order(drawn.feature, true);
        if self.is_better(score, drawn) && self.are_in_order(order, &left, missing) {
            let (feature, worth) = (drawn.feature, score - drawn.penalty);
            let (code, threshold) = (bins.bins() as u32 - 1, f32::MAX);
            let (missing, middle) = (MissingBranch::Right, K::Sums::default());
            self.found = Some(FoundCut { feature, code, threshold, missing, score, worth, left, middle });
        }
    }

    /// Tries every cut between two codes. If missing values go right, a cut after the last code separates them from all
    /// other values.
    fn scan(
        &mut self,
        drawn: &Drawn,
        bins: &FeatureBins,
        values: &[(u32, K::Sums)],
        scan: ForestCutScan<K::Sums>,
    ) {
        // Features with penalties are compared by their best cuts.
        if let Some(place) = self.best_of_scan(drawn.feature, values, &scan, self.rules.priced) {
            self.take(drawn, bins, values, &scan, place);
        }
    }

    /// Takes the best cut of a scan if it is better than the best so far.
    fn take(
        &mut self,
        drawn: &Drawn,
        bins: &FeatureBins,
        values: &[(u32, K::Sums)],
        scan: &ForestCutScan<K::Sums>,
        (place, both, left): (usize, f64, K::Sums),
    ) {
        let score = both + scan.beside;
        if self.is_better(score, drawn) {
            let (feature, worth) = (drawn.feature, score - drawn.penalty);
            let (code, threshold) = self.rules.place(bins, values, place);
            let (missing, middle) = (scan.missing, scan.middle);
            self.found = Some(FoundCut { feature, code, threshold, missing, score, worth, left, middle });
        }
    }

    /// Returns the best cut of a scan. Unless `alone` is set, it must improve on the best cut so far.
    fn best_of_scan(
        &self,
        feature: u32,
        values: &[(u32, K::Sums)],
        scan: &ForestCutScan<K::Sums>,
        alone: bool,
    ) -> Option<(usize, f64, K::Sums)> {
        let criterion = self.criterion;
        if self.rules.constraint(feature).is_some() {
            return self.best_place(
                feature,
                values,
                scan,
                alone,
                |sums| criterion.score(sums),
                |place, left| {
                    let order = self
                        .order(feature, scan.missing == MissingBranch::Right && place + 1 == values.len());
                    self.are_in_order(order, left, &K::minus(scan.total, left))
                },
            );
        }
        match (K::rows(&self.total) as usize) < FEW_ROWS {
            true => self.best_place(
                feature,
                values,
                scan,
                alone,
                |sums| criterion.score_of_few(sums),
                |_, _| true,
            ),
            false => self.best_place(feature, values, scan, alone, |sums| criterion.score(sums), |_, _| true),
        }
    }

    /// Returns the index of the last code on the left of the best cut, the score of both sides, and the sums of the
    /// left side. `allows` returns whether a better cut is allowed, given its index and the sums of the left side.
    #[inline(always)]
    fn best_place(
        &self,
        feature: u32,
        values: &[(u32, K::Sums)],
        scan: &ForestCutScan<K::Sums>,
        alone: bool,
        score: impl Fn(&K::Sums) -> f64,
        allows: impl Fn(usize, &K::Sums) -> bool,
    ) -> Option<(usize, f64, K::Sums)> {
        let total = &scan.total;
        let all = K::rows(total);
        let mut left = scan.start;
        // If scores are equal, the feature with the lower index is preferred and, within a feature, the first cut.
        let (mut least, mut ties) = match &self.found {
            Some(best) if !alone => (best.score, feature < best.feature),
            _ => (scan.least, false),
        };
        let mut found = None;
        for (place, (_, sums)) in values.iter().enumerate() {
            K::plus(&mut left, sums);
            let rows = K::rows(&left);
            if all - rows < self.rules.min_rows {
                break;
            }
            if rows < self.rules.min_rows {
                continue;
            }
            let both = score(&left) + score(&K::minus(*total, &left));
            if (both > least || (ties && both == least)) && allows(place, &left) {
                (least, ties) = (both, false);
                found = Some((place, both, left));
            }
        }
        found
    }

    /// Returns whether a cut is better than the best so far. Penalties decide between cuts, not whether there is one.
    fn is_better(&self, score: f64, drawn: &Drawn) -> bool {
        let worth = score - drawn.penalty;
        let is_first = |best: &FoundCut<K::Sums>| {
            worth > best.worth || (worth == best.worth && drawn.feature < best.feature)
        };
        score > self.least && self.found.as_ref().is_none_or(is_first)
    }

    /// Tries the random cut of a feature. `sums_of` returns the sums over the rows whose codes are selected.
    pub(super) fn try_at_random(
        &mut self,
        drawn: &Drawn,
        bins: &FeatureBins,
        codes: &CodeExtremes,
        sums_of: impl Fn(&dyn Fn(u32) -> bool) -> K::Sums,
    ) {
        let mut missing = match self.rules.missing {
            MissingSides::Either => MissingBranch::of_side(codes.missing && drawn.missing_left),
            MissingSides::Left => MissingBranch::Left,
            MissingSides::Right => MissingBranch::Right,
            MissingSides::Own if codes.missing => MissingBranch::Middle,
            MissingSides::Own => MissingBranch::Unseen,
        };
        let (code, threshold) = match (codes.first, codes.last) {
            (first, last) if first > last => return, // all values are missing
            (first, last) if first < last => self.rules.place_at_random(bins, (first, last), drawn.cut),
            // All values that are not missing are equal.
            _ if codes.missing => {
                if self.rules.missing != MissingSides::Either {
                    missing = MissingBranch::Right;
                }
                (bins.bins() as u32 - 1, f32::MAX)
            }
            _ => return,
        };
        let left = sums_of(&|other| match Some(other) == bins.missing_code {
            true => missing == MissingBranch::Left,
            false => other <= code,
        });
        let mut right = K::minus(self.total, &left);
        let mut score = self.criterion.score(&left);
        let mut middle = K::Sums::default();
        if missing == MissingBranch::Middle {
            middle = sums_of(&|other| Some(other) == bins.missing_code);
            right = K::minus(right, &middle);
            if K::rows(&middle) < self.rules.min_rows {
                return;
            }
        }
        if K::rows(&left).min(K::rows(&right)) < self.rules.min_rows {
            return;
        }
        score += self.criterion.score(&right);
        let is_apart = missing == MissingBranch::Right && threshold == f32::MAX;
        if !self.are_in_order(self.order(drawn.feature, is_apart), &left, &right) {
            return;
        }
        if missing == MissingBranch::Middle {
            score += self.criterion.score(&middle);
        }
        if self.is_better(score, drawn) {
            let (feature, worth) = (drawn.feature, score - drawn.penalty);
            self.found = Some(FoundCut { feature, code, threshold, missing, score, worth, left, middle });
        }
    }
}

/// Returns the sums over the rows whose codes are selected, given the code and target of each row.
#[inline]
pub(super) fn sums_of<K: Criterion>(
    rows: impl Iterator<Item = (u32, K::Row)>,
    is_selected: &dyn Fn(u32) -> bool,
) -> K::Sums {
    let mut sums = K::Sums::default();
    rows.filter(|(code, _)| is_selected(*code)).for_each(|(_, target)| K::add(&mut sums, target));
    sums
}

/// The lowest and the highest code of a node's rows, and whether any value is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeExtremes {
    first: u32,
    last: u32,
    missing: bool,
}

impl CodeExtremes {
    /// Finds the extremes of codes in any order.
    #[inline]
    pub(super) fn of(codes: impl Iterator<Item = u32>, bins: &FeatureBins) -> Self {
        let missing_code = bins.missing_code.unwrap_or(u32::MAX);
        let mut extremes = CodeExtremes { first: u32::MAX, last: 0, missing: false };
        for code in codes {
            if code == missing_code {
                extremes.missing = true;
            } else {
                extremes.first = extremes.first.min(code);
                extremes.last = extremes.last.max(code);
            }
        }
        extremes
    }

    /// Returns whether rows differ in the feature.
    pub(super) fn vary(&self) -> bool {
        self.first < self.last || (self.missing && self.first == self.last)
    }
}
