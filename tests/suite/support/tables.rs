//! Reading the tables that the program writes.

use super::program::run;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;
use std::sync::Arc;

/// All rows of a Parquet file, without its metadata.
pub fn table_of(file: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(file).unwrap()).unwrap();
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let batches: Vec<RecordBatch> = reader.build().unwrap().collect::<Result<_, _>>().unwrap();
    arrow::compute::concat_batches(&schema, &batches).unwrap()
}

/// Number of trees of a model file.
pub fn trees_in(model: &Path) -> usize {
    let table = table_of(model);
    let trees = table.column_by_name("tree").unwrap().as_primitive::<Int32Type>();
    trees.value(trees.len() - 1) as usize + 1
}

/// What `describe --json` prints.
pub fn described(directory: &Path, what: &str) -> serde_json::Value {
    let printed = run(directory, &format!("describe {what} --json")).ok().stdout;
    serde_json::from_str(&printed).unwrap()
}

/// A row of the training log, without its time.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundMetric {
    pub round: i32,
    pub split: String,
    pub metric: String,
    pub value: f64,
}

/// The training log, without times.
pub fn rounds_of(file: &Path) -> Vec<RoundMetric> {
    let table = table_of(file);
    let text =
        |name: &str, row: usize| table.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned();
    let rounds = table.column_by_name("round").unwrap().as_primitive::<Int32Type>();
    let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>();
    let row = |row: usize| RoundMetric {
        round: rounds.value(row),
        split: text("split", row),
        metric: text("metric", row),
        value: values.value(row),
    };
    (0..table.num_rows()).map(row).collect()
}

/// The values of a metric on a split, one per round: from round 1, or from round 0 if the training has a start model.
pub fn course(log: &[RoundMetric], split: &str, metric: &str) -> Vec<f64> {
    let rows: Vec<&RoundMetric> =
        log.iter().filter(|row| row.split == split && row.metric == metric).collect();
    let first = rows.first().map_or(1, |row| row.round as usize);
    assert!(first <= 1, "{split} {metric} starts at round {first}");
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(row.round as usize, first + place, "{split} {metric}");
    }
    rows.iter().map(|row| row.value).collect()
}

/// A row of a predictions file.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredRow {
    pub query: String,
    pub label: f32,
    pub score: f64,
}

/// The rows of a predictions file.
pub fn predictions_of(file: &Path) -> Vec<ScoredRow> {
    let table = table_of(file);
    let queries = table.column_by_name("query_id").unwrap().as_string::<i32>();
    let labels = table.column_by_name("label").unwrap().as_primitive::<Float32Type>();
    let scores = table.column_by_name("score").unwrap().as_primitive::<Float64Type>();
    assert_eq!(labels.null_count(), 0);
    (0..table.num_rows())
        .map(|row| ScoredRow {
            query: queries.value(row).to_owned(),
            label: labels.value(row),
            score: scores.value(row),
        })
        .collect()
}

/// Scores a dataset with a model and reads the scores.
pub fn predict(directory: &Path, model: &str, dataset: &str) -> Vec<ScoredRow> {
    let output = format!("{model}-of-{dataset}");
    run(directory, &format!("--quiet predict --model {model} --data {dataset} --output {output}")).ok();
    predictions_of(&directory.join(output))
}
