//! The columns of a batch of a dataset, as typed arrays.

use super::invalid_columns;
use crate::dataset::DatasetReader;
use crate::rows::BlockBuilder;
use arrow::array::{Array, AsArray, Float32Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{Float32Type, Int32Type};
use planetree_base::error::Result;
use std::ops::Range;

/// Some consecutive rows of a dataset.
pub(super) struct TypedColumns {
    queries: StringArray,
    documents: StringArray,
    labels: Float32Array,
    weights: Option<Float32Array>,
    positions: Option<Int32Array>,
    features: Vec<Float32Array>,
}

impl TypedColumns {
    /// Finds the columns of a batch with all columns of a dataset.
    pub(super) fn of(batch: &RecordBatch, reader: &DatasetReader) -> Result<Self> {
        let manifest = reader.manifest();
        let invalid = || invalid_columns(reader);
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>().cloned();
        let number = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Float32Type>().cloned();
        let position = || batch.column_by_name("position")?.as_primitive_opt::<Int32Type>().cloned();
        let first = batch.num_columns().checked_sub(manifest.features.len()).ok_or_else(invalid)?;
        let feature =
            |index: usize| batch.column(index).as_primitive_opt::<Float32Type>().cloned().ok_or_else(invalid);
        let check = |expected: bool, found: bool| if expected && !found { Err(invalid()) } else { Ok(()) };
        let weights = number("weight").filter(|_| manifest.weight);
        let positions = position().filter(|_| manifest.position);
        check(manifest.weight, weights.is_some())?;
        check(manifest.position, positions.is_some())?;
        Ok(TypedColumns {
            queries: text("query_id").ok_or_else(invalid)?,
            documents: text("doc_id").ok_or_else(invalid)?,
            labels: number("label").ok_or_else(invalid)?,
            weights,
            positions,
            features: (first..batch.num_columns()).map(feature).collect::<Result<_>>()?,
        })
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.queries.len()
    }

    /// Returns the query id of a row.
    pub(super) fn query(&self, row: usize) -> &str {
        self.queries.value(row)
    }

    /// Returns the ranges of consecutive rows with the same query id.
    pub(super) fn queries(&self) -> Vec<Range<usize>> {
        let starts = (0..self.rows()).filter(|row| *row == 0 || self.query(*row) != self.query(row - 1));
        let bounds: Vec<usize> = starts.chain([self.rows()]).collect();
        bounds.windows(2).map(|bounds| bounds[0]..bounds[1]).collect()
    }

    /// Returns some of the rows, without copying them.
    pub(super) fn slice(&self, rows: Range<usize>) -> Self {
        let numbers = |values: &Float32Array| values.slice(rows.start, rows.len());
        TypedColumns {
            queries: self.queries.slice(rows.start, rows.len()),
            documents: self.documents.slice(rows.start, rows.len()),
            labels: numbers(&self.labels),
            weights: self.weights.as_ref().map(numbers),
            positions: self.positions.as_ref().map(|values| values.slice(rows.start, rows.len())),
            features: self.features.iter().map(numbers).collect(),
        }
    }

    /// Returns the features that a row has, with their values.
    pub(super) fn present(&self, row: usize) -> impl Iterator<Item = (u32, f32)> {
        let values = (0..).zip(&self.features).filter(move |(_, values)| values.is_valid(row));
        values.map(move |(feature, values)| (feature, values.value(row)))
    }

    /// Completes the open row of the builder with the document id and the position of a row, and with its label and
    /// weight unless others are given. Without `weight`, the row has no weight.
    pub(super) fn finish_row(
        &self,
        row: usize,
        label: Option<f32>,
        weight: Option<Option<f32>>,
        builder: &mut BlockBuilder,
    ) {
        let document = self.documents.is_valid(row).then(|| self.documents.value(row).as_bytes());
        builder.finish_row(label.unwrap_or_else(|| value_or_nan(&self.labels, row)), document);
        if let Some(given) = weight {
            let own = || self.weights.as_ref().map_or(1.0, |weights| value_or_nan(weights, row));
            builder.weight(given.unwrap_or_else(own));
        }
        if let Some(positions) = &self.positions {
            builder.position(positions.is_valid(row).then(|| positions.value(row)));
        }
    }
}

fn value_or_nan(values: &Float32Array, row: usize) -> f32 {
    if values.is_valid(row) { values.value(row) } else { f32::NAN }
}
