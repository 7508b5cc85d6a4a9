//! The missing cells of a dataset, and what is known of each feature.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupReader, unexpected_columns};
use rayon::prelude::*;

/// What is known of a feature.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellSummary {
    /// The rows without a value, in ascending order.
    pub missing: Vec<u64>,
    /// Number of rows with a value.
    pub present: u64,
    /// The least value.
    pub least: f32,
    /// The largest value.
    pub most: f32,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation of the values.
    pub deviation: f64,
    /// Whether the values are codes of words.
    pub categorical: bool,
}

impl CellSummary {
    /// Returns whether all values are equal.
    pub(super) fn is_constant(&self) -> bool {
        self.least == self.most
    }
}

/// Returns the values of a feature in a group, with NaN for missing ones.
pub(super) fn feature_values(
    reader: &DatasetReader,
    group: &GroupReader,
    feature: usize,
) -> Result<Vec<f32>> {
    let keys = group.columns().checked_sub(reader.manifest().features.len());
    let column = keys.ok_or_else(|| unexpected_columns(reader.location()))? + feature;
    let batch = group.read(column..column + 1)?;
    let values = batch.column(0).as_primitive_opt::<Float32Type>();
    let values = values.ok_or_else(|| unexpected_columns(reader.location()))?;
    let value = |row: usize| if values.is_valid(row) { values.value(row) } else { f32::NAN };
    Ok((0..values.len()).map(value).map(|value| if value.is_finite() { value } else { f32::NAN }).collect())
}

/// Summarises all features of a dataset. Sums are added in the order of the rows, so the partitioning does not matter.
pub(super) fn summarise(reader: &DatasetReader) -> Result<Vec<CellSummary>> {
    let manifest = reader.manifest();
    let mut sums = vec![FeatureSums::default(); manifest.features.len()];
    for id in reader.groups() {
        interrupt::check()?;
        let group = reader.open_group(id)?;
        sums.par_iter_mut().enumerate().try_for_each(|(feature, sums)| {
            let values = feature_values(reader, &group, feature)?;
            (group.first_row()..).zip(values).for_each(|(row, value)| sums.add(row, value));
            Ok(())
        })?;
    }
    let is_word = |name: &String| manifest.categories.iter().any(|column| column.feature == *name);
    Ok(sums.into_iter().zip(&manifest.features).map(|(sums, name)| sums.finish(is_word(name))).collect())
}

/// Sums over the rows read so far.
#[derive(Debug, Clone, Default)]
struct FeatureSums {
    missing: Vec<u64>,
    present: u64,
    least: f32,
    most: f32,
    /// The first value. Sums of distances from it are precise even if all values are far from 0.
    origin: f64,
    sum: f64,
    squares: f64,
}

impl FeatureSums {
    fn add(&mut self, row: u64, value: f32) {
        if value.is_nan() {
            self.missing.push(row);
            return;
        }
        if self.present == 0 {
            (self.least, self.most, self.origin) = (value, value, f64::from(value));
        }
        self.present += 1;
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
        let distance = f64::from(value) - self.origin;
        self.sum += distance;
        self.squares += distance * distance;
    }

    fn finish(self, categorical: bool) -> CellSummary {
        let mean = self.sum / self.present.max(1) as f64;
        CellSummary {
            missing: self.missing,
            present: self.present,
            least: self.least,
            most: self.most,
            mean: self.origin + mean,
            deviation: (self.squares / self.present.max(1) as f64 - mean * mean).max(0.0).sqrt(),
            categorical,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_precise_far_from_0() {
        let mut sums = FeatureSums::default();
        for (row, value) in [1e7f32, f32::NAN, 1e7 + 2.0, 1e7 + 4.0].into_iter().enumerate() {
            sums.add(row as u64, value);
        }
        let summary = sums.finish(false);
        assert_eq!((summary.present, &summary.missing[..], summary.mean), (3, &[1][..], 1e7 + 2.0));
        assert_eq!((summary.least, summary.most), (1e7, 1e7 + 4.0));
        assert!((summary.deviation - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!(FeatureSums::default().finish(false).is_constant());
    }
}
