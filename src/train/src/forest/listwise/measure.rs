//! Computes the worth of ties: their contribution to the expected NDCG of a list, in integer units. A list is a query
//! with its documents, and a tie consists of documents with equal scores. Equation and table numbers are those of
//! Ibrahim & Carman (2016).
//!
//! All documents of a tie have the same expected gain, the mean gain of the tie (eq. 13). So the worth of a tie is
//! its mean normalised gain times the sum of the discounts of its ranks. This product is rounded once, to a unit that
//! is the same for all queries of a tree. After that, only integers are added, so the order of addition does not
//! matter.

use crate::config::{ForestSettings, ListwiseParameters};
use crate::tree::Scale;
use planetree_metric::{Discount, Gain, Metric};

/// The NDCG variant that trees optimise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NdcgVariant {
    /// Gain of each label.
    pub gain: Gain,
    /// Discount of a document's gain by rank (eq. 8, 14 and 15).
    pub discount: Discount,
    /// Number of top ranks that contribute to NDCG; `None` for all.
    pub truncation: Option<u32>,
}

impl NdcgVariant {
    /// Derives the variant from training parameters.
    pub(crate) fn of(parameters: &ForestSettings) -> Self {
        let listwise = parameters.learner.criterion.listwise();
        let depth = |listwise: &ListwiseParameters| match listwise.metric {
            Metric::Ndcg(depth) => depth.or(listwise.truncation),
            _ => None,
        };
        NdcgVariant {
            gain: parameters.learner.label_gain.clone(),
            discount: listwise.map_or(Discount::Log2, |listwise| listwise.discount),
            truncation: listwise.and_then(depth),
        }
    }
}

/// Size and value ranges of the lists of a tree, from which the integer units are chosen. Several extents can be
/// merged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Extent {
    /// Length of the longest list.
    pub longest: u32,
    /// Number of lists.
    pub lists: u64,
    /// Largest gain of a document.
    pub most_gain: f64,
    /// Weight of the heaviest list.
    pub most_weight: f64,
}

impl Extent {
    /// Adds the lists of another extent.
    pub(super) fn merge(&mut self, other: &Extent) {
        self.longest = self.longest.max(other.longest);
        self.lists += other.lists;
        self.most_gain = self.most_gain.max(other.most_gain);
        self.most_weight = self.most_weight.max(other.most_weight);
    }
}

/// Computes an NDCG variant in the integer units of one tree.
#[derive(Debug, Clone)]
pub(super) struct NdcgMeasure {
    gain: Gain,
    /// Prefix sums of the discounts: for each rank, the sum of the discounts of all ranks before it.
    before: Vec<f64>,
    gain_units: f64,
    /// Number of units that represent an NDCG of 1 for a list of weight 1.
    units: f64,
}

/// Maximum number of bits of a list's worth. [`round`] is exact for such numbers.
const FINEST: u32 = 48;

impl NdcgMeasure {
    /// Creates the measure for lists of this extent.
    pub(super) fn new(variant: &NdcgVariant, extent: &Extent) -> Self {
        let mut before = Vec::with_capacity(extent.longest as usize + 1);
        let mut sum = 0.0;
        before.push(sum);
        for rank in 0..extent.longest {
            if variant.truncation.is_none_or(|most| rank < most) {
                sum += variant.discount.at(rank as usize);
            }
            before.push(sum);
        }
        NdcgMeasure {
            gain: variant.gain.clone(),
            before,
            gain_units: Scale::units(extent.most_gain, 31),
            units: units_of_worth(extent),
        }
    }

    /// Returns the gain of a label in units.
    pub(super) fn gain_of(&self, label: f32) -> i32 {
        crate::tree::round(self.gain.of(label) * self.gain_units)
    }

    /// Returns the factor that normalises the gains of a list by its ideal DCG and converts them to worth; 0 for a list
    /// without relevant documents. `gains` contains the gains of all documents, and is sorted in place.
    pub(super) fn factor_of(&self, gains: &mut [i32], weight: f64) -> f64 {
        gains.sort_unstable_by(|one, other| other.cmp(one));
        let discounts = self.before.windows(2).map(|pair| pair[1] - pair[0]);
        let best: f64 = gains.iter().zip(discounts).map(|(gain, discount)| f64::from(*gain) * discount).sum();
        if best > 0.0 { weight * self.units / best } else { 0.0 }
    }

    /// Returns the worth of a list of this weight if it is ranked ideally.
    pub(super) fn perfect(&self, weight: f64) -> i64 {
        round(weight * self.units)
    }

    /// Returns the mean normalised gain of a tie.
    #[inline]
    pub(super) fn mean_gain(&self, gains: i64, count: u32, factor: f64) -> f64 {
        gains as f64 / f64::from(count) * factor
    }

    /// Returns the worth of a tie that occupies `count` ranks from `start` on: its contribution to the NDCG of its
    /// list, in units.
    #[inline]
    pub(super) fn worth(&self, mean_gain: f64, start: u32, count: u32) -> i64 {
        let start = start as usize;
        round(mean_gain * (self.before[start + count as usize] - self.before[start]))
    }
}

/// Returns the number of units that represent a metric of 1 for a list of weight 1. The total worth of all lists stays
/// below 2^62.
pub(super) fn units_of_worth(extent: &Extent) -> f64 {
    let bits = (61 - (u64::BITS - extent.lists.leading_zeros())).min(FINEST);
    let heaviest = if extent.most_weight > 0.0 { extent.most_weight } else { 1.0 };
    (1u64 << bits) as f64 / heaviest
}

/// Rounds a number below 2^51 to the nearest integer, ties to even.
#[inline]
pub(super) fn round(value: f64) -> i64 {
    // Adding this constant shifts the fraction out of the mantissa, which needs no library call.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    (value + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measure(discount: Discount, truncation: Option<u32>) -> NdcgMeasure {
        let variant = NdcgVariant { gain: Gain::Exp2, discount, truncation };
        NdcgMeasure::new(&variant, &Extent { longest: 20, lists: 1, most_gain: 31.0, most_weight: 1.0 })
    }

    #[test]
    fn the_example_of_table_iii_comes_out() {
        // Seven documents in leaves with scores 1.7, 0.9 and 0.4. The last column of table III has their expected
        // gains.
        let measure = measure(Discount::Log2, None);
        let labels = [0.0f32, 2.0, 1.0, 1.0, 0.0, 1.0, 1.0];
        let mut gains: Vec<i32> = labels.iter().map(|label| measure.gain_of(*label)).collect();
        let of_ties: Vec<i64> =
            [0..3, 3..5, 5..7].map(|tie| gains[tie].iter().map(|gain| i64::from(*gain)).sum()).to_vec();
        let expected = [1.33, 0.5, 1.0];
        let ties = of_ties.iter().zip([3u32, 2, 2]);
        for ((gains, count), expected) in ties.clone().zip(expected) {
            let mean = measure.mean_gain(*gains, count, 1.0) / measure.gain_units;
            assert!((mean - expected).abs() < 0.005, "{mean} {expected}");
        }
        let factor = measure.factor_of(&mut gains, 1.0);
        let mut start = 0;
        let mut worth = 0;
        for (gains, count) in ties {
            worth += measure.worth(measure.mean_gain(*gains, count, factor), start, count);
            start += count;
        }
        // Compute the expected NDCG with eq. 11 and 12.
        let discount = |rank: f64| 1.0 / (rank + 1.0).log2();
        let expected_dcg = 4.0 / 3.0 * (discount(1.0) + discount(2.0) + discount(3.0))
            + 0.5 * (discount(4.0) + discount(5.0))
            + (discount(6.0) + discount(7.0));
        let best = 3.0 * discount(1.0) + (2..=5).map(|rank| discount(f64::from(rank))).sum::<f64>();
        assert!((worth as f64 / measure.perfect(1.0) as f64 - expected_dcg / best).abs() < 1e-12);
    }

    #[test]
    fn the_best_order_is_worth_one_under_every_discount() {
        for discount in
            [Discount::Log2, Discount::LogPower(0.1), Discount::LogPower(4.0), Discount::Power(0.01)]
        {
            for truncation in [None, Some(1), Some(3), Some(100)] {
                let measure = measure(discount, truncation);
                let labels = [3.0f32, 2.0, 2.0, 1.0, 0.0, 0.0];
                let mut gains: Vec<i32> = labels.iter().map(|label| measure.gain_of(*label)).collect();
                let ranked = gains.clone();
                let factor = measure.factor_of(&mut gains, 1.0);
                let worth: i64 = (0..)
                    .zip(&ranked)
                    .map(|(rank, gain)| {
                        measure.worth(measure.mean_gain(i64::from(*gain), 1, factor), rank, 1)
                    })
                    .sum();
                assert!(
                    (worth as f64 / measure.perfect(1.0) as f64 - 1.0).abs() < 1e-12,
                    "{discount} {truncation:?}"
                );
            }
        }
    }

    #[test]
    fn a_list_without_gains_has_no_factor() {
        let measure = measure(Discount::Log2, None);
        assert_eq!(measure.factor_of(&mut [0, 0], 1.0), 0.0);
        assert_eq!(measure.factor_of(&mut [], 1.0), 0.0);
    }

    #[test]
    fn worths_of_any_number_of_lists_fit() {
        for lists in [1u64, 4000, 1 << 20, 1 << 40] {
            let variant = NdcgVariant { gain: Gain::Exp2, discount: Discount::Log2, truncation: None };
            let measure =
                NdcgMeasure::new(&variant, &Extent { longest: 1, lists, most_gain: 1.0, most_weight: 2.0 });
            let of_one = (2.0 * measure.units) as i128;
            assert!(of_one * i128::from(lists) < 1 << 62 && of_one >= 1 << 20, "{lists}");
        }
    }

    proptest! {
        #[test]
        fn rounding_is_to_the_nearest_even(value in -1e15f64..1e15) {
            prop_assert_eq!(round(value) as f64, value.round_ties_even());
        }
    }
}
