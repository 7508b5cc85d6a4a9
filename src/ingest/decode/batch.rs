//! Arrow record batches, as a Parquet input gives them, to rows.

use super::super::block::BlockBuilder;
use super::super::fault::FaultKind;
use super::super::roles::{ColumnRole, Roles};
use super::checked_label;
use super::delimited::Words;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

/// What is wrong with a row of a table; rows count from 1.
#[derive(Debug)]
pub struct RowFault {
    /// The row within the batch, from 0.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// What is wrong.
    pub problem: String,
}

/// The columns of a batch in the types that rows need.
enum Cells {
    Text(StringArray),
    Number(Float64Array),
    Ignored,
}

/// Adds the rows of a batch; its first row is row `first_row` (from 1) of the input.
pub fn decode_batch(
    batch: &RecordBatch,
    roles: &Roles,
    first_row: u64,
    builder: &mut BlockBuilder,
) -> Result<(), RowFault> {
    let outcome = add_rows(batch, roles, first_row, builder);
    outcome.inspect_err(|_| *builder = BlockBuilder::default())
}

fn add_rows(
    batch: &RecordBatch,
    roles: &Roles,
    first_row: u64,
    builder: &mut BlockBuilder,
) -> Result<(), RowFault> {
    builder.at_least_width(roles.features.len() as u32);
    let cells: Vec<Cells> = roles
        .columns
        .iter()
        .enumerate()
        .map(|(place, role)| cells_of(batch.column(place), role, place))
        .collect::<Result<_, _>>()?;
    let mut words = Words::default();
    for row in 0..batch.num_rows() {
        let fault = |column: usize, problem: String| RowFault { row, column, problem };
        let mut label = f32::NAN;
        let (mut document, mut weight, mut position) = (None, None, None);
        for (place, (role, cells)) in roles.columns.iter().zip(&cells).enumerate() {
            match (role, cells) {
                (ColumnRole::Query, Cells::Text(text)) => {
                    if text.is_null(row) || text.value(row).is_empty() {
                        return Err(fault(place, "the query id is empty".to_owned()));
                    }
                    builder.query(text.value(row).as_bytes(), first_row + row as u64);
                }
                (ColumnRole::Document, Cells::Text(text)) => {
                    document = (!text.is_null(row)).then(|| text.value(row).as_bytes());
                }
                (ColumnRole::Category(feature), Cells::Text(text)) => {
                    if text.is_null(row) {
                        builder.push_missing(*feature);
                    } else {
                        builder.push_entry(*feature, words.code(*feature, text.value(row)));
                    }
                }
                (ColumnRole::Label, Cells::Number(numbers)) if !numbers.is_null(row) => {
                    let value = numbers.value(row) as f32;
                    label = match checked_label(value) {
                        Ok(label) => label,
                        Err(_) if value.is_nan() => return Err(fault(place, "the label is NaN".to_owned())),
                        Err(_) => return Err(fault(place, format!("the label {value} is negative"))),
                    };
                    if value.is_infinite() {
                        return Err(fault(place, "the label is infinite".to_owned()));
                    }
                }
                (ColumnRole::Weight, Cells::Number(numbers)) => {
                    weight = Some(value_or_nan(numbers, row) as f32)
                }
                (ColumnRole::Position, Cells::Number(numbers)) => {
                    position = Some(value_or_nan(numbers, row) as i32)
                }
                (ColumnRole::Feature(feature), Cells::Number(numbers)) => {
                    let wide = value_or_nan(numbers, row);
                    let value = wide as f32;
                    if value.is_infinite() && wide.is_finite() {
                        return Err(fault(place, format!("the value {wide:e} does not fit float32")));
                    }
                    if wide.is_infinite() {
                        builder.repairs().add(FaultKind::ValueInfinite);
                    }
                    if !value.is_finite() {
                        builder.push_missing(*feature);
                    } else {
                        builder.push_entry(*feature, value);
                    }
                }
                _ => {}
            }
        }
        builder.finish_row(label, document);
        if let Some(weight) = weight {
            builder.weight(weight);
        }
        if let Some(position) = position {
            builder.position(position);
        }
    }
    builder.set_categories(words.finish());
    Ok(())
}

fn value_or_nan(numbers: &Float64Array, row: usize) -> f64 {
    if numbers.is_null(row) { f64::NAN } else { numbers.value(row) }
}

fn cells_of(column: &ArrayRef, role: &ColumnRole, place: usize) -> Result<Cells, RowFault> {
    let fault = |problem: String| RowFault { row: 0, column: place, problem };
    match role {
        ColumnRole::Ignored => Ok(Cells::Ignored),
        ColumnRole::Query | ColumnRole::Document | ColumnRole::Category(_) => {
            let text = cast(column, &DataType::Utf8).map_err(|error| fault(error.to_string()))?;
            Ok(Cells::Text(text.as_string::<i32>().clone()))
        }
        _ if !is_number(column.data_type()) => Err(fault(format!(
            "it holds {}, expected numbers (--categorical NAME codes words, --ignore-columns NAME leaves them out)",
            column.data_type()
        ))),
        _ => {
            // Every number fits f64, so one too large for f32 can be told from an infinite one.
            let wide = cast(column, &DataType::Float64).map_err(|error| fault(error.to_string()))?;
            Ok(Cells::Number(wide.as_primitive::<Float64Type>().clone()))
        }
    }
}

/// Whether a column can be a feature as it is.
pub fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || matches!(kind, DataType::Boolean | DataType::Null)
}
