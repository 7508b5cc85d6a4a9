//! Exact means: their bits do not depend on the order in which values are added.

use super::convention::Convention;
use super::{Metric, Pool, QueryRows};
use planetree_base::compact;

/// The running mean of a metric: the sum of weight times value, divided by the sum of weights. Floating-point sums
/// depend on the order of their terms, so both sums are kept exactly. Pooled metrics are no means: their documents are
/// collected, and the value is computed from all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mean {
    metric: Metric,
    sum: ExactSum,
    count: u64,
    /// Number of values with weight 1.
    units: u64,
    /// Sum of the weights other than 1.
    weights: ExactSum,
    /// Documents of all queries, for pooled metrics only.
    pool: Pool,
}

impl Mean {
    /// Creates a mean without values.
    pub fn new(metric: Metric) -> Self {
        Mean {
            metric,
            sum: ExactSum::default(),
            count: 0,
            units: 0,
            weights: ExactSum::default(),
            pool: Pool::default(),
        }
    }

    /// Returns the metric whose values are averaged.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Returns the number of values added: queries, or rows for RMSE and pooled metrics.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the weights, which equals the count if all weights are 1.
    pub fn weight(&self) -> f64 {
        let mut weights = self.weights.clone();
        weights.add(self.units as f64);
        weights.value()
    }

    /// Adds the value of a query, or the squared error of a row for RMSE. NaN counts as 0, and infinity as 1e290.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.sum.add(value);
        self.count += 1;
        self.units += 1;
    }

    /// Adds a value with a weight. The weight 1 is handled as in [`Mean::add`].
    pub fn add_weighted(&mut self, value: f64, weight: f64) {
        if weight == 1.0 {
            self.add(value);
        } else {
            self.sum.add(value * weight);
            self.count += 1;
            self.weights.add(weight);
        }
    }

    /// Adds the documents of a query to a pooled metric.
    pub(crate) fn pool(&mut self, rows: &QueryRows<'_>, convention: &Convention, weight: f64) {
        self.pool.add(rows, convention, weight);
        self.count = self.pool.len() as u64;
    }

    /// Adds all values of another mean to this one.
    pub fn merge(&mut self, other: &Mean) {
        self.sum.merge(&other.sum);
        self.count += other.count;
        self.units += other.units;
        self.weights.merge(&other.weights);
        self.pool.append(&other.pool);
    }

    /// Serialises the mean, so that another process can merge it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let slots = self.sum.slots.iter().chain(&self.weights.slots).flat_map(|slot| slot.to_le_bytes());
        let pool = if self.metric.is_pooled() { compact::to_bytes(&self.pool) } else { Vec::new() };
        [self.count, self.units].into_iter().flat_map(u64::to_le_bytes).chain(slots).chain(pool).collect()
    }

    /// Deserialises a mean; returns `None` if the bytes are truncated or malformed.
    pub fn from_bytes(metric: Metric, bytes: &[u8]) -> Option<Self> {
        let (counts, slots) = bytes.split_at_checked(2 * size_of::<u64>())?;
        let mut mean = Mean::new(metric);
        let count = |place: usize| Some(u64::from_le_bytes(counts[8 * place..][..8].try_into().ok()?));
        (mean.count, mean.units) = (count(0)?, count(1)?);
        let width = (mean.sum.slots.len() + mean.weights.slots.len()) * size_of::<i128>();
        let (slots, pool) = slots.split_at_checked(width)?;
        if metric.is_pooled() {
            mean.pool = compact::from_bytes(pool).ok()?;
        } else if !pool.is_empty() {
            return None;
        }
        let mut slots = slots.chunks_exact(size_of::<i128>());
        for slot in mean.sum.slots.iter_mut().chain(&mut mean.weights.slots) {
            *slot = i128::from_le_bytes(slots.next()?.try_into().ok()?);
        }
        Some(mean)
    }

    /// Returns the mean of the values, or its square root for RMSE; NaN if there are no values, or if a pooled metric is
    /// undefined.
    pub fn value(&self) -> f64 {
        if self.metric.is_pooled() {
            return self.pool.value(&self.metric).unwrap_or(f64::NAN);
        }
        let mean = self.sum.value() / self.weight();
        if self.metric == Metric::Rmse { mean.sqrt() } else { mean }
    }
}

/// An exact sum of floating-point numbers, kept as one integer for each range of exponents.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExactSum {
    /// Slot i counts units of 2^(32 i - 1075). A number has 53 significant bits and is shifted by up to 31 bits, so a
    /// slot can hold the sum of 2^43 numbers.
    slots: [i128; 64],
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { slots: [0; 64] }
    }
}

impl ExactSum {
    #[inline]
    fn add(&mut self, value: f64) {
        /// Limit for absolute values: far larger than any squared label, and small enough that sums stay finite.
        const MOST: f64 = 1e290;
        let value = if value.is_nan() { 0.0 } else { value.clamp(-MOST, MOST) };
        let bits = value.to_bits();
        let (exponent, fraction) = (bits >> 52 & 0x7FF, bits & ((1 << 52) - 1));
        // Subnormal numbers lack the implicit leading bit and have the exponent of the smallest normal numbers.
        let (exponent, whole) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 52) };
        let units = i128::from(whole) << (exponent % 32);
        self.slots[(exponent / 32) as usize % 64] += if value < 0.0 { -units } else { units };
    }

    fn merge(&mut self, other: &ExactSum) {
        self.slots.iter_mut().zip(&other.slots).for_each(|(mine, theirs)| *mine += theirs);
    }

    fn value(&self) -> f64 {
        let slots = self.slots.iter().enumerate().rev();
        slots.fold(0.0, |sum, (slot, units)| sum + libm::ldexp(*units as f64, 32 * slot as i32 - 1075))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean_of(metric: Metric, values: &[f64]) -> Mean {
        let mut mean = Mean::new(metric);
        values.iter().for_each(|value| mean.add(*value));
        mean
    }

    fn weighted_mean_of(values: &[(f64, f64)]) -> Mean {
        let mut mean = Mean::new(Metric::Ndcg(None));
        values.iter().for_each(|(value, weight)| mean.add_weighted(*value, *weight));
        mean
    }

    #[test]
    fn exact_values_stay_exact() {
        assert_eq!(mean_of(Metric::Ndcg(None), &[1.0; 7]).value(), 1.0);
        assert_eq!(mean_of(Metric::Ndcg(None), &[1.0, 0.5, 0.0, -0.5]).value(), 0.25);
        assert_eq!(mean_of(Metric::Rmse, &[4.0, 0.0, 0.0, 0.0]).value(), 1.0);
        assert!(Mean::new(Metric::Rmse).value().is_nan());
    }

    #[test]
    fn weights_count_as_often_as_they_say() {
        let mut weighted = Mean::new(Metric::Map(None));
        weighted.add_weighted(1.0, 3.0);
        weighted.add_weighted(0.0, 1.0);
        weighted.add_weighted(0.25, 0.0);
        assert_eq!((weighted.value(), weighted.weight(), weighted.count()), (0.75, 4.0, 3));
        let mut rows = Mean::new(Metric::Rmse);
        rows.add_weighted(4.0, 0.5);
        rows.add_weighted(0.0, 1.5);
        assert_eq!(rows.value(), 1.0);
    }

    #[test]
    fn values_out_of_bounds_do_no_harm() {
        assert_eq!(mean_of(Metric::Rmse, &[f64::NAN, 1.0]).value(), 0.5_f64.sqrt());
        let endless = mean_of(Metric::Rmse, &[f64::INFINITY; 4]);
        assert!(endless.value() > 1e7 && endless.value().is_finite());
        assert_eq!(mean_of(Metric::Err(None), &[f64::INFINITY, f64::NEG_INFINITY]).value(), 0.0);
    }

    proptest! {
        #[test]
        fn any_order_and_any_parts_give_the_same_bits(
            values in proptest::collection::vec(prop_oneof![0.0..1.0, -1e3..1e12, Just(f64::INFINITY)], 1..60),
            cuts in proptest::collection::vec(0_usize..60, 0..5),
        ) {
            for metric in [Metric::Rmse, Metric::Ndcg(Some(10))] {
                let whole = mean_of(metric, &values);
                let mut backwards = values.clone();
                backwards.reverse();
                prop_assert_eq!(&whole, &mean_of(metric, &backwards));
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.min(&values.len()).to_owned()).collect();
                cuts.extend([0, values.len()]);
                cuts.sort_unstable();
                let mut merged = Mean::new(metric);
                for part in cuts.windows(2).rev() {
                    merged.merge(&mean_of(metric, &values[part[0]..part[1]]));
                }
                prop_assert_eq!(&whole, &merged);
                prop_assert_eq!(whole.value().to_bits(), merged.value().to_bits());
            }
        }

        #[test]
        fn weighted_parts_merge_to_the_same_bits(
            values in proptest::collection::vec((0.0..1.0, prop_oneof![Just(1.0), 0.0..100.0]), 1..60),
            cut in 0_usize..60,
        ) {
            let whole = weighted_mean_of(&values);
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = weighted_mean_of(right);
            merged.merge(&weighted_mean_of(left));
            prop_assert_eq!(&whole, &merged);
            let (sum, weight) = values.iter().fold((0.0, 0.0), |(sum, all), (v, w)| (sum + v * w, all + w));
            prop_assert!(weight == 0.0 || (whole.value() - sum / weight).abs() < 1e-12);
        }

        #[test]
        fn close_to_the_floating_point_mean(values in proptest::collection::vec(0.0..1.0_f64, 1..200)) {
            let expected = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((mean_of(Metric::Ndcg(None), &values).value() - expected).abs() < 1e-12);
        }
    }
}
