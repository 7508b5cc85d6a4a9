//! The training log, which has one value for each round, metric and split of the data (the training data or a
//! validation set).

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
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
    /// The stage of the training plan, from 1.
    #[serde(default = "first_stage", skip_serializing_if = "is_first_stage")]
    pub stage: u32,
    /// The number of rounds of the stage that the scores include. 0 means the start model or the earlier stages alone.
    pub round: u32,
    /// The split of the data, which is `train` or the name of a validation set.
    pub split: String,
    /// Name of the metric.
    pub metric: String,
    /// The value of the metric, or NaN if no query counts.
    #[serde(deserialize_with = "number_or_none")]
    pub value: f64,
    /// Seconds since the first round began.
    pub seconds: f64,
}

/// A value to be logged.
#[derive(Debug, Clone, PartialEq)]
pub struct LogValue {
    /// The split of the data; see [`LogEntry::split`].
    pub split: String,
    /// The metric.
    pub metric: Metric,
    /// The value of the metric.
    pub value: f64,
}

impl LogValue {
    /// Converts the metrics of a split of the data to values of the log.
    pub fn of_means(split: &str, means: &[Mean]) -> impl Iterator<Item = LogValue> {
        means.iter().map(move |mean| LogValue {
            split: split.to_owned(),
            metric: mean.metric(),
            value: mean.value(),
        })
    }
}

/// The best round according to the metric that early stopping uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BestRound {
    /// The number of the round within its stage, starting at 1. 0 means the start model or the earlier stages alone.
    pub round: u32,
    /// The value of the metric in that round.
    pub value: f64,
}

impl BestRound {
    /// Finds the best round of the log. If several are equally good, the first one is returned.
    pub fn of(log: &[LogEntry], split: &str, metric: &Metric) -> Option<BestRound> {
        let name = metric.to_string();
        // The value is NaN if no query counts.
        let entries =
            log.iter().filter(|entry| entry.split == split && entry.metric == name && !entry.value.is_nan());
        entries.fold(None, |best: Option<BestRound>, entry| match best {
            Some(best) if !metric.is_better(entry.value, best.value) => Some(best),
            _ => Some(BestRound { round: entry.round, value: entry.value }),
        })
    }
}

/// Returns warnings about metrics whose values in the log are all NaN, because they are undefined for a split.
pub(super) fn undefined_metrics(log: &[LogEntry]) -> Vec<String> {
    let same = |one: &LogEntry, other: &LogEntry| one.split == other.split && one.metric == other.metric;
    let mut warnings = Vec::new();
    for (place, entry) in log.iter().enumerate() {
        let is_first = !log[..place].iter().any(|earlier| same(earlier, entry));
        if !entry.value.is_nan()
            || !is_first
            || log.iter().any(|other| same(other, entry) && !other.value.is_nan())
        {
            continue;
        }
        let why = entry.metric.parse::<Metric>().map_or("it is undefined", |metric| metric.why_undefined());
        warnings.push(format!("{} of {} is NaN in the log: {why}", entry.metric, entry.split));
    }
    warnings
}

fn first_stage() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_stage(stage: &u32) -> bool {
    *stage == 1
}

/// Reads a number. `null` becomes NaN, which JSON cannot represent.
fn number_or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Writes the log as a table. All its metrics must follow the given convention. The table has a column `stage` if there
/// are several stages.
pub fn write_rounds(log: &[LogEntry], convention: &Convention, location: &Location) -> Result<()> {
    let has_stages = log.iter().any(|entry| entry.stage > 1);
    let stages =
        || -> ArrayRef { Arc::new(Int32Array::from_iter_values(log.iter().map(|entry| entry.stage as i32))) };
    let mut fields = vec![
        Field::new("round", DataType::Int32, false),
        Field::new("split", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, false),
        Field::new("value", DataType::Float64, false),
        Field::new("seconds", DataType::Float64, false),
    ];
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(log.iter().map(|entry| entry.round as i32))),
        Arc::new(StringArray::from_iter_values(log.iter().map(|entry| entry.split.as_str()))),
        Arc::new(StringArray::from_iter_values(log.iter().map(|entry| entry.metric.as_str()))),
        Arc::new(Float64Array::from_iter_values(log.iter().map(|entry| entry.value))),
        Arc::new(Float64Array::from_iter_values(log.iter().map(|entry| entry.seconds))),
    ];
    if has_stages {
        fields.insert(0, Field::new("stage", DataType::Int32, false));
        columns.insert(0, stages());
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns);
    let mut table = TableWriter::create(location, TableKind::Rounds, schema)?;
    table.set_metadata(Convention::KEY, convention.to_string());
    table.write(&batch.expect("the columns are those of the schema"))?;
    table.finish()
}
