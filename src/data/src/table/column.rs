//! Columns of tables as numbers or text, whatever their width: who describes or draws need not be strict.

use super::read::TableReader;
use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use planetree_base::error::{Error, Result};

/// A column as numbers.
pub fn numbers(table: &TableReader, batch: &RecordBatch, name: &str) -> Result<Float64Array> {
    Ok(converted(table, batch, name, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// A column as text.
pub fn texts(table: &TableReader, batch: &RecordBatch, name: &str) -> Result<StringArray> {
    Ok(converted(table, batch, name, &DataType::Utf8)?.as_string::<i32>().clone())
}

fn converted(table: &TableReader, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef> {
    let failed = |problem: String| {
        let problem = format!("not valid {}: {problem}", table.kind().name());
        Error::place(table.location(), problem, "make the file again, or ask who made it")
    };
    let column = batch.column_by_name(name).ok_or_else(|| failed(format!("there is no column {name}")))?;
    cast(column, kind).map_err(|error| failed(format!("column {name}: {error}")))
}
