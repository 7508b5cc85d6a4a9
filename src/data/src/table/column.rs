//! Reads the columns of a table as numbers or strings, whatever their stored types are, for descriptions and charts.

use super::read::TableReader;
use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use planetree_base::error::{Error, Result};

/// Returns the column with the given name as `f64`. Casts the values if the column has another type.
pub fn float_column(table: &TableReader, batch: &RecordBatch, name: &str) -> Result<Float64Array> {
    Ok(converted(table, batch, name, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Returns the column with the given name as strings. Casts the values if the column has another type.
pub fn string_column(table: &TableReader, batch: &RecordBatch, name: &str) -> Result<StringArray> {
    Ok(converted(table, batch, name, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Returns the split of every row of a training log. If the training has several stages, it is followed by the stage,
/// such as `valid, stage 2`, because rounds count from the beginning of their stage.
pub fn split_column(table: &TableReader, batch: &RecordBatch) -> Result<StringArray> {
    let splits = string_column(table, batch, "split")?;
    if batch.column_by_name("stage").is_none() {
        return Ok(splits);
    }
    let stages = string_column(table, batch, "stage")?;
    let named =
        splits.iter().zip(&stages).map(|(split, stage)| Some(format!("{}, stage {}", split?, stage?)));
    Ok(named.collect())
}

fn converted(table: &TableReader, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef> {
    let failed = |problem: String| {
        let problem = format!("invalid {}: {problem}", table.kind().name());
        Error::place(table.location(), problem, "write the file again")
    };
    let column = batch.column_by_name(name).ok_or_else(|| failed(format!("there is no column {name}")))?;
    cast(column, kind).map_err(|error| failed(format!("column {name}: {error}")))
}
