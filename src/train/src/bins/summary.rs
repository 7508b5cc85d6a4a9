//! Summarises the distribution of a feature's values. Merging summaries is commutative and associative, so the bins
//! do not depend on how a dataset is partitioned.
//!
//! A summary is exact for up to [`SAMPLED_ROWS`] rows. For larger datasets, it holds only the values of the *kept*
//! rows, a sample of about that many rows, chosen by row number. It also tracks the distinct values of all rows as
//! long as there are few.

use planetree_base::random::mix;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Target number of sampled rows.
pub const SAMPLED_ROWS: u64 = 1 << 18;
/// Maximum number of distinct values that are tracked over all rows.
const FEW: usize = 256;

/// A value and the number of kept rows that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueCount {
    /// The value as an integer with the same order, see [`key_of`].
    pub key: u32,
    /// Number of kept rows with this value.
    pub count: u32,
}

/// Summary of the distribution of one feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueDistribution {
    /// Values of the kept rows, ascending.
    #[serde(with = "as_differences")]
    pub runs: Vec<ValueCount>,
    /// Number of missing values among the kept rows.
    pub missing_kept: u64,
    /// Number of missing values among all rows.
    pub missing: u64,
    /// Distinct values of all rows in ascending order, as long as there are few.
    few: DistinctKeys,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum DistinctKeys {
    Keys(#[serde(with = "planetree_base::compact::ascending")] Vec<u32>),
    TooMany,
}

impl Default for DistinctKeys {
    fn default() -> Self {
        DistinctKeys::Keys(Vec::new())
    }
}

/// Selects the rows whose values are kept: all rows, or a sample by row number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowSample {
    below: u64,
}

impl RowSample {
    /// Keeps every row.
    pub(crate) const ALL: RowSample = RowSample { below: u64::MAX };

    /// Keeps about [`SAMPLED_ROWS`] of `rows` rows, or all if there are fewer.
    pub(crate) fn sample_of(rows: u64) -> RowSample {
        if rows <= SAMPLED_ROWS {
            return RowSample::ALL;
        }
        let below = u128::from(u64::MAX) * u128::from(SAMPLED_ROWS) / u128::from(rows);
        RowSample { below: below as u64 } // fits, because the sampled fraction is below 1
    }

    /// Returns which of the `rows` rows from row `first` on are kept, relative to `first`; `None` if all are.
    pub(crate) fn places(self, first: u64, rows: usize) -> Option<Vec<u32>> {
        if self == RowSample::ALL {
            return None;
        }
        Some((0..rows as u32).filter(|place| mix(first + u64::from(*place)) < self.below).collect())
    }
}

/// Maps a float to an integer with the same order. Both zeros map to the same integer.
#[inline]
pub(super) fn key_of(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// Converts a key back to its float.
#[inline]
pub(super) fn value_of(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

impl ValueDistribution {
    /// Summarises values; NaN means missing. `kept` contains the indices of the kept rows; `None` keeps all rows.
    pub fn of(values: &[f32], kept: Option<&[u32]>) -> Self {
        let mut summary = ValueDistribution {
            missing: values.iter().filter(|value| value.is_nan()).count() as u64,
            ..Self::default()
        };
        let mut keys: Vec<u32>;
        match kept {
            None => {
                keys = values.iter().filter(|value| !value.is_nan()).map(|value| key_of(*value)).collect();
                summary.missing_kept = summary.missing;
            }
            Some(places) => {
                keys = Vec::with_capacity(places.len());
                let present = places.iter().map(|place| values[*place as usize]);
                keys.extend(present.filter(|value| !value.is_nan()).map(key_of));
                summary.missing_kept = (places.len() - keys.len()) as u64;
                summary.few = DistinctKeys::of(values);
            }
        }
        summary.runs = Counter::count(&keys).unwrap_or_else(|| {
            sort_keys(&mut keys);
            runs_of(&keys)
        });
        if kept.is_none() {
            summary.few = DistinctKeys::of_runs(&summary.runs);
        }
        summary
    }

    /// Merges another summary into this one.
    pub fn merge(&mut self, other: ValueDistribution) {
        self.missing += other.missing;
        self.missing_kept += other.missing_kept;
        self.runs = merge_runs(&self.runs, &other.runs);
        self.few = match (std::mem::replace(&mut self.few, DistinctKeys::TooMany), other.few) {
            (DistinctKeys::Keys(mine), DistinctKeys::Keys(theirs)) => {
                DistinctKeys::limited(merge_keys(&mine, &theirs))
            }
            _ => DistinctKeys::TooMany,
        };
    }

    /// Merges many summaries in the order of a balanced tree, so that each value is copied only a few times.
    pub fn merge_all(mut summaries: Vec<ValueDistribution>) -> ValueDistribution {
        while summaries.len() > 1 {
            let mut halved = Vec::with_capacity(summaries.len().div_ceil(2));
            let mut pairs = summaries.into_iter();
            while let Some(mut left) = pairs.next() {
                if let Some(right) = pairs.next() {
                    left.merge(right);
                }
                halved.push(left);
            }
            summaries = halved;
        }
        summaries.pop().unwrap_or_default()
    }

    /// Returns all distinct values in ascending order if there are at most `limit`. The count of a value is 0 if it
    /// occurs only in rows that are not kept.
    pub fn few_values(&self, limit: usize) -> Option<Vec<ValueCount>> {
        match &self.few {
            DistinctKeys::Keys(keys) if keys.len() <= limit => {
                let mut runs = self.runs.iter().peekable();
                let count = |key: u32| {
                    while runs.peek().is_some_and(|run| run.key < key) {
                        runs.next();
                    }
                    let count = runs.peek().filter(|run| run.key == key).map_or(0, |run| run.count);
                    ValueCount { key, count }
                };
                Some(keys.iter().copied().map(count).collect())
            }
            _ => None,
        }
    }

    /// Returns the mean of the kept values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        let rows: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        let sum: f64 = self.runs.iter().map(|run| f64::from(value_of(run.key)) * f64::from(run.count)).sum();
        (rows > 0).then(|| sum / rows as f64)
    }

    /// Returns the lower median of the kept values; `None` if there are none.
    pub fn median(&self) -> Option<f32> {
        let rows: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        let mut before = 0;
        for run in &self.runs {
            before += u64::from(run.count);
            if before * 2 >= rows {
                return Some(value_of(run.key));
            }
        }
        None
    }
}

/// Serialises each run as the difference between its key and the previous key, and its count.
mod as_differences {
    use super::ValueCount;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(runs: &[ValueCount], serializer: S) -> Result<S::Ok, S::Error> {
        let before = std::iter::once(0).chain(runs.iter().map(|run| run.key));
        serializer.collect_seq(
            runs.iter().zip(before).map(|(run, before)| (run.key.wrapping_sub(before), run.count)),
        )
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<ValueCount>, D::Error> {
        let mut key = 0u32;
        let runs = Vec::<(u32, u32)>::deserialize(deserializer)?.into_iter();
        Ok(runs
            .map(|(difference, count)| {
                key = key.wrapping_add(difference);
                ValueCount { key, count }
            })
            .collect())
    }
}

impl DistinctKeys {
    fn of(values: &[f32]) -> DistinctKeys {
        let mut counter = Counter::new();
        let keys = values.iter().filter(|value| !value.is_nan()).map(|value| key_of(*value));
        for key in keys {
            if !counter.add(key) {
                return DistinctKeys::TooMany;
            }
        }
        DistinctKeys::of_runs(&counter.runs())
    }

    fn of_runs(runs: &[ValueCount]) -> DistinctKeys {
        if runs.len() > FEW {
            DistinctKeys::TooMany
        } else {
            DistinctKeys::Keys(runs.iter().map(|run| run.key).collect())
        }
    }

    fn limited(keys: Vec<u32>) -> DistinctKeys {
        if keys.len() > FEW { DistinctKeys::TooMany } else { DistinctKeys::Keys(keys) }
    }
}

/// Hash table that counts distinct values as long as there are few. It gives up when it is half full.
struct Counter {
    slots: Box<[ValueCount; Counter::SLOTS]>,
    used: usize,
}

impl Counter {
    const SLOTS: usize = 1024;

    fn new() -> Self {
        Counter { slots: Box::new([ValueCount { key: 0, count: 0 }; Self::SLOTS]), used: 0 }
    }

    fn count(keys: &[u32]) -> Option<Vec<ValueCount>> {
        let mut counter = Counter::new();
        keys.iter().all(|key| counter.add(*key)).then(|| counter.runs())
    }

    #[inline]
    fn add(&mut self, key: u32) -> bool {
        let mut slot = (key.wrapping_mul(0x9E37_79B9) >> 22) as usize;
        loop {
            let run = &mut self.slots[slot % Self::SLOTS];
            if run.count == 0 {
                self.used += 1;
                *run = ValueCount { key, count: 1 };
                return self.used <= Self::SLOTS / 2;
            }
            if run.key == key {
                run.count += 1;
                return true;
            }
            slot += 1;
        }
    }

    fn runs(&self) -> Vec<ValueCount> {
        let mut runs: Vec<ValueCount> = self.slots.iter().filter(|run| run.count > 0).copied().collect();
        runs.sort_unstable_by_key(|run| run.key);
        runs
    }
}

/// Sorts keys by radix sort with three passes of 11 bits, which is faster than a comparison sort from a few hundred
/// keys on.
fn sort_keys(keys: &mut Vec<u32>) {
    const BITS: u32 = 11;
    const MASK: u32 = (1 << BITS) - 1;
    let mut counts = vec![[0u32; 1 << BITS]; 3];
    for key in keys.iter() {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[(key >> (BITS * pass as u32) & MASK) as usize] += 1;
        }
    }
    let mut sorted = vec![0; keys.len()];
    for (pass, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|count| *count as usize == keys.len()) {
            continue; // all keys agree on these bits
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for key in keys.iter() {
            let place = &mut counts[(key >> (BITS * pass as u32) & MASK) as usize];
            sorted[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, &mut sorted);
    }
}

fn runs_of(sorted: &[u32]) -> Vec<ValueCount> {
    let mut runs: Vec<ValueCount> = Vec::new();
    for key in sorted {
        match runs.last_mut() {
            Some(run) if run.key == *key => run.count += 1,
            _ => runs.push(ValueCount { key: *key, count: 1 }),
        }
    }
    runs
}

fn merge_runs(left: &[ValueCount], right: &[ValueCount]) -> Vec<ValueCount> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        match left[i].key.cmp(&right[j].key) {
            Ordering::Less => {
                merged.push(left[i]);
                i += 1;
            }
            Ordering::Greater => {
                merged.push(right[j]);
                j += 1;
            }
            Ordering::Equal => {
                merged.push(ValueCount { key: left[i].key, count: left[i].count + right[j].count });
                i += 1;
                j += 1;
            }
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    merged
}

fn merge_keys(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut keys = [left, right].concat();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_preserve_order_and_round_trip() {
        let values = [f32::MIN, -2.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 1.0, f32::MAX];
        assert!(values.windows(2).all(|pair| key_of(pair[0]) < key_of(pair[1])));
        assert!(values.iter().all(|value| value_of(key_of(*value)) == *value));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    fn naive(values: &[f32]) -> Vec<ValueCount> {
        let mut keys: Vec<u32> = values.iter().filter(|v| !v.is_nan()).map(|v| key_of(*v)).collect();
        keys.sort_unstable();
        runs_of(&keys)
    }

    proptest! {
        #[test]
        fn merged_summaries_match_a_naive_count_in_any_order(
            values in prop::collection::vec(prop_oneof![
                (-50i32..50).prop_map(|v| v as f32 / 4.0), any::<f32>().prop_filter("finite", |v| v.is_finite()), Just(f32::NAN)
            ], 0..2000),
            cut in 0usize..2000,
        ) {
            let cut = cut.min(values.len());
            let (left, right) = values.split_at(cut);
            let whole = ValueDistribution::of(&values, None);
            prop_assert_eq!(&whole.runs, &naive(&values));
            let mut forth = ValueDistribution::of(left, None);
            forth.merge(ValueDistribution::of(right, None));
            let mut back = ValueDistribution::of(right, None);
            back.merge(ValueDistribution::of(left, None));
            prop_assert_eq!(&forth, &whole);
            prop_assert_eq!(&back, &whole);
        }

        #[test]
        fn a_sample_does_not_depend_on_partitions(rows in 600_000u64..700_000, cut in 0usize..600) {
            let keep = RowSample::sample_of(rows);
            let values: Vec<f32> = (0..600).map(|v| (v * 7 % 400) as f32).collect();
            let part = |range: std::ops::Range<usize>| {
                let places = keep.places(1_000 + range.start as u64, range.len());
                ValueDistribution::of(&values[range], places.as_deref())
            };
            let mut parts = part(0..cut);
            parts.merge(part(cut..600));
            prop_assert_eq!(parts, part(0..600));
        }
    }

    #[test]
    fn distinct_values_of_dropped_rows_are_tracked_while_few() {
        let values: Vec<f32> = (0..1000).map(|row| if row == 777 { 9.0 } else { (row % 3) as f32 }).collect();
        let summary = ValueDistribution::of(&values, Some(&[0, 1, 2, 3]));
        let few: Vec<(f32, u32)> =
            summary.few_values(4).unwrap().iter().map(|run| (value_of(run.key), run.count)).collect();
        assert_eq!(few, [(0.0, 2), (1.0, 1), (2.0, 1), (9.0, 0)]);
        assert!(summary.few_values(3).is_none());
    }
}
