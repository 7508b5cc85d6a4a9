//! Describes the folds of a cross-validation: mean and standard deviation of each metric.

use super::{TableDescription, heading, line, metadata_line};
use planetree_base::error::Result;
use planetree_data::table::{TableReader, float_column, string_column};
use planetree_metric::Convention;
use planetree_run::cv::Spread;
use serde_json::json;
use std::fmt::Write;

/// Values of one metric on one split, in the order of the folds.
struct SplitValues {
    split: String,
    metric: String,
    values: Vec<f64>,
}

/// Describes a table of folds.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut columns: Vec<SplitValues> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let values = float_column(table, &batch, "value")?;
        let (splits, metrics) =
            (string_column(table, &batch, "split")?, string_column(table, &batch, "metric")?);
        for row in 0..batch.num_rows() {
            let (split, metric, value) = (splits.value(row), metrics.value(row), values.value(row));
            match columns.iter_mut().find(|column| column.split == split && column.metric == metric) {
                Some(column) => column.values.push(value),
                None => columns.push(SplitValues {
                    split: split.to_owned(),
                    metric: metric.to_owned(),
                    values: vec![value],
                }),
            }
        }
    }
    let folds = columns.iter().map(|column| column.values.len()).max().unwrap_or(0);
    let mut text = heading("cross-validation", table);
    metadata_line(&mut text, "convention", table, Convention::KEY);
    line(&mut text, "folds", folds);
    let _ = writeln!(text, "\n{:<12} {:<12} {:>12} {:>12}", "split", "metric", "mean", "deviation");
    let mut metrics = Vec::new();
    for SplitValues { split, metric, values } in &columns {
        let Spread { mean, deviation } = Spread::of(values);
        let _ = writeln!(text, "{split:<12} {metric:<12} {mean:>12.6} {deviation:>12.6}");
        metrics.push(json!({
            "split": split, "metric": metric, "mean": mean, "deviation": deviation, "values": values,
        }));
    }
    let json = json!({
        "cross_validation": table.location().to_string(),
        "folds": folds,
        "metrics": metrics,
    });
    Ok(TableDescription::with_convention(table, text, json))
}
