//! Reads the values of one metric from a metrics table, which has one row per query, or per system and query.

use super::query_value::QueryValue;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_data::table::TableReader;

/// The values of one system in a metrics table.
pub struct TableSystem {
    /// Name of the system; `None` if the table has no column `system`.
    pub name: Option<String>,
    /// Values of the queries, in row order.
    pub values: Vec<QueryValue>,
}

/// Reads the values in the column with the name `metric`. Systems are returned in the order of their first rows.
pub fn read_metric(table: &TableReader, metric: &str) -> Result<Vec<TableSystem>> {
    check_metric(table, metric)?;
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
                query: required_text(table, &queries, row, "query_id")?.to_owned(),
                value: metrics.is_valid(row).then(|| metrics.value(row)),
                documents: count(0, row).zip(count(1, row)),
            };
            let index = match &names {
                Some(names) => system_index(&mut systems, required_text(table, names, row, SYSTEM)?),
                None => 0,
            };
            systems[index].values.push(value);
        }
    }
    Ok(systems)
}

/// Name of the column that contains the name of the system, in a table of several systems.
const SYSTEM: &str = "system";

/// Returns the index of the system with this name, and adds the system if it is new. The rows of a system are usually
/// contiguous, so the search begins with the last system.
fn system_index(systems: &mut Vec<TableSystem>, name: &str) -> usize {
    let known = systems.iter().rposition(|system| system.name.as_deref() == Some(name));
    known.unwrap_or_else(|| {
        systems.push(TableSystem { name: Some(name.to_owned()), values: Vec::new() });
        systems.len() - 1
    })
}

/// Returns the string in a row of a column, or an error if it is null.
fn required_text<'a>(table: &TableReader, column: &'a ArrayRef, row: usize, name: &str) -> Result<&'a str> {
    let texts = column.as_string::<i32>();
    if texts.is_valid(row) {
        return Ok(texts.value(row));
    }
    let problem = format_args!("invalid metrics table: a row has no {name}");
    Err(Error::place(table.location(), problem, "recreate the file with `planetree evaluate --output`"))
}

/// Checks that the table has a column with the name `metric`. Otherwise, the error lists the available metrics.
fn check_metric(table: &TableReader, metric: &str) -> Result<()> {
    let fields = table.schema().fields().iter();
    let names: Vec<&str> = fields
        .filter(|field| matches!(field.data_type(), DataType::Float32 | DataType::Float64))
        .map(|field| field.name().as_str())
        .collect();
    if names.contains(&metric) {
        return Ok(());
    }
    let problem = match names.as_slice() {
        [] => format!("no column {metric:?} and no other metric"),
        names => format!("no column {metric:?}; available metrics: {}", names.join(", ")),
    };
    let nearest = suggest::nearest(metric, names.iter().copied());
    let otherwise = format!("choose one with --metric, or evaluate again with --metrics {metric}");
    Err(Error::place(table.location(), problem, suggest::did_you_mean(&nearest, &otherwise)))
}

fn column(table: &TableReader, batch: &RecordBatch, name: &str, kind: &DataType) -> Result<ArrayRef> {
    let failed = |problem: String| {
        let problem = format!("invalid metrics table: {problem}");
        Error::place(table.location(), problem, "recreate the file with `planetree evaluate --output`")
    };
    let column = batch.column_by_name(name).ok_or_else(|| failed(format!("no column {name}")))?;
    cast(column, kind).map_err(|error| failed(format!("column {name}: {error}")))
}
