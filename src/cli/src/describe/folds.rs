//! What is in the folds of a cross-validation: mean and deviation of every metric over them.

use super::column::{numbers, texts};
use super::{Described, line};
use planetree_base::error::Result;
use planetree_data::table::TableReader;
use planetree_metric::Convention;
use planetree_run::cv::Spread;
use serde_json::json;
use std::fmt::Write;

/// One metric of one split, fold after fold.
struct Column {
    split: String,
    metric: String,
    values: Vec<f64>,
}

/// Describes folds.
pub fn describe(table: &TableReader) -> Result<Described> {
    let mut columns: Vec<Column> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let values = numbers(table, &batch, "value")?;
        let (splits, metrics) = (texts(table, &batch, "split")?, texts(table, &batch, "metric")?);
        for row in 0..batch.num_rows() {
            let (split, metric, value) = (splits.value(row), metrics.value(row), values.value(row));
            match columns.iter_mut().find(|column| column.split == split && column.metric == metric) {
                Some(column) => column.values.push(value),
                None => columns.push(Column {
                    split: split.to_owned(),
                    metric: metric.to_owned(),
                    values: vec![value],
                }),
            }
        }
    }
    let folds = columns.iter().map(|column| column.values.len()).max().unwrap_or(0);
    let mut text = String::new();
    line(&mut text, "cross-validation", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "convention", table.metadata(Convention::KEY).unwrap_or("-"));
    line(&mut text, "folds", folds);
    let _ = writeln!(text, "\n{:<12} {:<12} {:>12} {:>12}", "split", "metric", "mean", "deviation");
    let mut metrics = Vec::new();
    for Column { split, metric, values } in &columns {
        let Spread { mean, deviation } = Spread::of(values);
        let _ = writeln!(text, "{split:<12} {metric:<12} {mean:>12.6} {deviation:>12.6}");
        metrics.push(json!({
            "split": split, "metric": metric, "mean": mean, "deviation": deviation, "values": values,
        }));
    }
    let json = json!({
        "cross_validation": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "convention": table.metadata(Convention::KEY),
        "folds": folds,
        "metrics": metrics,
    });
    Ok(Described { text, json })
}
