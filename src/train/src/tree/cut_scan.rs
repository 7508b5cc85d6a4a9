//! Scores all cuts of a histogram and finds the best one.

use super::cell::{Cell, GradientSums, exact};
use super::split::{Cut, Divisor, SplitRules};
use crate::bins::{MissingBranch, MissingSides};
use fearless_simd::{Level, dispatch};

/// The best cut so far.
pub(super) struct BestCut {
    /// The cut, if there is one.
    pub cut: Option<Cut>,
    /// Its score, or the score that a cut must exceed.
    pub score: f64,
}

/// Values of a constant parameter: which sum divides the squared gradients.
pub(super) const BY_WEIGHT: u8 = 0;
pub(super) const BY_ROWS: u8 = 1;
pub(super) const BY_ONE: u8 = 2;

/// Number of cuts that are scored at a time. Each cut is scored independently, so the vector width does not affect
/// results.
const CUTS: usize = 64;
/// Number of cuts whose scores are computed together, so that the compiler uses vectors.
const LANES: usize = 8;

/// Totals and constants that all cuts of a node share. The totals are integers, which floating-point numbers represent
/// exactly.
pub(super) struct NodeTotals {
    count_bits: u32,
    gradient: f64,
    weight: f64,
    count: f64,
    /// Square of the gradient that one unit represents.
    units: f64,
    weight_unit: f64,
    lambda: f64,
    least_weight: f64,
    least_count: f64,
}

impl NodeTotals {
    pub(super) fn of(rules: &SplitRules, total: GradientSums) -> Self {
        let lambda = match rules.split {
            Divisor::Weight { lambda } => lambda,
            Divisor::Rows | Divisor::One => 0.0,
        };
        NodeTotals {
            count_bits: rules.scale.count_bits,
            gradient: total.gradient as f64,
            weight: total.weight as f64,
            count: total.count as f64,
            units: 1.0 / (rules.scale.gradient * rules.scale.gradient),
            weight_unit: 1.0 / rules.scale.weight,
            lambda,
            least_weight: match rules.split {
                // This limit is slightly below the minimum, to tolerate rounding errors, and never negative.
                Divisor::Weight { .. } => (rules.min_weight * (1.0 - 1e-12) + lambda).max(0.0),
                // Rows without hessians are rows like any other.
                Divisor::Rows | Divisor::One if rules.min_weight <= 0.0 => f64::NEG_INFINITY,
                Divisor::Rows | Divisor::One => rules.min_weight * (1.0 - 1e-12),
            },
            least_count: rules.min_data.max(1) as f64,
        }
    }

    /// Returns whether a child with these sums has enough rows and weight.
    pub(super) fn is_enough(&self, sums: GradientSums) -> bool {
        let weight = sums.weight as f64 * self.weight_unit + self.lambda;
        sums.count as f64 >= self.least_count && weight > self.least_weight
    }

    /// Tries all cuts between the values of a node whose missing values have a child of their own. The totals are
    /// those of the values.
    pub(super) fn scan_values<C: Cell, const BY: u8>(&self, bins: &[C], best: &mut BestCut) {
        dispatch!(Level::new(), _ => self.scan::<C, BY>(bins, C::default(), MissingBranch::Middle, best));
    }

    /// Tries all cuts, with missing values on the allowed sides. `BY` says what sums are divided by.
    pub(super) fn scan_sides<C: Cell, const BY: u8>(
        &self,
        bins: &[C],
        (sides, missing): (MissingSides, Option<C>),
        best: &mut BestCut,
    ) {
        dispatch!(Level::new(), _ => {
            if sides == MissingSides::Left {
                if missing.is_some() {
                    self.scan_apart::<C, BY>(bins, best);
                }
                self.scan::<C, BY>(bins, missing.unwrap_or_default(), MissingBranch::Left, best);
                return;
            }
            // A cut after the last bin is a candidate too: it separates missing values from all others.
            let absent = if sides == MissingSides::Own { MissingBranch::Unseen } else { MissingBranch::Right };
            self.scan::<C, BY>(bins, C::default(), absent, best);
            if let (MissingSides::Either, Some(missing)) = (sides, missing) {
                self.scan::<C, BY>(bins, missing, MissingBranch::Left, best);
            }
        });
    }

    /// Tries the cut after the last bin, with missing values on the right.
    #[inline(always)]
    fn scan_apart<C: Cell, const BY: u8>(&self, bins: &[C], best: &mut BestCut) {
        let mut values = C::default();
        bins.iter().for_each(|bin| values.add(*bin));
        let mut apart = BestCut { cut: None, score: best.score };
        self.scan::<C, BY>(&[values], C::default(), MissingBranch::Right, &mut apart);
        if let Some(cut) = apart.cut {
            let code = bins.len() as u32 - 1; // there is always a bin
            *best = BestCut { cut: Some(Cut { code, ..cut }), score: apart.score };
        }
    }

    /// Updates `best` if a cut between these bins has a higher score. Of equally good cuts, the first is chosen.
    #[inline(always)]
    fn scan<C: Cell, const BY: u8>(&self, bins: &[C], start: C, missing: MissingBranch, best: &mut BestCut) {
        let mut sum = start;
        let mut up_to = [start; CUTS];
        for (place, bins) in bins.chunks(CUTS).enumerate() {
            let before = sum.sums(self.count_bits).count;
            for (up_to, bin) in up_to.iter_mut().zip(bins) {
                sum.add(*bin);
                *up_to = sum;
            }
            if place > 0 && sum.sums(self.count_bits).count == before {
                continue; // without rows, these cuts are the same as the last one
            }
            if let Some((cut, score)) = self.highest::<C, BY>(&mut up_to, bins.len(), best.score) {
                let code = (place * CUTS + cut) as u32;
                *best = BestCut { cut: Some(Cut { code, missing, gain: 0.0 }), score };
            }
        }
    }

    /// Returns the first cut with the highest score if this score is higher than `least`. Only the first `count` cuts
    /// are compared; others may be overwritten.
    #[inline(always)]
    fn highest<C: Cell, const BY: u8>(
        &self,
        up_to: &mut [C; CUTS],
        count: usize,
        least: f64,
    ) -> Option<(usize, f64)> {
        let last = up_to[count.checked_sub(1)?];
        let used = count.next_multiple_of(LANES);
        up_to[count..used].fill(last); // same score as the last cut, which wins ties
        let (mut scores, mut most) = ([f64::NEG_INFINITY; CUTS], [f64::NEG_INFINITY; LANES]);
        let parts = up_to.as_chunks::<LANES>().0.iter().zip(scores.as_chunks_mut::<LANES>().0);
        for (up_to, scores) in parts.take(used / LANES) {
            *scores = self.scores::<C, BY>(up_to);
            for (most, score) in most.iter_mut().zip(scores) {
                *most = if *score > *most { *score } else { *most };
            }
        }
        let most = most.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let cut = if most > least { scores.iter().position(|score| *score == most) } else { None };
        cut.map(|cut| (cut, most))
    }

    /// Returns the score of each cut: G_l^2 / D_l + G_r^2 / D_r, where G is the sum of gradients on the left or right
    /// side, and D is the number of rows, the sum of weights plus lambda, or 1. The score is computed as a single fraction,
    /// because division is slow.
    #[inline(always)]
    fn scores<C: Cell, const BY: u8>(&self, up_to: &[C; LANES]) -> [f64; LANES] {
        let mut scores = [0.0; LANES];
        for (score, left) in scores.iter_mut().zip(up_to) {
            let left = left.sums(self.count_bits);
            let (gradient, weight, count) = (exact(left.gradient), exact(left.weight), exact(left.count));
            let (gradient_right, weight_right) = (self.gradient - gradient, self.weight - weight);
            let weight_left = weight * self.weight_unit + self.lambda;
            let weight_right = weight_right * self.weight_unit + self.lambda;
            let (below_left, below_right) = match BY {
                BY_ROWS => (count, self.count - count),
                BY_ONE => (1.0, 1.0),
                _ => (weight_left, weight_right),
            };
            let above = gradient * gradient * below_right + gradient_right * gradient_right * below_left;
            let value = above * self.units / (below_left * below_right);
            let enough = (count >= self.least_count)
                & (self.count - count >= self.least_count)
                & (weight_left > self.least_weight)
                & (weight_right > self.least_weight);
            *score = if enough { value } else { f64::NEG_INFINITY };
        }
        scores
    }
}
