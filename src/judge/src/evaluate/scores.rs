//! Reads scores from a text file with one score per line, in the order of the rows of a dataset. `predict --scores`,
//! LightGBM, XGBoost and RankLib write such files.

use super::lines::TextLines;
use super::predictions::no_such_column;
use super::rows::RankingColumns;
use crate::plan::{BatchIterator, OpenReader};
use arrow::array::{Array, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, GroupReader, unexpected_columns};
use std::sync::Arc;

/// Returns a reader of the rows of a dataset, with scores from a text file.
pub fn reader(scores: &Location, data: &Location, by: Option<&str>) -> OpenReader {
    let (scores, data, by) = (scores.clone(), data.clone(), by.map(str::to_owned));
    Arc::new(move || {
        let lines = TextLines::open(&scores)?;
        let dataset = DatasetReader::open(&data)?;
        let groups = dataset.groups().into_iter();
        let mut scored = ScoredRows { lines, dataset, by: by.clone(), first_row: 0 };
        let mut groups = groups.map(Some).chain([None]).fuse();
        Ok(Box::new(std::iter::from_fn(move || match groups.next()? {
            Some(id) => Some(scored.dataset.open_group(id).and_then(|group| scored.group(&group))),
            None => scored.expect_end().err().map(Err),
        })) as BatchIterator)
    })
}

struct ScoredRows {
    lines: TextLines,
    dataset: DatasetReader,
    by: Option<String>,
    first_row: u64,
}

impl ScoredRows {
    fn group(&mut self, group: &GroupReader) -> Result<RecordBatch> {
        let columns = LabelColumns::read(group, self.dataset.location(), self.by.as_deref())?;
        let mut scores = Vec::with_capacity(group.rows());
        for row in 0..group.rows() {
            scores.push(self.next_score(columns.query_ids.value(row))?);
        }
        let first_row = self.first_row;
        self.first_row += group.rows() as u64;
        RankingColumns {
            query_ids: columns.query_ids,
            doc_ids: columns.doc_ids,
            labels: columns.labels,
            scores: Float64Array::from(scores),
            first_row,
            segments: columns.segments,
        }
        .into_batch()
    }

    /// Reads the next score. If the line contains a query id, it must be equal to `query`.
    fn next_score(&mut self, query: &str) -> Result<f64> {
        if !self.lines.advance()? {
            return Err(self.count_mismatch("only "));
        }
        let line = self.lines.text();
        // RankLib writes a query, a row number and a score on each line.
        let mut words = line.split_ascii_whitespace();
        let score = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(score), None, ..) => score,
            (Some(id), Some(_), Some(score), None) if id == query => score,
            (Some(id), Some(_), Some(_), None) => {
                let (row, dataset) = (self.lines.number(), self.dataset.location());
                let problem = format!(
                    "the score is for query {id:?}, but row {row} of {dataset} is for query {query:?}"
                );
                return Err(self
                    .lines
                    .fault(problem, "use the dataset that was scored, with its rows in the same order"));
            }
            _ => line,
        };
        match fast_float2::parse::<f64, _>(score) {
            Ok(score) => Ok(score),
            Err(_) => {
                let shown: String = line.chars().take(40).collect();
                Err(self.lines.fault(
                    format_args!("invalid score {shown:?}"),
                    "write one number per line, in the order of the dataset's rows",
                ))
            }
        }
    }

    fn expect_end(&mut self) -> Result<()> {
        if self.lines.advance()? { Err(self.count_mismatch("more than ")) } else { Ok(()) }
    }

    fn count_mismatch(&self, qualifier: &str) -> Error {
        let rows = self.dataset.manifest().rows;
        // Reading stops at the first line beyond the number of rows, so the total number of lines is unknown then.
        let found = if qualifier == "only " { self.lines.number() } else { rows };
        Error::place(
            self.lines.location(),
            format_args!("{qualifier}{found} scores, but {} has {rows} rows", self.dataset.location()),
            "use the dataset that was scored",
        )
    }
}

/// The columns of a dataset that are needed for an evaluation.
pub struct LabelColumns {
    /// Query ids.
    pub query_ids: StringArray,
    /// Document ids; null if unknown.
    pub doc_ids: StringArray,
    /// Labels; null if unknown.
    pub labels: arrow::array::Float32Array,
    /// Values of the column by which queries are grouped into segments, as strings.
    pub segments: Option<StringArray>,
}

impl LabelColumns {
    /// Reads the columns of a row group. `by` is the column by which queries are grouped into segments.
    pub fn read(group: &GroupReader, location: &Location, by: Option<&str>) -> Result<Self> {
        let names = group.names();
        let columns = Self::of(&group.read(0..3)?, location)?;
        let segments = match by {
            Some(by) => {
                let place = names.iter().position(|name| *name == by);
                let place = place.ok_or_else(|| no_such_column(location, by, names.iter().copied()))?;
                let column = group.read(place..place + 1)?;
                let column =
                    cast(column.column(0), &DataType::Utf8).map_err(|_| unexpected_columns(location))?;
                Some(column.as_string::<i32>().clone())
            }
            None => None,
        };
        Ok(LabelColumns { segments, ..columns })
    }

    /// Takes query ids, document ids and labels from a batch. Every dataset begins with these three columns.
    pub fn of(batch: &RecordBatch, location: &Location) -> Result<Self> {
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>().cloned();
        let labels = || batch.column_by_name("label")?.as_primitive_opt::<Float32Type>().cloned();
        match (text("query_id"), text("doc_id"), labels()) {
            (Some(query_ids), Some(doc_ids), Some(labels)) => {
                Ok(LabelColumns { query_ids, doc_ids, labels, segments: None })
            }
            _ => Err(unexpected_columns(location)),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.query_ids.len()
    }
}
