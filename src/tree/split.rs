//! The best place to cut a node by one feature, from sums alone.

use super::cell::{Cell, Scale, Sums};
use serde::{Deserialize, Serialize};

/// What a split must respect, and how sums become gains.
#[derive(Debug, Clone, Copy)]
pub struct SplitRules {
    /// Rows on either side at least.
    pub min_data: i64,
    /// Weight or sum of hessians on either side at least.
    pub min_weight: f64,
    /// A split must gain more than this.
    pub min_gain: f64,
    /// L2 regularisation.
    pub lambda: f64,
    /// How sums are scaled.
    pub scale: Scale,
}

/// A split that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FoundSplit {
    /// Which feature.
    pub feature: u32,
    /// Rows with a code up to this go left.
    pub code: u32,
    /// Rows with a value up to this go left; the same rows.
    pub threshold: f32,
    /// The code of missing values, when the feature has one.
    pub missing_code: Option<u32>,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// By how much the loss shrinks.
    pub gain: f64,
}

impl FoundSplit {
    /// The code of missing values, when they go left by exception.
    pub fn missing_goes_left(&self) -> Option<u32> {
        self.missing_code.filter(|_| self.missing_left)
    }
}

/// A cut within one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Codes up to this go left.
    pub code: u32,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// By how much the loss shrinks.
    pub gain: f64,
}

impl SplitRules {
    /// How much rows with these sums explain: G^2 / (H + lambda), in the loss's own unit.
    #[inline]
    pub fn score(&self, sums: Sums) -> f64 {
        self.score_of(sums.gradient as f64 / self.scale.gradient, sums.weight as f64 / self.scale.weight)
    }

    /// The same from numbers that are scaled back.
    #[inline]
    pub fn score_of(&self, gradient: f64, weight: f64) -> f64 {
        let weight = weight + self.lambda;
        if weight > 0.0 { gradient * gradient / weight } else { 0.0 }
    }

    /// What a leaf with these sums should say.
    pub fn value(&self, sums: Sums) -> f64 {
        let weight = sums.weight as f64 / self.scale.weight + self.lambda;
        if weight > 0.0 { sums.gradient as f64 / self.scale.gradient / weight } else { 0.0 }
    }

    /// The gain that a score must pass to be worth a split of a node that scores `before`.
    pub fn threshold(&self, before: f64) -> f64 {
        // Where all rows agree, sums differ by roundings only; those are not worth a split.
        before + self.min_gain.max(before * 1e-10)
    }

    /// Whether a node may be split at all.
    pub fn may_split(&self, sums: Sums) -> bool {
        sums.count >= self.min_data.max(1).saturating_mul(2)
    }

    /// The best cut between bins. `missing` are the sums of missing values, which try both sides.
    pub fn best_cut<C: Cell>(&self, bins: &[C], missing: Option<C>, total: Sums) -> Option<Cut> {
        let bits = self.scale.count_bits;
        let missing = missing.map(|cell| cell.sums(bits)).filter(|sums| sums.count > 0);
        let before = self.score(total);
        let mut best = Best { cut: None, score: self.threshold(before) };
        self.scan(bins, Sums::default(), total, false, &mut best);
        if let Some(missing) = missing {
            // The last bin is a candidate too: values on one side, missing ones on the other.
            self.scan(bins, missing, total, true, &mut best);
        }
        best.cut.map(|cut| Cut { gain: best.score - before, ..cut })
    }

    fn scan<C: Cell>(&self, bins: &[C], start: Sums, total: Sums, missing_left: bool, best: &mut Best) {
        let bits = self.scale.count_bits;
        let least = self.min_data.max(1);
        let units = 1.0 / (self.scale.gradient * self.scale.gradient);
        let (lambda, weight_unit) = (self.lambda, 1.0 / self.scale.weight);
        // Just below the least that is enough, and never below nothing at all.
        let least_weight = (self.min_weight * (1.0 - 1e-12) + lambda).max(0.0);
        let mut left = start;
        for (code, cell) in bins.iter().enumerate() {
            let sums = cell.sums(bits);
            if sums.count == 0 {
                continue; // the same rows on either side as before
            }
            left.gradient += sums.gradient;
            left.weight += sums.weight;
            left.count += sums.count;
            let right = total - left;
            if right.count < least {
                break;
            }
            if left.count < least {
                continue;
            }
            let (gradient_left, gradient_right) = (left.gradient as f64, right.gradient as f64);
            let weight_left = left.weight as f64 * weight_unit + lambda;
            let weight_right = right.weight as f64 * weight_unit + lambda;
            if weight_left <= least_weight || weight_right <= least_weight {
                continue; // nothing weighs on one side, or not enough
            }
            // G_l^2/W_l + G_r^2/W_r on one fraction line: dividing takes longer than all the rest, and
            // few cuts are better than all before.
            let above =
                gradient_left * gradient_left * weight_right + gradient_right * gradient_right * weight_left;
            let below = weight_left * weight_right;
            if above * units > best.score * below {
                best.score = above * units / below;
                best.cut = Some(Cut { code: code as u32, missing_left, gain: 0.0 });
            }
        }
    }
}

struct Best {
    cut: Option<Cut>,
    score: f64,
}
