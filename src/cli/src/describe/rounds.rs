//! Describes a training log: best and last value of each metric.

use super::{TableDescription, heading, line, metadata_line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, split_column, string_column};
use planetree_metric::Convention;
use serde_json::json;
use std::fmt::Write;

/// One metric of one split, with its best and last round.
struct MetricHistory {
    split: String,
    metric: String,
    best: (u64, f64),
    last: (u64, f64),
}

impl MetricHistory {
    fn add(&mut self, round: u64, value: f64) {
        let is_better = if lower_is_better(&self.metric) { value < self.best.1 } else { value > self.best.1 };
        if is_better || self.best.1.is_nan() {
            self.best = (round, value);
        }
        self.last = (round, value);
    }
}

/// Returns whether lower values are better, as for errors and losses. Higher values are better for ranking metrics.
fn lower_is_better(metric: &str) -> bool {
    let name = metric.split('@').next().unwrap_or_default();
    matches!(name, "rmse" | "mse" | "mae") || name.contains("loss")
}

/// Describes a training log.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut histories: Vec<MetricHistory> = Vec::new();
    let mut rounds = 0;
    for batch in table.batches() {
        let batch = batch?;
        let (round, value) = (float_column(table, &batch, "round")?, float_column(table, &batch, "value")?);
        let (split, metric) = (split_column(table, &batch)?, string_column(table, &batch, "metric")?);
        for row in 0..batch.num_rows() {
            let (round, value) = (round.value(row) as u64, value.value(row));
            rounds = rounds.max(round);
            let known = histories
                .iter_mut()
                .find(|history| history.split == split.value(row) && history.metric == metric.value(row));
            match known {
                Some(history) => history.add(round, value),
                None => histories.push(MetricHistory {
                    split: split.value(row).to_owned(),
                    metric: metric.value(row).to_owned(),
                    best: (round, value),
                    last: (round, value),
                }),
            }
        }
    }
    let mut text = heading("training log", table);
    metadata_line(&mut text, "convention", table, Convention::KEY);
    line(&mut text, "last round", shown_count(rounds));
    if !histories.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<12} {:<12} {:>10} {:>12} {:>10} {:>12}",
            "split", "metric", "best round", "value", "last round", "value"
        );
    }
    for MetricHistory { split, metric, best, last } in &histories {
        let _ = writeln!(
            text,
            "{split:<12} {metric:<12} {:>10} {:>12.6} {:>10} {:>12.6}",
            best.0, best.1, last.0, last.1
        );
    }
    let metrics: Vec<_> = histories
        .iter()
        .map(|MetricHistory { split, metric, best, last }| {
            json!({
                "split": split,
                "metric": metric,
                "best": { "round": best.0, "value": best.1 },
                "last": { "round": last.0, "value": last.1 },
            })
        })
        .collect();
    let json = json!({
        "rounds": table.location().to_string(),
        "last_round": rounds,
        "metrics": metrics,
    });
    Ok(TableDescription::with_convention(table, text, json))
}
