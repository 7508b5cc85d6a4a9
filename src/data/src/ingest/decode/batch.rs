//! Decodes Arrow record batches from Parquet inputs into rows.

use super::super::roles::{ColumnRole, Roles};
use super::checked_label;
use super::delimited::CategoryCoder;
use crate::rows::BlockBuilder;
use crate::rows::fault::FaultKind;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

/// A fault in a Parquet table.
#[derive(Debug)]
pub(crate) enum TableFault {
    /// A column has an unsupported type.
    Column {
        /// Index of the column.
        column: usize,
        /// What is wrong with the column.
        problem: String,
    },
    /// A cell is invalid.
    Cell {
        /// Index of the row within the batch, counted from 0.
        row: usize,
        /// Index of the column.
        column: usize,
        /// The kind of fault.
        kind: FaultKind,
        /// The invalid value.
        found: String,
    },
}

/// A decoder for record batches.
#[derive(Debug, Clone)]
pub(crate) struct BatchDecoder {
    /// Roles of the columns of the file.
    pub roles: Roles,
    /// Names of the columns of the file.
    pub names: Vec<String>,
    /// Whether to repair or skip faulty rows instead of stopping at the first fault.
    pub lenient: bool,
}

/// A column of a batch, cast to the type that its role needs.
enum Cells {
    Text(StringViewArray),
    Number(Float64Array),
    Ignored,
}

/// The values of a row other than its features.
#[derive(Default)]
struct RowParts<'a> {
    label: Option<f32>,
    document: Option<&'a [u8]>,
    weight: Option<f32>,
    position: Option<Option<i32>>,
}

type CellFault = (usize, FaultKind, String);

impl BatchDecoder {
    /// Decodes all rows of a batch, which has the columns that are not ignored, and adds them to the builder.
    /// `first_row` is the number of the batch's first row in the input, counted from 1.
    pub(crate) fn decode(
        &self,
        batch: &RecordBatch,
        first_row: u64,
        builder: &mut BlockBuilder,
    ) -> Result<(), TableFault> {
        self.add_rows(batch, first_row, builder).inspect_err(|_| *builder = BlockBuilder::default())
    }

    fn add_rows(
        &self,
        batch: &RecordBatch,
        first_row: u64,
        builder: &mut BlockBuilder,
    ) -> Result<(), TableFault> {
        builder.at_least_width(self.roles.features.len() as u32);
        let mut columns = batch.columns().iter();
        let cells: Vec<Cells> = (self.roles.columns.iter().enumerate())
            .map(|(place, role)| {
                if *role == ColumnRole::Ignored {
                    return Ok(Cells::Ignored);
                }
                let missing = || "the column is missing in a batch".to_owned();
                let column = columns.next().ok_or_else(missing);
                column
                    .and_then(|column| cells_of(column, role))
                    .map_err(|problem| TableFault::Column { column: place, problem })
            })
            .collect::<Result<_, _>>()?;
        let mut categories = CategoryCoder::default();
        for row in 0..batch.num_rows() {
            match self.row(&cells, row, first_row + row as u64, builder) {
                Ok(parts) => {
                    self.add_categories(&cells, row, builder, &mut categories);
                    builder.finish_row(parts.label.unwrap_or(f32::NAN), parts.document);
                    if let Some(weight) = parts.weight {
                        builder.weight(weight);
                    }
                    if let Some(position) = parts.position {
                        builder.position(position);
                    }
                }
                Err((_, kind, _)) if self.lenient => builder.skip_row(kind),
                Err((column, kind, found)) => return Err(TableFault::Cell { row, column, kind, found }),
            }
        }
        builder.set_categories(categories.finish());
        Ok(())
    }

    /// Reads all values of a row except categories.
    fn row<'a>(
        &self,
        cells: &'a [Cells],
        row: usize,
        line: u64,
        builder: &mut BlockBuilder,
    ) -> Result<RowParts<'a>, CellFault> {
        let mut parts = RowParts::default();
        for (place, (role, cells)) in self.roles.columns.iter().zip(cells).enumerate() {
            match (role, cells) {
                (ColumnRole::Query, Cells::Text(text)) => {
                    if text.is_null(row) || text.value(row).is_empty() {
                        return Err((place, FaultKind::QueryEmpty, "an empty query id".to_owned()));
                    }
                    builder.query(text.value(row).as_bytes(), line);
                }
                (ColumnRole::Document, Cells::Text(text)) => {
                    parts.document = (!text.is_null(row)).then(|| text.value(row).as_bytes());
                }
                (ColumnRole::Label, Cells::Number(numbers)) if !numbers.is_null(row) => {
                    let value = numbers.value(row) as f32;
                    if !value.is_finite() {
                        return Err((place, FaultKind::LabelNotFinite, shown(numbers.value(row))));
                    }
                    let label = checked_label(value)
                        .or_else(|kind| self.repaired(place, kind, numbers.value(row), builder))?;
                    parts.label = Some(label);
                }
                (ColumnRole::Weight, Cells::Number(numbers)) => {
                    let weight = value_or_nan(numbers, row) as f32;
                    if weight.is_infinite() {
                        return Err((place, FaultKind::WeightMalformed, shown(numbers.value(row))));
                    }
                    parts.weight = Some(weight);
                }
                (ColumnRole::Position, Cells::Number(numbers)) => {
                    let value = value_or_nan(numbers, row);
                    let fits = value.fract() == 0.0 && value.abs() < f64::from(i32::MAX);
                    if !fits && !value.is_nan() {
                        return Err((place, FaultKind::PositionMalformed, shown(value)));
                    }
                    parts.position = Some(fits.then_some(value as i32));
                }
                (ColumnRole::Feature(feature), Cells::Number(numbers)) => {
                    let wide = value_or_nan(numbers, row);
                    let mut value = wide as f32;
                    if wide.is_infinite() {
                        builder.repaired(FaultKind::ValueInfinite);
                    } else if value.is_infinite() {
                        value = self.repaired(place, FaultKind::ValueTooLarge, wide, builder)?;
                    }
                    if value.is_finite() {
                        builder.push_entry(*feature, value);
                    } else {
                        builder.push_missing(*feature);
                    }
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    fn add_categories(
        &self,
        cells: &[Cells],
        row: usize,
        builder: &mut BlockBuilder,
        categories: &mut CategoryCoder,
    ) {
        for (role, cells) in self.roles.columns.iter().zip(cells) {
            match (role, cells) {
                (ColumnRole::Category(feature), Cells::Text(text)) if text.is_valid(row) => {
                    builder.push_entry(*feature, categories.code(*feature, text.value(row)));
                }
                _ => {}
            }
        }
    }

    fn repaired(
        &self,
        column: usize,
        kind: FaultKind,
        found: f64,
        builder: &mut BlockBuilder,
    ) -> Result<f32, CellFault> {
        if self.lenient {
            builder.repaired(kind);
            return Ok(f32::NAN);
        }
        Err((column, kind, shown(found)))
    }
}

/// Formats a number for messages. Very large and very small numbers get an exponent instead of hundreds of digits.
fn shown(number: f64) -> String {
    let is_plain = number == 0.0 || (1e-6..1e16).contains(&number.abs());
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

fn value_or_nan(numbers: &Float64Array, row: usize) -> f64 {
    if numbers.is_null(row) { f64::NAN } else { numbers.value(row) }
}

fn cells_of(column: &ArrayRef, role: &ColumnRole) -> Result<Cells, String> {
    match role {
        ColumnRole::Ignored => Ok(Cells::Ignored),
        ColumnRole::Query | ColumnRole::Document | ColumnRole::Category(_) => {
            let text = cast(column, &DataType::Utf8View).map_err(|error| error.to_string())?;
            Ok(Cells::Text(text.as_string_view().clone()))
        }
        _ if !is_number(column.data_type()) => Err(format!("found {}, expected numbers", column.data_type())),
        _ => {
            // Numbers are converted to f64 first, so that a number too large for f32 can be distinguished from
            // infinity.
            let wide = cast(column, &DataType::Float64).map_err(|error| error.to_string())?;
            Ok(Cells::Number(wide.as_primitive::<Float64Type>().clone()))
        }
    }
}

/// Checks whether a column of this type can be used as a numeric feature.
pub fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_number(values),
        kind => kind.is_numeric() || matches!(kind, DataType::Boolean | DataType::Null),
    }
}
