//! Defines the interface for scoring rows with one part of a model.

use arrow::array::{Array, Float32Array};
use std::fmt::Debug;

/// The values of some rows for every feature of a model. Missing values are NaN or null.
#[derive(Debug, Clone, Copy)]
pub enum RowValues<'a> {
    /// A matrix in row-major order. Values beyond its end are missing.
    Matrix {
        /// The values.
        values: &'a [f32],
        /// Number of values per row.
        width: usize,
    },
    /// One column per feature. A feature without a column is missing, and so are values beyond the end of a column.
    Columns {
        /// The columns. `None` for a feature without a column.
        columns: &'a [Option<&'a Float32Array>],
        /// Index of the first row in the columns.
        first: usize,
    },
}

impl RowValues<'_> {
    /// Returns the value of a feature in a row, or NaN if it is missing.
    pub fn value(&self, row: usize, feature: usize) -> f32 {
        match *self {
            RowValues::Matrix { values, width } => {
                values.get(row * width + feature).copied().unwrap_or(f32::NAN)
            }
            RowValues::Columns { columns, first } => match columns.get(feature).copied().flatten() {
                Some(column) if first + row < column.len() && column.is_valid(first + row) => {
                    column.value(first + row)
                }
                _ => f32::NAN,
            },
        }
    }

    /// Copies the values of a feature in the first rows to `values`. Missing values become NaN.
    pub fn load(&self, feature: usize, values: &mut [f32]) {
        match *self {
            RowValues::Matrix { values: all, width } => {
                for (row, value) in values.iter_mut().enumerate() {
                    *value = all.get(row * width + feature).copied().unwrap_or(f32::NAN);
                }
            }
            RowValues::Columns { columns, first } => match columns.get(feature).copied().flatten() {
                Some(column) => {
                    let present = column.len().saturating_sub(first).min(values.len());
                    let (values, absent) = values.split_at_mut(present);
                    if present > 0 {
                        load_values(column, first, values);
                    }
                    absent.fill(f32::NAN);
                }
                None => values.fill(f32::NAN),
            },
        }
    }

    /// Returns the rows without the first `skipped` ones.
    pub fn skip(self, skipped: usize) -> Self {
        match self {
            RowValues::Matrix { values, width } => {
                RowValues::Matrix { values: values.get(skipped * width..).unwrap_or_default(), width }
            }
            RowValues::Columns { columns, first } => RowValues::Columns { columns, first: first + skipped },
        }
    }
}

/// A part of a model, prepared for scoring many rows.
pub trait PartScorer: Debug + Send + Sync {
    /// Computes the values of the part, one per row. The model's fill values are applied. If the part compares
    /// documents, the rows must be all documents of one query.
    fn score(&self, rows: RowValues<'_>, values: &mut [f64]);
}

/// Copies the values of a column, starting with row `first`, and replaces nulls with NaN.
pub(crate) fn load_values(column: &Float32Array, first: usize, values: &mut [f32]) {
    values.copy_from_slice(&column.values()[first..first + values.len()]);
    let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) else { return };
    let present = nulls.inner().slice(first, values.len());
    for (values, present) in values.chunks_mut(64).zip(present.bit_chunks().iter_padded()) {
        for (row, value) in values.iter_mut().enumerate() {
            *value = if (present >> row) & 1 == 1 { *value } else { f32::NAN };
        }
    }
}
