//! Finds the best cut (candidate split) of a node by one feature. The input is the sums of the node's rows for each
//! code (bin number), in ascending order of codes.

use super::criterion::{Criterion, FEW_ROWS};
use super::features::Drawn;
use crate::bins::{FeatureBins, MissingBranch, MissingSides, middle};
use crate::config::{ForestCandidates, ForestSettings};
use crate::driver::ForestSplit;

/// Constraints on cuts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutRules {
    /// Minimum number of rows of each child.
    pub min_rows: u32,
    /// Minimum number of rows of a node that is split.
    pub min_to_split: u32,
    /// The gain of a cut must be above this number, which is in units of the criterion.
    pub min_gain: f64,
    /// The sides that missing values may be on.
    pub missing: MissingSides,
    /// How candidate cuts are generated.
    pub candidates: ForestCandidates,
    /// Whether each code represents a single value of the feature.
    pub every_value: bool,
    /// Whether features have penalties, so that the best cut is not necessarily that with the highest score.
    pub priced: bool,
}

impl CutRules {
    /// Derives the rules from training parameters. `unit` is the factor that converts scores of the criterion to
    /// gains.
    pub(super) fn of(parameters: &ForestSettings, unit: f64) -> Self {
        CutRules {
            min_rows: u32::try_from(parameters.learner.tree.min_data_in_leaf).unwrap_or(u32::MAX).max(1),
            min_to_split: u32::try_from(parameters.learner.tree.min_data_to_split).unwrap_or(u32::MAX).max(2),
            min_gain: parameters.learner.tree.min_gain / unit,
            missing: MissingSides::of(parameters.missing),
            candidates: parameters.learner.candidates,
            every_value: parameters.learner.candidates.max_bin().is_none(),
            priced: false,
        }
    }

    /// Returns whether each feature has one random cut.
    pub(super) fn is_random(&self) -> bool {
        matches!(self.candidates, ForestCandidates::Random { .. })
    }

    /// Returns whether a node with this many rows may be split.
    pub(super) fn may_split(&self, rows: u32) -> bool {
        rows >= self.min_rows.saturating_mul(2).max(self.min_to_split)
    }
}

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
    /// The score of a cut must be above this number.
    least: f64,
    /// The best cut; `None` if there is none so far.
    pub found: Option<FoundCut<K::Sums>>,
}

/// The rows that the cuts of a scan divide, and what is beside them.
struct Scan<S> {
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
    /// Starts the search for a node with these sums.
    pub(super) fn new(criterion: &'a K, rules: &'a CutRules, total: K::Sums) -> Self {
        let before = criterion.score(&total);
        let least = match rules.candidates {
            // Random cuts need not have a positive gain.
            ForestCandidates::Random { .. } if rules.min_gain <= 0.0 => f64::NEG_INFINITY,
            // A gain within the rounding error is none.
            _ => before + rules.min_gain.max(before.abs() * 1e-12).max(criterion.gain_error(&total)),
        };
        BestForestCut { criterion, rules, total, least, found: None }
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
    fn two_sides(&self, missing: MissingBranch, start: K::Sums) -> Scan<K::Sums> {
        let (total, middle) = (self.total, K::Sums::default());
        Scan { missing, total, start, middle, beside: 0.0, least: self.least }
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
        let scan = Scan { missing: MissingBranch::Middle, total, start, middle, beside, least };
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
        if self.is_better(score, drawn) {
            let (feature, worth) = (drawn.feature, score - drawn.penalty);
            let (code, threshold) = (bins.bins() as u32 - 1, f32::MAX);
            let (missing, middle) = (MissingBranch::Right, K::Sums::default());
            self.found = Some(FoundCut { feature, code, threshold, missing, score, worth, left, middle });
        }
    }

    /// Tries every cut between two codes. If missing values go right, a cut after the last code separates them from all
    /// other values.
    fn scan(&mut self, drawn: &Drawn, bins: &FeatureBins, values: &[(u32, K::Sums)], scan: Scan<K::Sums>) {
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
        scan: &Scan<K::Sums>,
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
        scan: &Scan<K::Sums>,
        alone: bool,
    ) -> Option<(usize, f64, K::Sums)> {
        let criterion = self.criterion;
        match (K::rows(&self.total) as usize) < FEW_ROWS {
            true => self.best_place(feature, values, scan, alone, |sums| criterion.score_of_few(sums)),
            false => self.best_place(feature, values, scan, alone, |sums| criterion.score(sums)),
        }
    }

    /// Returns the index of the last code on the left of the best cut, the score of both sides, and the sums of the
    /// left side.
    #[inline(always)]
    fn best_place(
        &self,
        feature: u32,
        values: &[(u32, K::Sums)],
        scan: &Scan<K::Sums>,
        alone: bool,
        score: impl Fn(&K::Sums) -> f64,
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
            if both > least || (ties && both == least) {
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

/// Returns a cut between two codes that are adjacent in a node: the last code below the midpoint of the two codes'
/// values, and the midpoint. Rows outside the node may have codes in between; the midpoint determines their side.
pub(super) fn between(bins: &FeatureBins, below: u32, above: u32) -> (u32, f32) {
    let threshold = middle(bins.centres[below as usize], bins.centres[above as usize]);
    (bins.code_up_to(threshold).clamp(below, above - 1), threshold)
}

impl CutRules {
    /// Returns the code and threshold of a cut between one of the node's codes and the next code that occurs in the
    /// node. The threshold is the midpoint between the two codes or, unless each code represents a single value, a
    /// bin boundary near the midpoint.
    fn place<S>(&self, bins: &FeatureBins, values: &[(u32, S)], place: usize) -> (u32, f32) {
        let below = values[place].0;
        let Some((above, _)) = values.get(place + 1) else {
            return (bins.bins() as u32 - 1, f32::MAX); // the other side has only missing values
        };
        let (code, threshold) = between(bins, below, *above);
        (code, if self.every_value { threshold } else { bins.cuts[code as usize] })
    }

    /// Returns the code and threshold of a random cut between two codes.
    fn place_at_random(&self, bins: &FeatureBins, (first, last): (u32, u32), draw: f64) -> (u32, f32) {
        let (least, most) = (bins.centres[first as usize], bins.centres[last as usize]);
        let at = (f64::from(least) + draw * (f64::from(most) - f64::from(least))) as f32;
        let code = bins.code_up_to(at).clamp(first, last - 1);
        let is_between = bins.centres[code as usize] <= at && at < bins.centres[code as usize + 1];
        (code, if self.every_value && is_between { at } else { bins.cuts[code as usize] })
    }
}
