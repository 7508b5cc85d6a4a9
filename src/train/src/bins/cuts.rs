//! Chooses the bins of a feature, and maps values to codes (bin numbers).

use super::summary::{ValueCount, ValueDistribution, key_of, value_of};
use crate::config::MissingPolicy;

/// The bins of one feature.
///
/// A code is the number of a bin. Codes `0..bins()` are in ascending order of the values. If missing values are kept
/// instead of replaced, they have one more code. Equal values always have the same code.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureBins {
    /// Boundaries: a value has code `i` if it is above `cuts[i - 1]` and at most `cuts[i]`.
    pub cuts: Vec<f32>,
    /// Mean of the values in each bin.
    pub centres: Vec<f32>,
    /// Value that replaces missing values; `None` if missing values have a code of their own.
    pub fill: Option<f32>,
    /// Code of missing values; `None` if they are replaced by `fill`.
    pub missing_code: Option<u32>,
    /// Whether any row of the training data has the missing code.
    pub missing_seen: bool,
    /// Most frequent code.
    pub common_code: u32,
    /// Estimated fraction of rows that have `common_code`.
    pub common_share: f32,
}

impl FeatureBins {
    /// Bytes of a bin: its boundary and the mean of its values.
    pub const BYTES_PER_BIN: u64 = 2 * size_of::<f32>() as u64;

    /// Chooses at most `max_bin` bins with about equal numbers of rows. If there are at most `max_bin` distinct values,
    /// each value gets its own bin.
    pub fn equal_depth(summary: &ValueDistribution, missing: MissingPolicy, max_bin: usize) -> Self {
        let fill = fill_of(summary, missing);
        let runs = match summary.few_values(max_bin) {
            Some(runs) => Some(with_fill(runs, summary, fill)).filter(|runs| runs.len() <= max_bin),
            None => None,
        };
        match runs {
            Some(runs) => {
                Self::of_groups(summary, fill, &runs.iter().map(std::slice::from_ref).collect::<Vec<_>>())
            }
            None => {
                let runs = with_fill(summary.runs.clone(), summary, fill);
                Self::of_groups(summary, fill, &equal_groups(&runs, max_bin))
            }
        }
    }

    /// Creates one bin per distinct value, so that `centres` are the values themselves.
    pub fn every_value(summary: &ValueDistribution, missing: MissingPolicy) -> Self {
        let fill = fill_of(summary, missing);
        let runs = with_fill(summary.runs.clone(), summary, fill);
        Self::of_groups(summary, fill, &runs.iter().map(std::slice::from_ref).collect::<Vec<_>>())
    }

    fn of_groups(summary: &ValueDistribution, fill: Option<f32>, groups: &[&[ValueCount]]) -> Self {
        let ends = groups.iter().map(|group| (group[0].key, group[group.len() - 1].key));
        let ends: Vec<(f32, f32)> = ends.map(|(first, last)| (value_of(first), value_of(last))).collect();
        let cuts: Vec<f32> = ends.windows(2).map(|pair| middle(pair[0].1, pair[1].0)).collect();
        let count = |group: &[ValueCount]| group.iter().map(|run| u64::from(run.count)).sum::<u64>();
        let mut counts: Vec<u64> = groups.iter().map(|group| count(group)).collect();
        let missing_code = fill.is_none().then_some(groups.len() as u32);
        if missing_code.is_some() {
            counts.push(summary.missing_kept);
        }
        let (common_code, common) =
            counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).unwrap_or((0, &0));
        let rows: u64 = counts.iter().sum();
        FeatureBins {
            cuts,
            centres: groups.iter().map(|group| centre(group)).collect(),
            fill,
            missing_code,
            missing_seen: missing_code.is_some() && summary.missing > 0,
            common_code: common_code as u32,
            common_share: if rows == 0 { 1.0 } else { (*common as f64 / rows as f64) as f32 },
        }
    }

    /// Returns the number of bins, not counting the code for missing values.
    pub fn bins(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Returns the bytes of all bins.
    pub fn bytes(&self) -> u64 {
        self.bins() as u64 * Self::BYTES_PER_BIN
    }

    /// Returns the number of codes, including the code for missing values.
    pub fn codes(&self) -> usize {
        self.bins() + usize::from(self.missing_code.is_some())
    }

    /// Returns whether all rows have the same code, so that no split can use the feature.
    pub fn is_constant(&self) -> bool {
        self.bins() < 2 && !self.missing_seen
    }

    /// Returns the code of a value; NaN means missing.
    pub fn code_of(&self, value: f32) -> u32 {
        let value = if value.is_nan() { self.fill.unwrap_or(f32::NAN) } else { value };
        if value.is_nan() {
            return self.missing_code.expect("missing values have a fill or a code");
        }
        self.cuts.partition_point(|cut| *cut < value) as u32
    }

    /// Returns the last code whose centre is at most `threshold`, or 0 if there is none.
    pub fn code_up_to(&self, threshold: f32) -> u32 {
        self.centres.partition_point(|centre| *centre <= threshold).saturating_sub(1) as u32
    }

    /// Encodes a column whose codes fit in a byte. The codes replace the contents of `codes`.
    pub fn encode_bytes(&self, values: &[f32], codes: &mut Vec<u8>) {
        /// Length of the padded table of cuts: the maximum number of cuts, plus 1.
        const SLOTS: usize = 256;
        let mut cuts = [f32::INFINITY; SLOTS];
        cuts[..self.cuts.len()].copy_from_slice(&self.cuts);
        let missing = self.code_of(f32::NAN) as u8; // at most 255, because there are at most 255 bins
        codes.clear();
        codes.extend(values.iter().map(|value| {
            // This binary search has no branches, so the processor can work on several rows at once.
            let mut code = 0usize;
            for step in [128, 64, 32, 16, 8, 4, 2, 1] {
                code += if cuts[(code + step - 1) % SLOTS] < *value { step } else { 0 };
            }
            if value.is_nan() { missing } else { code as u8 }
        }));
    }
}

/// Returns the value that replaces missing values; `None` if they are kept.
fn fill_of(summary: &ValueDistribution, missing: MissingPolicy) -> Option<f32> {
    match missing {
        MissingPolicy::Zero => Some(0.0),
        MissingPolicy::One => Some(1.0),
        MissingPolicy::Mean => Some(summary.mean().unwrap_or(0.0) as f32),
        MissingPolicy::Median => Some(summary.median().unwrap_or(0.0)),
        MissingPolicy::Low | MissingPolicy::High | MissingPolicy::Learned | MissingPolicy::Branch => None,
    }
}

/// Returns the value counts after missing values are replaced. The result is never empty.
fn with_fill(mut runs: Vec<ValueCount>, summary: &ValueDistribution, fill: Option<f32>) -> Vec<ValueCount> {
    if let (Some(fill), true) = (fill, summary.missing > 0) {
        let key = key_of(fill);
        let place = runs.partition_point(|run| run.key < key);
        match runs.get_mut(place) {
            Some(run) if run.key == key => run.count += summary.missing_kept as u32,
            _ => runs.insert(place, ValueCount { key, count: summary.missing_kept as u32 }),
        }
    }
    if runs.is_empty() {
        runs.push(ValueCount { key: key_of(0.0), count: 0 });
    }
    runs
}

/// Divides the values into at most `max_bin` groups with about equal numbers of rows. A heavy value, which has enough
/// rows to fill a group, gets its own group. The other values share the remaining groups evenly.
fn equal_groups(runs: &[ValueCount], max_bin: usize) -> Vec<&[ValueCount]> {
    let total: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    let is_heavy = |run: &ValueCount| u64::from(run.count) * max_bin as u64 >= total;
    let heavy = runs.iter().filter(|run| is_heavy(run)).count();
    let mut left_rows: u64 =
        total - runs.iter().filter(|run| is_heavy(run)).map(|run| u64::from(run.count)).sum::<u64>();
    // One group is reserved for each heavy value. `spare` limits how many groups may end early because a heavy value
    // follows.
    let mut left_groups = max_bin.saturating_sub(heavy).max(1) as u64;
    let mut spare = left_groups / 2;
    let mut groups = Vec::with_capacity(max_bin);
    let (mut start, mut depth) = (0, 0u64);
    for (place, run) in runs.iter().enumerate() {
        if groups.len() + 1 == max_bin {
            break;
        }
        let next_is_heavy = runs.get(place + 1).is_some_and(is_heavy);
        let heavy_now = is_heavy(run);
        depth += u64::from(run.count);
        if !heavy_now {
            left_rows -= u64::from(run.count);
        }
        // Target number of rows in a group of light values: the remaining light rows divided by the remaining groups.
        let wanted = (left_rows + depth).div_ceil(left_groups.max(1));
        // Light values directly before a heavy value form a group of their own. As long as `spare` allows, the group
        // may be small.
        let keeps_apart = next_is_heavy && !heavy_now && (depth * 2 >= wanted || spare > 0);
        if keeps_apart && depth * 2 < wanted {
            spare -= 1;
        }
        let ends = heavy_now || depth >= wanted || keeps_apart;
        if ends {
            groups.push(&runs[start..=place]);
            start = place + 1;
            depth = 0;
            if !heavy_now {
                left_groups = left_groups.saturating_sub(1);
            }
        }
    }
    if start < runs.len() {
        groups.push(&runs[start..]);
    }
    groups
}

/// Returns the midpoint of `low` and `high`, rounded so that it is at least `low` and below `high`.
pub fn middle(low: f32, high: f32) -> f32 {
    let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
    if middle < high { middle } else { low }
}

fn centre(group: &[ValueCount]) -> f32 {
    let rows: f64 = group.iter().map(|run| f64::from(run.count.max(1))).sum();
    let sum: f64 = group.iter().map(|run| f64::from(value_of(run.key)) * f64::from(run.count.max(1))).sum();
    // Rounding must not move the mean out of the group's range.
    ((sum / rows) as f32).clamp(value_of(group[0].key), value_of(group[group.len() - 1].key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bins(values: &[f32], missing: MissingPolicy, max_bin: usize) -> FeatureBins {
        FeatureBins::equal_depth(&ValueDistribution::of(values, None), missing, max_bin)
    }

    #[test]
    fn few_values_get_one_bin_each_and_missing_its_own_code() {
        let bins = bins(&[3.0, 1.0, f32::NAN, 1.0, 7.0], MissingPolicy::Learned, 255);
        assert_eq!(bins.cuts, [2.0, 5.0]);
        assert_eq!(bins.centres, [1.0, 3.0, 7.0]);
        assert_eq!((bins.missing_code, bins.common_code, bins.codes()), (Some(3), 0, 4));
        assert_eq!([1.0, 2.0, 2.5, 7.0, 100.0, f32::NAN].map(|v| bins.code_of(v)), [0, 0, 1, 2, 2, 3]);
    }

    #[test]
    fn fill_values_are_binned_with_the_others() {
        let values = [4.0, 2.0, 6.0, 2.0, f32::NAN];
        assert_eq!(bins(&values, MissingPolicy::Zero, 255).centres, [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(bins(&values, MissingPolicy::One, 255).code_of(f32::NAN), 0);
        assert_eq!(bins(&values, MissingPolicy::Mean, 255).fill, Some(3.5));
        assert_eq!(bins(&values, MissingPolicy::Median, 255).fill, Some(2.0));
    }

    #[test]
    fn heavy_values_leave_even_bins_for_the_rest() {
        let values: Vec<f32> = (0..10_000).map(|row| if row % 2 == 0 { 0.0 } else { row as f32 }).collect();
        let bins = bins(&values, MissingPolicy::Zero, 16);
        assert_eq!(bins.bins(), 16);
        let mut counts = vec![0; 16];
        values.iter().for_each(|value| counts[bins.code_of(*value) as usize] += 1);
        assert_eq!(counts[0], 5_000);
        assert!(counts[1..].iter().all(|count| (300..=370).contains(count)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn byte_codes_match_plain_search_and_bins_ascend(
            values in prop::collection::vec(prop_oneof![
                (-9i32..9).prop_map(|v| v as f32), -1e3f32..1e3, Just(f32::NAN)], 1..800),
            max_bin in 2usize..=255,
            learned in any::<bool>(),
        ) {
            let bins = bins(&values, if learned { MissingPolicy::Learned } else { MissingPolicy::Mean }, max_bin);
            prop_assert!(bins.bins() <= max_bin && bins.centres.len() == bins.bins());
            prop_assert!(bins.cuts.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(bins.cuts.iter().zip(&bins.centres).all(|(cut, centre)| centre <= cut));
            prop_assert!(bins.cuts.iter().zip(&bins.centres[1..]).all(|(cut, centre)| centre > cut));
            let mut codes = Vec::new();
            bins.encode_bytes(&values, &mut codes);
            for (value, code) in values.iter().zip(codes) {
                prop_assert_eq!(bins.code_of(*value), u32::from(code));
            }
        }
    }
}
