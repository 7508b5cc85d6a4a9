//! Copies of a dataset in which missing values are filled: to learn a feature from the rows that have it, to predict it
//! for the others, and to write the result.

use super::cells::feature_values;
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, GroupReader};
use planetree_data::rewrite::{RewrittenQuery, RowChange, RowValues};
use std::ops::Range;

/// The missing cells of a feature, with the values that fill them.
#[derive(Debug, Clone)]
pub(super) struct FilledCells {
    /// Index of the feature.
    pub feature: usize,
    /// The rows without a value, in ascending order.
    pub rows: Vec<u64>,
    /// The value of each of these rows; empty until the feature is filled.
    pub values: Vec<f32>,
}

impl FilledCells {
    /// Returns whether a row has no value of its own.
    fn is_missing(&self, row: u64) -> bool {
        self.rows.binary_search(&row).is_ok()
    }

    /// Returns the values of a group's rows: NaN except for filled cells.
    fn of_group(&self, group: &GroupReader) -> Vec<f32> {
        let first = group.first_row();
        let mut values = vec![f32::NAN; group.rows()];
        let begin = self.rows.partition_point(|row| *row < first);
        for (row, value) in self.rows[begin..].iter().zip(self.values.get(begin..).unwrap_or_default()) {
            match values.get_mut((row - first) as usize) {
                Some(place) => *place = *value,
                None => break,
            }
        }
        values
    }
}

/// All rows, with their missing values filled.
pub(super) struct FilledRows<'a> {
    pub cells: &'a [FilledCells],
}

impl FilledRows<'_> {
    fn replaced(&self, group: &GroupReader) -> Vec<(usize, Vec<f32>)> {
        let filled = self.cells.iter().filter(|cells| !cells.values.is_empty());
        filled.map(|cells| (cells.feature, cells.of_group(group))).collect()
    }
}

impl RowChange for FilledRows<'_> {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        Ok(RowValues { replaced: self.replaced(group), ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        Ok(vec![RewrittenQuery::all(query.to_owned(), rows)])
    }
}

/// The rows that have a feature, or those that do not. The label of a row is the value of the feature, as a fraction of
/// its range.
pub(super) struct LabelledByFeature<'a> {
    pub reader: &'a DatasetReader,
    pub filled: FilledRows<'a>,
    pub cells: &'a FilledCells,
    /// Whether to keep the rows without a value.
    pub missing: bool,
    pub range: LabelRange,
}

/// The range of a feature. Labels are fractions of it, because forests round labels to a fixed number of digits.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelRange {
    pub least: f32,
    pub most: f32,
}

impl LabelRange {
    /// Returns the label for a value.
    pub(super) fn label(self, value: f32) -> f32 {
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        ((f64::from(value) - least) / (most - least)) as f32
    }

    /// Returns the value for a prediction.
    pub(super) fn value(self, prediction: f64) -> f64 {
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        least + prediction.clamp(0.0, 1.0) * (most - least)
    }
}

impl RowChange for LabelledByFeature<'_> {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        let values = feature_values(self.reader, group, self.cells.feature)?;
        // Rows without a value get a label, too, because unlabelled rows are not read.
        let label = |value: &f32| if value.is_nan() { 0.0 } else { self.range.label(*value) };
        let labels = Some(values.iter().map(label).collect());
        Ok(RowValues { labels, replaced: self.filled.replaced(group), ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let is_kept = |row: u64| self.cells.is_missing(row) == self.missing;
        let kept: Vec<usize> =
            (0..).zip(rows).filter(|(_, row)| is_kept(*row)).map(|(place, _)| place).collect();
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![RewrittenQuery { id: query.to_owned(), rows: kept }])
    }
}
