//! The missing cells of a dataset, and what is known of each feature.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupReader, unexpected_columns};
use rayon::prelude::*;

/// What is known of a feature.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureSummary {
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

impl FeatureSummary {
    /// Returns whether all values are equal.
    pub fn is_constant(&self) -> bool {
        self.least == self.most
    }
}

/// Returns the values of a feature in a group, with NaN for missing ones.
pub fn feature_values(reader: &DatasetReader, group: &GroupReader, feature: usize) -> Result<Vec<f32>> {
    let column = group.columns() - reader.manifest().features.len() + feature;
    let batch = group.read(column..column + 1)?;
    let values = batch.column(0).as_primitive_opt::<Float32Type>();
    let values = values.ok_or_else(|| unexpected_columns(reader.location()))?;
    let value = |row: usize| if values.is_valid(row) { values.value(row) } else { f32::NAN };
    Ok((0..values.len()).map(value).map(|value| if value.is_finite() { value } else { f32::NAN }).collect())
}

/// Summarises all features of a dataset. Sums are added in the order of the rows, so the partitioning does not matter.
pub fn summarise(reader: &DatasetReader) -> Result<Vec<FeatureSummary>> {
    let manifest = reader.manifest();
    let groups = reader.groups().into_iter().map(|id| reader.open_group(id)).collect::<Result<Vec<_>>>()?;
    let of_feature = |feature: usize| {
        interrupt::check()?;
        let mut summary =
            FeatureSummary { least: f32::INFINITY, most: f32::NEG_INFINITY, ..Default::default() };
        let (mut sum, mut squares) = (0.0, 0.0);
        for group in &groups {
            for (row, value) in (group.first_row()..).zip(feature_values(reader, group, feature)?) {
                if value.is_nan() {
                    summary.missing.push(row);
                    continue;
                }
                summary.present += 1;
                summary.least = summary.least.min(value);
                summary.most = summary.most.max(value);
                // The distance from the first value keeps the sum of squares precise.
                let distance = f64::from(value) - f64::from(summary.mean_start(value));
                sum += distance;
                squares += distance * distance;
            }
        }
        let count = summary.present.max(1) as f64;
        let start = summary.mean;
        summary.mean = start + sum / count;
        summary.deviation = (squares / count - (sum / count).powi(2)).max(0.0).sqrt();
        let name = &manifest.features[feature];
        summary.categorical = manifest.categories.iter().any(|column| column.feature == *name);
        Ok(summary)
    };
    (0..manifest.features.len()).into_par_iter().map(of_feature).collect()
}

impl FeatureSummary {
    /// Returns the first value, which is kept in `mean` until all values are known.
    fn mean_start(&mut self, value: f32) -> f32 {
        if self.present == 1 {
            self.mean = f64::from(value);
        }
        self.mean as f32
    }
}
