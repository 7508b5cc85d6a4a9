//! Measures how much the distributions of features differ between two datasets.

use super::material::NamedDataset;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, unexpected_columns};

/// Number of bins of the population stability index, besides that of missing values.
const BINS: usize = 10;
/// Maximum number of rows of a dataset that are used.
const ROWS: u64 = 20_000;
/// Maximum number of row groups that the rows are read from.
const GROUPS: usize = 8;
/// Number of columns that are decoded at a time.
const AT_A_TIME: usize = 32;

/// The difference of a feature between two datasets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeatureDrift {
    /// Name of the feature.
    pub name: String,
    /// Population stability index, with bins of equal size in the reference and a bin of missing values.
    pub stability_index: f64,
    /// Kolmogorov-Smirnov statistic of the known values: the largest difference of the cumulative distributions.
    /// `None` if one of the datasets has no values.
    pub largest_gap: Option<f64>,
    /// Share of missing values in the reference and in the other dataset.
    pub missing: [f64; 2],
}

/// A sample of the values of each numeric feature. Missing values are NaN.
pub(crate) struct FeatureSample {
    /// Number of rows.
    pub rows: usize,
    features: Vec<(String, Vec<f32>)>,
}

impl FeatureSample {
    /// Reads rows at regular intervals. Categorical features are left out, because their codes differ between datasets.
    pub(crate) fn read(dataset: &NamedDataset) -> Result<Self> {
        let reader = DatasetReader::open(&dataset.location)?;
        let manifest = reader.manifest();
        let groups = reader.groups();
        let step = groups.len().div_ceil(GROUPS).max(1);
        let chosen: Vec<_> = groups.into_iter().step_by(step).collect();
        let rows = |id: &planetree_data::dataset::GroupId| manifest.files[id.file].row_groups[id.group].rows;
        let every = chosen.iter().map(rows).sum::<u64>().div_ceil(ROWS).max(1) as usize;
        let mut features: Vec<(String, Vec<f32>)> =
            manifest.features.iter().map(|name| (name.clone(), Vec::new())).collect();
        let malformed = || unexpected_columns(reader.location());
        for id in chosen {
            interrupt::check()?;
            let group = reader.open_group(id)?;
            let first = group.columns().checked_sub(features.len()).ok_or_else(malformed)?;
            for start in (0..features.len()).step_by(AT_A_TIME) {
                let end = (start + AT_A_TIME).min(features.len());
                let batch = group.read(first + start..first + end)?;
                for (column, (_, values)) in batch.columns().iter().zip(&mut features[start..end]) {
                    let column = column.as_primitive_opt::<Float32Type>().ok_or_else(malformed)?;
                    let value = |row: usize| if column.is_valid(row) { column.value(row) } else { f32::NAN };
                    values.extend((0..column.len()).step_by(every).map(value));
                }
            }
        }
        let rows = features.first().map_or(0, |(_, values)| values.len());
        features.retain(|(name, _)| !manifest.categories.iter().any(|known| known.feature == *name));
        Ok(FeatureSample { rows, features })
    }

    /// Compares the features that both datasets have, largest difference first.
    pub(crate) fn compare(&self, other: &FeatureSample) -> Vec<FeatureDrift> {
        let mut drifts: Vec<FeatureDrift> = self
            .features
            .iter()
            .filter_map(|(name, values)| {
                let (_, others) = other.features.iter().find(|(known, _)| known == name)?;
                Some(drift(name, values, others))
            })
            .collect();
        drifts.sort_by(|one, other| other.stability_index.total_cmp(&one.stability_index));
        drifts
    }
}

fn drift(name: &str, reference: &[f32], other: &[f32]) -> FeatureDrift {
    let known = |values: &[f32]| {
        let mut known: Vec<f32> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        known.sort_by(f32::total_cmp);
        known
    };
    let missing = |values: &[f32], known: &[f32]| 1.0 - known.len() as f64 / values.len().max(1) as f64;
    let (first, second) = (known(reference), known(other));
    FeatureDrift {
        name: name.to_owned(),
        stability_index: stability_index(&first, reference.len(), &second, other.len()),
        largest_gap: (!first.is_empty() && !second.is_empty()).then(|| largest_gap(&first, &second)),
        missing: [missing(reference, &first), missing(other, &second)],
    }
}

/// Returns the population stability index: the sum over bins of (q - p) ln(q / p), where p and q are the shares of the
/// reference and of the other rows. The bins are those of the deciles of the reference, without repeated ones, and a
/// bin of missing values. An empty bin counts as half a row. The values are sorted.
fn stability_index(first: &[f32], first_rows: usize, second: &[f32], second_rows: usize) -> f64 {
    if first_rows == 0 || second_rows == 0 {
        return 0.0;
    }
    let mut edges: Vec<f32> = (1..BINS)
        .filter_map(|bin| first.get((bin * first.len()).div_ceil(BINS).saturating_sub(1)).copied())
        .collect();
    edges.dedup();
    let counts = |values: &[f32], rows: usize| {
        let mut ends: Vec<usize> =
            edges.iter().map(|edge| values.partition_point(|value| value <= edge)).collect();
        ends.push(values.len());
        let mut counts: Vec<usize> = ends
            .iter()
            .enumerate()
            .map(|(bin, end)| end - if bin == 0 { 0 } else { ends[bin - 1] })
            .collect();
        counts.push(rows - values.len());
        counts
    };
    let (one, other) = (counts(first, first_rows), counts(second, second_rows));
    let share = |count: usize, rows: usize| (count as f64).max(0.5) / rows as f64;
    let bins = one.iter().zip(&other).filter(|(one, other)| **one + **other > 0);
    bins.map(|(one, other)| {
        let (p, q) = (share(*one, first_rows), share(*other, second_rows));
        (q - p) * (q / p).ln()
    })
    .sum()
}

/// Returns the Kolmogorov-Smirnov statistic of sorted values.
fn largest_gap(first: &[f32], second: &[f32]) -> f64 {
    let (mut one, mut other, mut largest) = (0, 0, 0.0_f64);
    while one < first.len() && other < second.len() {
        let at = first[one].min(second[other]);
        one += first[one..].iter().take_while(|value| **value <= at).count();
        other += second[other..].iter().take_while(|value| **value <= at).count();
        let gap = one as f64 / first.len() as f64 - other as f64 / second.len() as f64;
        largest = largest.max(gap.abs());
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distributions_do_not_drift() {
        let values: Vec<f32> = (0..100).map(|value| value as f32).collect();
        let same = drift("a", &values, &values);
        assert_eq!((same.stability_index, same.largest_gap, same.missing), (0.0, Some(0.0), [0.0, 0.0]));
        let constant = drift("a", &[1.0; 9], &[1.0; 4]);
        assert_eq!((constant.stability_index, constant.largest_gap), (0.0, Some(0.0)));
    }

    #[test]
    fn shifts_and_missing_values_drift() {
        // Ten values in ten bins against the same values without the first half: 5 empty and 5 double bins.
        let values: Vec<f32> = (0..10).map(|value| value as f32).collect();
        let upper: Vec<f32> = (0..10).map(|value| (value / 2 + 5) as f32).collect();
        let found = drift("a", &values, &upper);
        let expected = 5.0 * ((0.05 - 0.1) * (0.05_f64 / 0.1).ln() + (0.2 - 0.1) * (0.2_f64 / 0.1).ln());
        assert!((found.stability_index - expected).abs() < 1e-12, "{found:?}");
        assert_eq!(found.largest_gap, Some(0.5));
        let gone = drift("a", &values, &[f32::NAN; 10]);
        assert!(gone.stability_index > 1.0 && gone.largest_gap.is_none());
        assert_eq!(gone.missing, [0.0, 1.0]);
    }

    #[test]
    fn the_largest_gap_agrees_with_a_slow_twin() {
        let draw = |seed: u64, count: u64| -> Vec<f32> {
            let mut values: Vec<f32> = (0..count).map(|row| ((row * seed + 7) % 31) as f32).collect();
            values.sort_by(f32::total_cmp);
            values
        };
        for (one, other) in [(draw(17, 90), draw(5, 40)), (draw(3, 10), draw(11, 70))] {
            let share = |values: &[f32], at: f32| {
                values.iter().filter(|value| **value <= at).count() as f64 / values.len() as f64
            };
            let slow = (0..31).map(|at| (share(&one, at as f32) - share(&other, at as f32)).abs());
            assert_eq!(largest_gap(&one, &other), slow.fold(0.0, f64::max));
        }
    }
}
