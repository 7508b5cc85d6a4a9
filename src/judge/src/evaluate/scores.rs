//! Scores in a text file, one a line, for the rows of a dataset in their order: what `predict --scores`,
//! LightGBM, XGBoost and RankLib write.

use super::lines::Lines;
use super::predictions::no_such_column;
use super::rows::RowColumns;
use crate::plan::{Batches, Open};
use arrow::array::{Array, AsArray, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, GroupReader};
use std::sync::Arc;

/// The rows of a dataset with scores from a file.
pub fn reader(scores: &Location, data: &Location, by: Option<&str>) -> Open {
    let (scores, data, by) = (scores.clone(), data.clone(), by.map(str::to_owned));
    Arc::new(move || {
        let lines = Lines::open(&scores)?;
        let dataset = DatasetReader::open(&data)?;
        let groups = dataset.groups().into_iter();
        let mut scored = Scored { lines, dataset, by: by.clone(), first_row: 0 };
        let mut groups = groups.map(Some).chain([None]).fuse();
        Ok(Box::new(std::iter::from_fn(move || match groups.next()? {
            Some(id) => Some(scored.dataset.open_group(id).and_then(|group| scored.group(&group))),
            None => scored.expect_end().err().map(Err),
        })) as Batches)
    })
}

struct Scored {
    lines: Lines,
    dataset: DatasetReader,
    by: Option<String>,
    first_row: u64,
}

impl Scored {
    fn group(&mut self, group: &GroupReader) -> Result<RecordBatch> {
        let columns = DatasetColumns::read(group, self.dataset.location(), self.by.as_deref())?;
        let mut scores = Vec::with_capacity(group.rows());
        for row in 0..group.rows() {
            scores.push(self.next_score(columns.query_ids.value(row))?);
        }
        let first_row = self.first_row;
        self.first_row += group.rows() as u64;
        RowColumns {
            query_ids: columns.query_ids,
            doc_ids: columns.doc_ids,
            labels: columns.labels,
            scores: Float64Array::from(scores),
            first_row,
            segments: columns.segments,
        }
        .into_batch()
    }

    /// The next score, which must be of a row of this query.
    fn next_score(&mut self, query: &str) -> Result<f64> {
        if !self.lines.advance()? {
            return Err(self.miscounted("only "));
        }
        let line = self.lines.text();
        // RankLib writes query, place and score.
        let mut words = line.split_ascii_whitespace();
        let score = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(score), None, ..) => score,
            (Some(id), Some(_), Some(score), None) if id == query => score,
            (Some(id), Some(_), Some(_), None) => {
                let problem = format!("this score is of query {id:?}, but row {} of ", self.lines.number());
                let problem = format!("{problem}{} is of query {query:?}", self.dataset.location());
                let remedy = "name the dataset that the scores were made for, in the order of its rows";
                return Err(self.lines.fault(format_args!("{problem}"), remedy));
            }
            _ => line,
        };
        match fast_float2::parse::<f64, _>(score) {
            Ok(score) => Ok(score),
            Err(_) => {
                let shown: String = line.chars().take(40).collect();
                Err(self.lines.fault(
                    format_args!("{shown:?} is no score"),
                    "write one number a line, in the order of the dataset's rows",
                ))
            }
        }
    }

    fn expect_end(&mut self) -> Result<()> {
        if self.lines.advance()? { Err(self.miscounted("more than ")) } else { Ok(()) }
    }

    fn miscounted(&self, only: &str) -> Error {
        let rows = self.dataset.manifest().rows;
        // There are at least as many lines as were read; of more, nobody has counted how many.
        let found = if only == "only " { self.lines.number() } else { rows };
        Error::place(
            self.lines.location(),
            format_args!("it has {only}{found} scores, but {} has {rows} rows", self.dataset.location()),
            "name the dataset that the scores were made for",
        )
    }
}

/// The columns of a dataset's row group that an evaluation looks at.
pub struct DatasetColumns {
    /// Which query.
    pub query_ids: StringArray,
    /// Which document, where that is known.
    pub doc_ids: StringArray,
    /// The label, where there is one.
    pub labels: arrow::array::Float32Array,
    /// A column as text.
    pub segments: Option<StringArray>,
}

impl DatasetColumns {
    /// Reads them, and a column by its name.
    pub fn read(group: &GroupReader, location: &Location, by: Option<&str>) -> Result<Self> {
        let names = group.names();
        let columns = Self::of(&group.read(0..3)?, location)?;
        let segments = match by {
            Some(by) => {
                let place = names.iter().position(|name| *name == by);
                let place = place.ok_or_else(|| no_such_column(location, by, names.iter().copied()))?;
                let column = group.read(place..place + 1)?;
                let column = cast(column.column(0), &DataType::Utf8).map_err(|_| odd(location))?;
                Some(column.as_string::<i32>().clone())
            }
            None => None,
        };
        Ok(DatasetColumns { segments, ..columns })
    }

    /// The first three columns of a dataset, which are always the same.
    pub fn of(batch: &RecordBatch, location: &Location) -> Result<Self> {
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>().cloned();
        let labels = || batch.column_by_name("label")?.as_primitive_opt::<Float32Type>().cloned();
        match (text("query_id"), text("doc_id"), labels()) {
            (Some(query_ids), Some(doc_ids), Some(labels)) => {
                Ok(DatasetColumns { query_ids, doc_ids, labels, segments: None })
            }
            _ => Err(odd(location)),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.query_ids.len()
    }
}

fn odd(location: &Location) -> Error {
    Error::place(location, "its columns are not those of a dataset", "convert the data again")
}
