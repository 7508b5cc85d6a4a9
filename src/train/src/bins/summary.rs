//! The distribution of one feature over some rows. Summaries of partitions add up to the same
//! summary in any order, so bins do not depend on how a dataset is cut into partitions.
//!
//! Up to [`SAMPLED_ROWS`] rows the summary is exact. Beyond, it holds the values of a sample of
//! about so many rows, drawn by each row's number in the dataset, and still knows whether there
//! are more than a few distinct values in all rows.

use planetree_base::random::mix;
use std::cmp::Ordering;

/// Rows whose values are kept.
pub const SAMPLED_ROWS: u64 = 1 << 18;
/// Distinct values over all rows that are told apart in any case.
const FEW: usize = 256;

/// How often a value occurs among the rows that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The value as an ordered number; see [`value_of`].
    pub key: u32,
    /// Rows that have it.
    pub count: u32,
}

/// The distribution of one feature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Values of the kept rows, ascending.
    pub runs: Vec<Run>,
    /// Kept rows without a value.
    pub missing_kept: u64,
    /// All rows without a value.
    pub missing: u64,
    /// All distinct values, ascending, while they are few.
    few: Few,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Few {
    Keys(Vec<u32>),
    TooMany,
}

impl Default for Few {
    fn default() -> Self {
        Few::Keys(Vec::new())
    }
}

/// Which rows of a dataset are kept: all, or a sample by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    below: u64,
}

impl Keep {
    /// Every row.
    pub const ALL: Keep = Keep { below: u64::MAX };

    /// About [`SAMPLED_ROWS`] of so many rows.
    pub fn sample_of(rows: u64) -> Keep {
        if rows <= SAMPLED_ROWS {
            return Keep::ALL;
        }
        let below = u128::from(u64::MAX) * u128::from(SAMPLED_ROWS) / u128::from(rows);
        Keep { below: below as u64 } // a share below 1 of 64 bits
    }

    /// The places, from `first` on, of those among `rows` rows that are kept.
    pub fn places(self, first: u64, rows: usize) -> Option<Vec<u32>> {
        if self == Keep::ALL {
            return None;
        }
        Some((0..rows as u32).filter(|place| mix(first + u64::from(*place)) < self.below).collect())
    }
}

/// A number as an unsigned one of the same order; both zeros are one.
#[inline]
pub fn key_of(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The number behind a key.
#[inline]
pub fn value_of(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

impl Summary {
    /// Summarises values, of which NaN is missing. `kept` are the places of the rows that are kept.
    pub fn of(values: &[f32], kept: Option<&[u32]>) -> Self {
        let mut summary = Summary {
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
                summary.few = Few::of(values);
            }
        }
        summary.runs = Counter::count(&keys).unwrap_or_else(|| {
            sort_keys(&mut keys);
            runs_of(&keys)
        });
        if kept.is_none() {
            summary.few = Few::of_runs(&summary.runs);
        }
        summary
    }

    /// Adds the rows of another summary.
    pub fn merge(&mut self, other: Summary) {
        self.missing += other.missing;
        self.missing_kept += other.missing_kept;
        self.runs = merge_runs(&self.runs, &other.runs);
        self.few = match (std::mem::replace(&mut self.few, Few::TooMany), other.few) {
            (Few::Keys(mine), Few::Keys(theirs)) => Few::limited(merge_keys(&mine, &theirs)),
            _ => Few::TooMany,
        };
    }

    /// Adds up many summaries, neighbours first, so that no run is copied often.
    pub fn merge_all(mut summaries: Vec<Summary>) -> Summary {
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

    /// All distinct values in ascending order, when there are at most `limit`; those that no kept
    /// row has come with a count of 0.
    pub fn few_values(&self, limit: usize) -> Option<Vec<Run>> {
        match &self.few {
            Few::Keys(keys) if keys.len() <= limit => {
                let mut runs = self.runs.iter().peekable();
                let count = |key: u32| {
                    while runs.peek().is_some_and(|run| run.key < key) {
                        runs.next();
                    }
                    let count = runs.peek().filter(|run| run.key == key).map_or(0, |run| run.count);
                    Run { key, count }
                };
                Some(keys.iter().copied().map(count).collect())
            }
            _ => None,
        }
    }

    /// The mean of the kept values.
    pub fn mean(&self) -> Option<f64> {
        let rows: u64 = self.runs.iter().map(|run| u64::from(run.count)).sum();
        let sum: f64 = self.runs.iter().map(|run| f64::from(value_of(run.key)) * f64::from(run.count)).sum();
        (rows > 0).then(|| sum / rows as f64)
    }

    /// The median of the kept values: the lower one of two in the middle.
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

impl Summary {
    /// Writes the summary, for whoever merges it elsewhere.
    pub fn write(&self, writer: &mut planetree_base::wire::WireWriter) {
        writer.ascending(self.runs.iter().map(|run| run.key));
        self.runs.iter().for_each(|run| writer.count(u64::from(run.count)));
        writer.count(self.missing_kept);
        writer.count(self.missing);
        match &self.few {
            Few::Keys(keys) => {
                writer.count(1);
                writer.ascending(keys.iter().copied());
            }
            Few::TooMany => writer.count(0),
        }
    }

    /// Reads what was written.
    pub fn read(reader: &mut planetree_base::wire::WireReader<'_>) -> planetree_base::error::Result<Self> {
        let keys = reader.ascending()?;
        let run = |key| Ok(Run { key, count: reader.count()? as u32 });
        let runs = keys.into_iter().map(run).collect::<planetree_base::error::Result<_>>()?;
        let (missing_kept, missing) = (reader.count()?, reader.count()?);
        let few = if reader.count()? == 1 { Few::Keys(reader.ascending()?) } else { Few::TooMany };
        Ok(Summary { runs, missing_kept, missing, few })
    }
}

impl Few {
    fn of(values: &[f32]) -> Few {
        let mut counter = Counter::new();
        let keys = values.iter().filter(|value| !value.is_nan()).map(|value| key_of(*value));
        for key in keys {
            if !counter.add(key) {
                return Few::TooMany;
            }
        }
        Few::of_runs(&counter.runs())
    }

    fn of_runs(runs: &[Run]) -> Few {
        if runs.len() > FEW { Few::TooMany } else { Few::Keys(runs.iter().map(|run| run.key).collect()) }
    }

    fn limited(keys: Vec<u32>) -> Few {
        if keys.len() > FEW { Few::TooMany } else { Few::Keys(keys) }
    }
}

/// Counts values while they are few: a hash table that gives up when it is half full.
struct Counter {
    slots: Box<[Run; Counter::SLOTS]>,
    used: usize,
}

impl Counter {
    const SLOTS: usize = 1024;

    fn new() -> Self {
        Counter { slots: Box::new([Run { key: 0, count: 0 }; Self::SLOTS]), used: 0 }
    }

    fn count(keys: &[u32]) -> Option<Vec<Run>> {
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
                *run = Run { key, count: 1 };
                return self.used <= Self::SLOTS / 2;
            }
            if run.key == key {
                run.count += 1;
                return true;
            }
            slot += 1;
        }
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.slots.iter().filter(|run| run.count > 0).copied().collect();
        runs.sort_unstable_by_key(|run| run.key);
        runs
    }
}

/// Sorts keys by three counting passes of 11 bits, which beats comparing from a few hundred on.
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

fn runs_of(sorted: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for key in sorted {
        match runs.last_mut() {
            Some(run) if run.key == *key => run.count += 1,
            _ => runs.push(Run { key: *key, count: 1 }),
        }
    }
    runs
}

fn merge_runs(left: &[Run], right: &[Run]) -> Vec<Run> {
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
                merged.push(Run { key: left[i].key, count: left[i].count + right[j].count });
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
    fn keys_keep_the_order_and_come_back() {
        let values = [f32::MIN, -2.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 1.0, f32::MAX];
        assert!(values.windows(2).all(|pair| key_of(pair[0]) < key_of(pair[1])));
        assert!(values.iter().all(|value| value_of(key_of(*value)) == *value));
        assert_eq!(key_of(-0.0), key_of(0.0));
    }

    fn naive(values: &[f32]) -> Vec<Run> {
        let mut keys: Vec<u32> = values.iter().filter(|v| !v.is_nan()).map(|v| key_of(*v)).collect();
        keys.sort_unstable();
        runs_of(&keys)
    }

    proptest! {
        #[test]
        fn summaries_add_up_in_any_order_to_the_naive_count(
            values in prop::collection::vec(prop_oneof![
                (-50i32..50).prop_map(|v| v as f32 / 4.0), any::<f32>().prop_filter("finite", |v| v.is_finite()), Just(f32::NAN)
            ], 0..2000),
            cut in 0usize..2000,
        ) {
            let cut = cut.min(values.len());
            let (left, right) = values.split_at(cut);
            let whole = Summary::of(&values, None);
            prop_assert_eq!(&whole.runs, &naive(&values));
            let mut forth = Summary::of(left, None);
            forth.merge(Summary::of(right, None));
            let mut back = Summary::of(right, None);
            back.merge(Summary::of(left, None));
            prop_assert_eq!(&forth, &whole);
            prop_assert_eq!(&back, &whole);
        }

        #[test]
        fn a_sample_does_not_depend_on_the_cut(rows in 600_000u64..700_000, cut in 0usize..600) {
            let keep = Keep::sample_of(rows);
            let values: Vec<f32> = (0..600).map(|v| (v * 7 % 400) as f32).collect();
            let part = |range: std::ops::Range<usize>| {
                let places = keep.places(1_000 + range.start as u64, range.len());
                Summary::of(&values[range], places.as_deref())
            };
            let mut parts = part(0..cut);
            parts.merge(part(cut..600));
            prop_assert_eq!(parts, part(0..600));
        }
    }

    #[test]
    fn values_that_no_kept_row_has_are_known_while_they_are_few() {
        let values: Vec<f32> = (0..1000).map(|row| if row == 777 { 9.0 } else { (row % 3) as f32 }).collect();
        let summary = Summary::of(&values, Some(&[0, 1, 2, 3]));
        let few: Vec<(f32, u32)> =
            summary.few_values(4).unwrap().iter().map(|run| (value_of(run.key), run.count)).collect();
        assert_eq!(few, [(0.0, 2), (1.0, 1), (2.0, 1), (9.0, 0)]);
        assert!(summary.few_values(3).is_none());
    }
}
