//! Rankings that need no model: a feature of a dataset as the score, and random orders.

use super::predictions::no_such_column;
use super::rows::RankingColumns;
use super::scores::LabelColumns;
use crate::plan::{BatchIterator, OpenReader};
use arrow::array::{Array, AsArray, Float32Array, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_base::random::Stream;
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, GroupId, GroupReader, unexpected_columns};
use planetree_metric::Metric;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A ranking of a dataset that needs no model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// A feature is the score. With a minus sign before the name, documents with small values come first. Documents
    /// without a value come last.
    Feature(String),
    /// Random scores, which depend on the seed and on the query id only.
    Random {
        /// The seed.
        seed: u64,
    },
    /// The expectation over all orders of the documents of a query.
    Expectation,
}

impl fmt::Display for Baseline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Baseline::Feature(name) => formatter.write_str(name),
            Baseline::Random { .. } => formatter.write_str("random"),
            Baseline::Expectation => formatter.write_str("random-expected"),
        }
    }
}

/// How the rows of a dataset are scored.
#[derive(Clone)]
enum RowScores {
    /// A column of the dataset times a sign. `requires_values` means that missing values are an error.
    Column { name: String, sign: f64, requires_values: bool },
    /// Random numbers.
    Draws { seed: u64 },
    /// All scores are equal.
    Equal,
}

/// Returns a reader for each row group of a dataset, and the number of rows.
pub fn readers(
    data: &Location,
    baseline: &Baseline,
    metrics: &[Metric],
    by: Option<&str>,
) -> Result<(Vec<OpenReader>, u64)> {
    let dataset = Arc::new(DatasetReader::open(data)?);
    let scores = match baseline {
        Baseline::Feature(name) => column(&dataset, name, metrics)?,
        Baseline::Random { seed } => RowScores::Draws { seed: *seed },
        Baseline::Expectation => RowScores::Equal,
    };
    let reader = |id: GroupId| -> OpenReader {
        let (dataset, scores, by) = (dataset.clone(), scores.clone(), by.map(str::to_owned));
        Arc::new(move || {
            let (dataset, scores, by) = (dataset.clone(), scores.clone(), by.clone());
            let batch = move || scored(&dataset, id, &scores, by.as_deref());
            Ok(Box::new(std::iter::once_with(batch)) as BatchIterator)
        })
    };
    Ok((dataset.groups().into_iter().map(reader).collect(), dataset.manifest().rows))
}

/// Finds the column of a feature, which may have a minus sign before its name.
fn column(dataset: &DatasetReader, text: &str, metrics: &[Metric]) -> Result<RowScores> {
    let (location, manifest) = (dataset.location(), dataset.manifest());
    let names = || manifest.features.iter().map(String::as_str);
    let (name, sign) = match text.strip_prefix('-') {
        Some(rest) if !names().any(|name| name == text) => (rest, -1.0),
        _ => (text, 1.0),
    };
    if !names().any(|other| other == name) {
        return Err(no_such_column(location, name, names()));
    }
    if manifest.categories.iter().any(|column| column.feature == name) {
        return Err(Error::place(
            location,
            format_args!("feature {name} is categorical: it has no order"),
            "choose a numeric feature",
        ));
    }
    let requires_values = metrics.contains(&Metric::Rmse);
    Ok(RowScores::Column { name: name.to_owned(), sign, requires_values })
}

/// Reads a row group and scores its rows.
fn scored(dataset: &DatasetReader, id: GroupId, scores: &RowScores, by: Option<&str>) -> Result<RecordBatch> {
    let (group, location) = (dataset.open_group(id)?, dataset.location());
    let columns = LabelColumns::read(&group, location, by)?;
    let scores = match scores {
        RowScores::Column { name, sign, requires_values } => {
            let values = values(&group, name, location)?;
            if let (true, Some(row)) = (requires_values, first_missing(&values)) {
                return Err(Error::place(
                    location,
                    format_args!(
                        "row {} has no value of {name}: rmse needs one",
                        group.first_row() + row + 1
                    ),
                    "leave rmse out of --metrics",
                ));
            }
            let score = |value: Option<f32>| match value {
                Some(value) if value.is_finite() => sign * f64::from(value),
                _ => f64::NEG_INFINITY,
            };
            values.iter().map(|value| Some(score(value))).collect()
        }
        RowScores::Draws { seed } => draws(*seed, &columns.query_ids),
        RowScores::Equal => Float64Array::from(vec![0.0; group.rows()]),
    };
    RankingColumns {
        query_ids: columns.query_ids,
        doc_ids: columns.doc_ids,
        labels: columns.labels,
        scores,
        first_row: group.first_row(),
        segments: columns.segments,
    }
    .into_batch()
}

fn values(group: &GroupReader, name: &str, location: &Location) -> Result<Float32Array> {
    let place = group.names().iter().position(|other| *other == name);
    let place = place.ok_or_else(|| unexpected_columns(location))?;
    let batch = group.read(place..place + 1)?;
    batch.column(0).as_primitive_opt::<Float32Type>().cloned().ok_or_else(|| unexpected_columns(location))
}

fn first_missing(values: &Float32Array) -> Option<u64> {
    values.iter().position(|value| value.is_none_or(|value| !value.is_finite())).map(|row| row as u64)
}

/// Draws a score for every row. The rows of a query are contiguous, and a row group has whole queries.
fn draws(seed: u64, query_ids: &StringArray) -> Float64Array {
    let mut scores = Vec::with_capacity(query_ids.len());
    let mut stream = Stream::new(&[]);
    for row in 0..query_ids.len() {
        let query = query_ids.value(row);
        if row == 0 || query_ids.value(row - 1) != query {
            stream = Stream::new(&[seed, xxh3_64(query.as_bytes())]);
        }
        scores.push(stream.uniform());
    }
    Float64Array::from(scores)
}
