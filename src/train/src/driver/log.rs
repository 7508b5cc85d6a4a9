//! The training log: one value per round, split and metric.

use arrow::array::{Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Mean, Metric};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One value of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The number of trees in the scores besides those of the start model; 0 for the start model alone.
    pub round: u32,
    /// `train`, or the name of a validation set.
    pub split: String,
    /// Name of the metric.
    pub metric: String,
    /// Its value; NaN if no query counts.
    #[serde(deserialize_with = "number_or_none")]
    pub value: f64,
    /// Seconds since the first round began.
    pub seconds: f64,
}

/// A value to be logged.
#[derive(Debug, Clone, PartialEq)]
pub struct LogValue {
    /// See [`LogEntry::split`].
    pub split: String,
    /// The metric.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
}

impl LogValue {
    /// The values of a split.
    pub fn of_means(split: &str, means: &[Mean]) -> impl Iterator<Item = LogValue> {
        means.iter().map(move |mean| LogValue {
            split: split.to_owned(),
            metric: mean.metric(),
            value: mean.value(),
        })
    }
}

/// The best round by the metric that drives early stopping.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BestRound {
    /// Counted from 1; 0 for the start model alone.
    pub round: u32,
    /// Its value.
    pub value: f64,
}

impl BestRound {
    /// The best round of the log, the first of equals.
    pub fn of(log: &[LogEntry], split: &str, metric: &Metric) -> Option<BestRound> {
        let name = metric.to_string();
        // NaN: no query counts.
        let entries =
            log.iter().filter(|entry| entry.split == split && entry.metric == name && !entry.value.is_nan());
        entries.fold(None, |best: Option<BestRound>, entry| match best {
            Some(best) if !metric.is_better(entry.value, best.value) => Some(best),
            _ => Some(BestRound { round: entry.round, value: entry.value }),
        })
    }
}

/// JSON represents NaN as `null`.
fn number_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Writes the log as a table; the convention is that of all its metrics.
pub fn write_rounds(log: &[LogEntry], convention: &Convention, location: &Location) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("round", DataType::Int32, false),
        Field::new("split", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, false),
        Field::new("value", DataType::Float64, false),
        Field::new("seconds", DataType::Float64, false),
    ]));
    let batch = RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(Int32Array::from_iter_values(log.iter().map(|entry| entry.round as i32))),
            Arc::new(StringArray::from_iter_values(log.iter().map(|entry| entry.split.as_str()))),
            Arc::new(StringArray::from_iter_values(log.iter().map(|entry| entry.metric.as_str()))),
            Arc::new(Float64Array::from_iter_values(log.iter().map(|entry| entry.value))),
            Arc::new(Float64Array::from_iter_values(log.iter().map(|entry| entry.seconds))),
        ],
    );
    let mut table = TableWriter::create(location, TableKind::Rounds, schema)?;
    table.set_metadata(Convention::KEY, convention.to_string());
    table.write(&batch.expect("the columns are those of the schema"))?;
    table.finish()
}
