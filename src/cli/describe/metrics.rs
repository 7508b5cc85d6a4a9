//! What is in a file of metrics: the mean of each over the queries that have it.

use super::column::numbers;
use super::{Described, line};
use crate::cli::size::shown_count;
use crate::error::Result;
use crate::table::TableReader;
use arrow::datatypes::DataType;
use serde_json::json;
use std::fmt::Write;

/// Describes metrics.
pub fn describe(table: &TableReader) -> Result<Described> {
    let fields = table.schema().fields().iter();
    let floats = fields.filter(|field| matches!(field.data_type(), DataType::Float32 | DataType::Float64));
    let mut columns: Vec<(&str, u64, f64)> = floats.map(|field| (field.name().as_str(), 0, 0.0)).collect();
    for batch in table.batches() {
        let batch = batch?;
        for (name, counted, sum) in &mut columns {
            for value in numbers(table, &batch, name)?.iter().flatten() {
                *counted += 1;
                *sum += value;
            }
        }
    }
    let mut text = String::new();
    line(&mut text, "metrics", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "queries", shown_count(table.rows()));
    let _ = writeln!(text, "\n{:<14} {:>12} {:>14}", "metric", "mean", "of queries");
    let mut means = Vec::new();
    for (name, counted, sum) in columns {
        let mean = (counted > 0).then(|| sum / counted as f64);
        let shown = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.6}"));
        let _ = writeln!(text, "{name:<14} {shown:>12} {:>14}", shown_count(counted));
        means.push(json!({ "metric": name, "mean": mean, "queries": counted }));
    }
    let json = json!({
        "metrics": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "queries": table.rows(),
        "means": means,
    });
    Ok(Described { text, json })
}
