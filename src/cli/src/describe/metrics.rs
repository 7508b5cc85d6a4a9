//! What is in a file of metrics: the rules that they were taken by, and the mean of each over the queries
//! that have it.

use super::column::numbers;
use super::{Described, line};
use arrow::datatypes::DataType;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::TableReader;
use planetree_judge::evaluate::CONVENTION;
use planetree_metric::{Mean, Metric};
use serde_json::json;
use std::fmt::Write;

/// A column of values while they are added up.
struct Column<'a> {
    name: &'a str,
    counted: u64,
    mean: Mean,
    is_rmse: bool,
}

impl<'a> Column<'a> {
    fn new(name: &'a str) -> Self {
        let is_rmse = name == "rmse";
        // Any metric that is a plain mean over queries does for the others.
        let metric = if is_rmse { Metric::Rmse } else { Metric::Ndcg(None) };
        Column { name, counted: 0, mean: Mean::new(metric), is_rmse }
    }

    fn add(&mut self, value: f64, documents: f64) {
        self.counted += 1;
        if self.is_rmse {
            self.mean.add_weighted(value * value, documents); // it is over rows
        } else {
            self.mean.add(value);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.mean.value())
    }
}

/// Describes metrics.
pub fn describe(table: &TableReader) -> Result<Described> {
    let fields = table.schema().fields().iter();
    let floats = fields.filter(|field| matches!(field.data_type(), DataType::Float32 | DataType::Float64));
    let mut columns: Vec<Column> = floats.map(|field| Column::new(field.name())).collect();
    for batch in table.batches() {
        let batch = batch?;
        let documents = match table.schema().column_with_name("documents") {
            Some(_) => Some(numbers(table, &batch, "documents")?),
            None => None,
        };
        for column in &mut columns {
            for (row, value) in numbers(table, &batch, column.name)?.iter().enumerate() {
                let documents = documents.as_ref().map_or(1.0, |documents| documents.value(row));
                value.into_iter().for_each(|value| column.add(value, documents));
            }
        }
    }
    let mut text = String::new();
    line(&mut text, "metrics", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    let convention = table.metadata(CONVENTION);
    line(&mut text, "convention", convention.unwrap_or("-"));
    line(&mut text, "queries", shown_count(table.rows()));
    let _ = writeln!(text, "\n{:<14} {:>12} {:>14}", "metric", "mean", "of queries");
    let mut means = Vec::new();
    for column in columns {
        let (name, counted, mean) = (column.name, column.counted, column.mean());
        let shown = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.6}"));
        let _ = writeln!(text, "{name:<14} {shown:>12} {:>14}", shown_count(counted));
        means.push(json!({ "metric": name, "mean": mean, "queries": counted }));
    }
    let json = json!({
        "metrics": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "convention": convention,
        "queries": table.rows(),
        "means": means,
    });
    Ok(Described { text, json })
}
