//! Describes a table of quality against cost: the last point of each curve.

use super::{TableDescription, heading, line};
use arrow::array::Array;
use arrow::datatypes::DataType;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, string_column};
use planetree_metric::Convention;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Describes a table of costs.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let fields = table.schema().fields().iter();
    let numbers = |kind: &DataType| matches!(kind, DataType::Float64 | DataType::Int32 | DataType::Int64);
    let names: Vec<&str> =
        fields.filter(|field| numbers(field.data_type())).map(|field| field.name().as_str()).collect();
    let mut last: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let columns: Vec<_> =
            names.iter().map(|name| float_column(table, &batch, name)).collect::<Result<Vec<_>>>()?;
        let models = string_column(table, &batch, "model")?;
        for row in 0..batch.num_rows() {
            let point: Vec<Option<f64>> =
                columns.iter().map(|column| column.is_valid(row).then(|| column.value(row))).collect();
            let model = models.value(row);
            match last.last_mut() {
                Some((name, before)) if name == model && before.first() == point.first() => *before = point,
                _ => last.push((model.to_owned(), point)),
            }
        }
    }
    let mut text = heading("quality against cost", table);
    let metadata = |key: &str| table.metadata(key).unwrap_or("-").to_owned();
    line(&mut text, "convention", metadata(Convention::KEY));
    line(&mut text, "exit every", metadata("planetree.exit_every"));
    line(&mut text, "exit scope", metadata("planetree.exit_scope"));
    line(&mut text, "exit of", metadata("planetree.exit_of"));
    line(&mut text, "points", shown_count(table.rows()));
    let heads: String = names.iter().map(|name| format!(" {name:>13}")).collect();
    let _ = writeln!(text, "\n{:<22}{heads}", "model"); // writing to a String cannot fail
    let mut ends = Vec::new();
    for (model, point) in &last {
        let shown = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let cells: String = point.iter().map(|value| format!(" {:>13}", shown(value))).collect();
        let _ = writeln!(text, "{model:<22}{cells}");
        let mut end: Map<String, Value> =
            names.iter().map(|name| (*name).to_owned()).zip(point.iter().map(|value| json!(value))).collect();
        end.insert("model".to_owned(), json!(model));
        ends.push(end);
    }
    let json = json!({
        "costs": table.location().to_string(),
        "convention": table.metadata(Convention::KEY),
        "points": table.rows(),
        "ends": ends,
    });
    Ok(TableDescription::new(table, text, json))
}
