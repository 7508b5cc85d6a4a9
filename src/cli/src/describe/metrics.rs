//! Describes a table of metrics: its metric convention, and the mean of each metric over the queries that have a
//! value.

use super::{TableDescription, heading, line};
use arrow::datatypes::DataType;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::LabelMap;
use planetree_data::table::{TableReader, float_column};
use planetree_judge::evaluate::{CONVENTION, POOLED};
use planetree_metric::{Mean, Metric};
use serde_json::json;
use std::fmt::Write;

/// Mean of one metric over the queries that have a value.
struct MetricMean<'a> {
    name: &'a str,
    counted: u64,
    mean: Mean,
    is_rmse: bool,
}

impl<'a> MetricMean<'a> {
    fn new(name: &'a str) -> Self {
        let is_rmse = name == "rmse";
        // All other metrics are plain means over queries, like NDCG.
        let metric = if is_rmse { Metric::Rmse } else { Metric::Ndcg(None) };
        MetricMean { name, counted: 0, mean: Mean::new(metric), is_rmse }
    }

    fn add(&mut self, value: f64, documents: f64) {
        self.counted += 1;
        if self.is_rmse {
            self.mean.add_weighted(value * value, documents); // RMSE is a mean over rows
        } else {
            self.mean.add(value);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.mean.value())
    }
}

/// Describes a table of metrics.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let fields = table.schema().fields().iter();
    let floats = fields.filter(|field| matches!(field.data_type(), DataType::Float32 | DataType::Float64));
    let mut columns: Vec<MetricMean> = floats.map(|field| MetricMean::new(field.name())).collect();
    for batch in table.batches() {
        let batch = batch?;
        let documents = match table.schema().column_with_name("documents") {
            Some(_) => Some(float_column(table, &batch, "documents")?),
            None => None,
        };
        for column in &mut columns {
            for (row, value) in float_column(table, &batch, column.name)?.iter().enumerate() {
                let documents = documents.as_ref().map_or(1.0, |documents| documents.value(row));
                value.into_iter().for_each(|value| column.add(value, documents));
            }
        }
    }
    let mut text = heading("metrics", table);
    let convention = table.metadata(CONVENTION);
    line(&mut text, "convention", convention.unwrap_or("-"));
    let label_map = table.metadata(LabelMap::KEY);
    if let Some(map) = label_map {
        line(&mut text, "label map", map);
    }
    line(&mut text, "queries", shown_count(table.rows()));
    let _ = writeln!(text, "\n{:<14} {:>12} {:>14}", "metric", "mean", "queries");
    let mut means = Vec::new();
    for column in columns {
        let (name, counted, mean) = (column.name, column.counted, column.mean());
        let shown = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.6}"));
        let _ = writeln!(text, "{name:<14} {shown:>12} {:>14}", shown_count(counted));
        means.push(json!({ "metric": name, "mean": mean, "queries": counted }));
    }
    let pooled: serde_json::Value =
        table.metadata(POOLED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for (system, values) in pooled.as_object().into_iter().flatten() {
        let of = if system.is_empty() { String::new() } else { format!("{system}: ") };
        for (name, value) in values.as_object().into_iter().flatten() {
            let shown = value.as_f64().map_or_else(|| "undefined".to_owned(), |value| format!("{value:.6}"));
            let _ = writeln!(text, "{:<14} {shown:>12} {:>14}", format!("{of}{name}"), "all documents");
        }
    }
    let json = json!({
        "metrics": table.location().to_string(),
        "convention": convention,
        "label_map": label_map,
        "queries": table.rows(),
        "means": means,
        "pooled": pooled,
    });
    Ok(TableDescription::new(table, text, json))
}
