//! One metric out of a table of metrics.

use super::query_value::QueryValue;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_data::table::TableReader;

/// The values of one system in a table.
pub struct TableSystem {
    /// What it is called, in a table of several.
    pub name: Option<String>,
    /// Its values, in the order of the rows.
    pub values: Vec<QueryValue>,
}

/// The values of the column called `metric`, for each system of the table in the order in which they
/// appear.
pub fn read_metric(table: &TableReader, metric: &str) -> Result<Vec<TableSystem>> {
    find(table, metric)?;
    let has_systems = table.schema().column_with_name(SYSTEM).is_some();
    let mut systems: Vec<TableSystem> = Vec::new();
    if !has_systems {
        systems.push(TableSystem { name: None, values: Vec::new() });
    }
    for batch in table.batches() {
        let batch = batch?;
        let text = |name: &str| column(table, &batch, name, &DataType::Utf8);
        let queries = text("query_id")?;
        let names = if has_systems { Some(text(SYSTEM)?) } else { None };
        let metrics = column(table, &batch, metric, &DataType::Float64)?;
        let metrics = metrics.as_primitive::<Float64Type>();
        let counts =
            ["documents", "relevant"].map(|name| column(table, &batch, name, &DataType::UInt64).ok());
        let count = |which: usize, row: usize| {
            let counts = counts[which].as_ref()?.as_primitive::<UInt64Type>();
            counts.is_valid(row).then(|| counts.value(row))
        };
        for row in 0..batch.num_rows() {
            let value = QueryValue {
                query: word(table, &queries, row, "query_id")?.to_owned(),
                value: metrics.is_valid(row).then(|| metrics.value(row)),
                documents: count(0, row).zip(count(1, row)),
            };
            let place = match &names {
                Some(names) => place_of(&mut systems, word(table, names, row, SYSTEM)?),
                None => 0,
            };
            systems[place].values.push(value);
        }
    }
    Ok(systems)
}

/// The column that tells systems apart in a table of several.
const SYSTEM: &str = "system";

/// Where a system is among those so far; it is added if it is new. Rows of a system are side by side, so
/// it is nearly always the last.
fn place_of(systems: &mut Vec<TableSystem>, name: &str) -> usize {
    let known = systems.iter().rposition(|system| system.name.as_deref() == Some(name));
    known.unwrap_or_else(|| {
        systems.push(TableSystem { name: Some(name.to_owned()), values: Vec::new() });
        systems.len() - 1
    })
}

/// A text that must be there.
fn word<'a>(table: &TableReader, column: &'a ArrayRef, row: usize, name: &str) -> Result<&'a str> {
    let texts = column.as_string::<i32>();
    if texts.is_valid(row) {
        return Ok(texts.value(row));
    }
    let problem = format_args!("not valid metrics: a row has no {name}");
    Err(Error::place(table.location(), problem, "make the file again, or ask who made it"))
}

/// An error that says which metrics there are, if this one is not among them.
fn find(table: &TableReader, metric: &str) -> Result<()> {
    let fields = table.schema().fields().iter();
    let names: Vec<&str> = fields
        .filter(|field| matches!(field.data_type(), DataType::Float32 | DataType::Float64))
        .map(|field| field.name().as_str())
        .collect();
    if names.contains(&metric) {
        return Ok(());
    }
    let problem = match names.as_slice() {
        [] => format!("there is no column {metric:?}, nor any other metric"),
        names => format!("there is no column {metric:?}; its metrics are {}", names.join(", ")),
    };
    let nearest = suggest::nearest(metric, names.iter().copied());
    let otherwise = format!("name one with --metric, or evaluate again with --metrics {metric}");
    Err(Error::place(table.location(), problem, suggest::did_you_mean(&nearest, &otherwise)))
}

fn column(table: &TableReader, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef> {
    let failed = |problem: String| {
        let problem = format!("not valid metrics: {problem}");
        Error::place(table.location(), problem, "make the file again, or ask who made it")
    };
    let column = batch.column_by_name(name).ok_or_else(|| failed(format!("there is no column {name}")))?;
    cast(column, kind).map_err(|error| failed(format!("column {name}: {error}")))
}
