//! Describes a training log: best and last value of each metric.

use super::{TableDescription, heading, line, metadata_line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, split_column, string_column};
use planetree_metric::Convention;
use serde_json::{Value, json};
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

/// The metrics of a training log, each with its best and last round.
#[derive(Default)]
pub(crate) struct MetricHistories {
    all: Vec<MetricHistory>,
}

impl MetricHistories {
    /// Adds a value of a metric on a split.
    pub(crate) fn add(&mut self, split: &str, metric: &str, round: u64, value: f64) {
        let known = self.all.iter_mut().find(|history| history.split == split && history.metric == metric);
        match known {
            Some(history) => history.add(round, value),
            None => self.all.push(MetricHistory {
                split: split.to_owned(),
                metric: metric.to_owned(),
                best: (round, value),
                last: (round, value),
            }),
        }
    }

    /// Returns an object for each metric of each split.
    pub(crate) fn json(&self) -> Vec<Value> {
        let of_history = |MetricHistory { split, metric, best, last }: &MetricHistory| {
            json!({
                "split": split,
                "metric": metric,
                "best": { "round": best.0, "value": best.1 },
                "last": { "round": last.0, "value": last.1 },
            })
        };
        self.all.iter().map(of_history).collect()
    }
}

/// Returns whether lower values are better, as for errors and losses. Higher values are better for ranking metrics.
fn lower_is_better(metric: &str) -> bool {
    let name = metric.split('@').next().unwrap_or_default();
    matches!(name, "rmse" | "mse" | "mae") || name.contains("loss")
}

/// Describes a training log.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut histories = MetricHistories::default();
    let mut rounds = 0;
    for batch in table.batches() {
        let batch = batch?;
        let (round, value) = (float_column(table, &batch, "round")?, float_column(table, &batch, "value")?);
        let (split, metric) = (split_column(table, &batch)?, string_column(table, &batch, "metric")?);
        for row in 0..batch.num_rows() {
            let (round, value) = (round.value(row) as u64, value.value(row));
            rounds = rounds.max(round);
            histories.add(split.value(row), metric.value(row), round, value);
        }
    }
    let mut text = heading("training log", table);
    metadata_line(&mut text, "convention", table, Convention::KEY);
    line(&mut text, "last round", shown_count(rounds));
    if !histories.all.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<12} {:<12} {:>10} {:>12} {:>10} {:>12}",
            "split", "metric", "best round", "value", "last round", "value"
        );
    }
    for MetricHistory { split, metric, best, last } in &histories.all {
        let _ = writeln!(
            text,
            "{split:<12} {metric:<12} {:>10} {:>12.6} {:>10} {:>12.6}",
            best.0, best.1, last.0, last.1
        );
    }
    let json = json!({
        "rounds": table.location().to_string(),
        "last_round": rounds,
        "metrics": histories.json(),
    });
    Ok(TableDescription::with_convention(table, text, json))
}
