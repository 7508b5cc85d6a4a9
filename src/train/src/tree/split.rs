//! The best place to cut a node by one feature, from sums alone.

use super::cell::{Cell, Scale, Sums, exact};
use fearless_simd::{Level, dispatch};
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
        let missing = missing.filter(|cell| cell.sums(self.scale.count_bits).count > 0);
        let before = self.score(total);
        let mut best = Best { cut: None, score: self.threshold(before) };
        let whole = Whole::of(self, total);
        dispatch!(Level::new(), _ => {
            whole.scan(bins, C::default(), false, &mut best);
            if let Some(missing) = missing {
                // The last bin is a candidate too: values on one side, missing ones on the other.
                whole.scan(bins, missing, true, &mut best);
            }
        });
        best.cut.map(|cut| Cut { gain: best.score - before, ..cut })
    }
}

struct Best {
    cut: Option<Cut>,
    score: f64,
}

/// Cuts that are scored at a time, in whatever vectors the machine has: each by itself, so that vectors change no
/// result.
const CUTS: usize = 64;

/// What is the same for all cuts of a node. Whole numbers as floating-point ones, which are exact.
struct Whole {
    count_bits: u32,
    gradient: f64,
    weight: f64,
    count: f64,
    /// What a unit of a squared gradient is worth.
    units: f64,
    weight_unit: f64,
    lambda: f64,
    least_weight: f64,
    least_count: f64,
}

impl Whole {
    fn of(rules: &SplitRules, total: Sums) -> Self {
        Whole {
            count_bits: rules.scale.count_bits,
            gradient: total.gradient as f64,
            weight: total.weight as f64,
            count: total.count as f64,
            units: 1.0 / (rules.scale.gradient * rules.scale.gradient),
            weight_unit: 1.0 / rules.scale.weight,
            lambda: rules.lambda,
            // Just below the least that is enough, and never below nothing at all.
            least_weight: (rules.min_weight * (1.0 - 1e-12) + rules.lambda).max(0.0),
            least_count: rules.min_data.max(1) as f64,
        }
    }

    /// Looks for a better cut than the best so far; of equal ones the first counts.
    #[inline(always)]
    fn scan<C: Cell>(&self, bins: &[C], start: C, missing_left: bool, best: &mut Best) {
        let mut sum = start;
        let mut up_to = [start; CUTS];
        for (place, bins) in bins.chunks(CUTS).enumerate() {
            for (up_to, bin) in up_to.iter_mut().zip(bins) {
                sum.add(*bin);
                *up_to = sum;
            }
            up_to[bins.len()..].fill(sum); // as good as the last bin, and not before it
            let scores = self.scores(&up_to);
            let most = highest(&scores);
            if most > best.score
                && let Some(cut) = scores.iter().position(|score| *score == most)
            {
                best.score = most;
                best.cut = Some(Cut { code: (place * CUTS + cut) as u32, missing_left, gain: 0.0 });
            }
        }
    }

    /// How much each cut explains: G_l^2 / W_l + G_r^2 / W_r, on one fraction line because dividing takes longest.
    #[inline(always)]
    fn scores<C: Cell>(&self, up_to: &[C; CUTS]) -> [f64; CUTS] {
        let mut scores = [0.0; CUTS];
        for (score, left) in scores.iter_mut().zip(up_to) {
            let left = left.sums(self.count_bits);
            let (gradient, weight, count) = (exact(left.gradient), exact(left.weight), exact(left.count));
            let (gradient_right, weight_right) = (self.gradient - gradient, self.weight - weight);
            let weight_left = weight * self.weight_unit + self.lambda;
            let weight_right = weight_right * self.weight_unit + self.lambda;
            let above = gradient * gradient * weight_right + gradient_right * gradient_right * weight_left;
            let value = above * self.units / (weight_left * weight_right);
            let enough = (count >= self.least_count)
                & (self.count - count >= self.least_count)
                & (weight_left > self.least_weight)
                & (weight_right > self.least_weight);
            *score = if enough { value } else { f64::NEG_INFINITY };
        }
        scores
    }
}

/// The highest of some scores.
#[inline(always)]
fn highest(scores: &[f64; CUTS]) -> f64 {
    let mut most = [f64::NEG_INFINITY; 8];
    for scores in scores.as_chunks::<8>().0 {
        for (most, score) in most.iter_mut().zip(scores) {
            *most = if *score > *most { *score } else { *most };
        }
    }
    most.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
