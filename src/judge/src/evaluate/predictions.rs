//! Predictions as rows: our own tables, and Parquet files of others with the same columns.

use super::rows::RowColumns;
use crate::plan::{Batches, Open, SORT_ROWS};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use planetree_data::table::provenance::are_of_training_rows;
use planetree_data::table::{AnyParquet, GroupBatches, ParquetFile, TableKind, TableReader};
use std::sync::Arc;

/// Rows that are decoded together when nothing is sorted.
const BATCH_ROWS: usize = 1 << 15;

/// A file of predictions.
pub struct Predictions {
    file: Arc<ParquetFile>,
    columns: Columns,
    /// Whether the rows are those that the model was trained on.
    pub seen_in_training: bool,
}

/// Where the columns are among those that are read.
#[derive(Clone)]
pub struct Columns {
    /// The places in the file of those that are read, in ascending order.
    pub read: Vec<usize>,
    query: usize,
    document: Option<usize>,
    label: Option<usize>,
    score: usize,
    segment: Option<usize>,
}

impl Predictions {
    /// Opens predictions of which somebody else knows that they are whole and predictions: their bytes are not checked.
    pub fn open_checked(location: &Location, by: Option<&str>) -> Result<Self> {
        let file = TableReader::open_checked(location)?;
        let columns = Columns::find(file.schema(), location, by)?;
        Ok(Predictions { file, columns, seen_in_training: false }) // whoever opened them knows
    }

    /// Where they are.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// What tells the file apart from any other.
    pub fn identity(&self) -> Result<String> {
        self.file.identity()
    }

    /// How many rows each row group has.
    pub fn group_rows(&self) -> Vec<u64> {
        self.file.group_rows()
    }

    /// The reader of a row group.
    pub fn group_reader(&self, group: usize) -> Open {
        self.reader(vec![group], BATCH_ROWS)
    }

    /// Opens predictions, and finds the column that queries are counted under, if there is one.
    pub fn open(location: &Location, by: Option<&str>) -> Result<Self> {
        let remedy = "name predictions in Parquet, or as .csv, .tsv, .json or .ndjson; scores as text go with --scores and --data, \
             runs with --run";
        let mut seen_in_training = false;
        let file = match TableReader::open_or_foreign(location, remedy)? {
            AnyParquet::Foreign(file) => file,
            AnyParquet::Ours(table) if table.kind() == TableKind::Predictions => {
                seen_in_training = are_of_training_rows(|key| table.metadata(key));
                table.file().clone()
            }
            AnyParquet::Ours(table) => {
                return Err(Error::place(
                    location,
                    format_args!("this is {}, not predictions", table.kind().noun()),
                    "name predictions that `planetree predict` wrote, or a Parquet file with the columns \
                     query_id, label and score",
                ));
            }
        };
        let columns = Columns::find(file.schema(), location, by)?;
        Ok(Predictions { file, columns, seen_in_training })
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.file.rows()
    }

    /// A reader a row group, in their order.
    pub fn readers(&self) -> Vec<Open> {
        let reader = |group| self.reader(vec![group], BATCH_ROWS);
        (0..self.file.groups()).map(reader).collect()
    }

    /// A number of readers that share the row groups, for rows that are to be sorted.
    pub fn dealt_readers(&self, count: usize) -> Vec<Open> {
        let count = count.min(self.file.groups()).max(1);
        let groups = |reader| (reader..self.file.groups()).step_by(count).collect();
        (0..count).map(|reader| self.reader(groups(reader), SORT_ROWS)).collect()
    }

    fn reader(&self, groups: Vec<usize>, batch_rows: usize) -> Open {
        let (file, columns) = (self.file.clone(), self.columns.clone());
        Arc::new(move || {
            let (file, columns) = (file.clone(), columns.clone());
            let groups = groups.clone().into_iter();
            Ok(Box::new(Rows { file, columns, groups, current: None, batch_rows }) as Batches)
        })
    }
}

impl Columns {
    /// Finds the columns of predictions by their names.
    pub fn find(schema: &Schema, location: &Location, by: Option<&str>) -> Result<Self> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let place = |name: &str| names().position(|other| other == name);
        let needed = |name: &str| {
            place(name).ok_or_else(|| {
                let near = suggest::nearest(name, names());
                let remedy = match near.first() {
                    Some(near) => format!("call the column {near} {name}"),
                    None => "predictions have the columns query_id, label and score, and may have doc_id"
                        .to_owned(),
                };
                Error::place(location, format_args!("not predictions: there is no column {name}"), remedy)
            })
        };
        let (query, score) = (needed("query_id")?, needed("score")?);
        let (document, label) = (place("doc_id"), place("label"));
        let segment = match by {
            Some(by) => Some(place(by).ok_or_else(|| no_such_column(location, by, names()))?),
            None => None,
        };
        for (place, name) in [(Some(score), "score"), (label, "label")] {
            if let Some(place) = place
                && !is_number(schema.field(place).data_type())
            {
                let kind = schema.field(place).data_type();
                let problem = format_args!("not predictions: column {name} holds {kind}, not numbers");
                return Err(Error::place(location, problem, "write the column as numbers"));
            }
        }
        let mut read: Vec<usize> =
            [Some(query), document, label, Some(score), segment].into_iter().flatten().collect();
        read.sort_unstable();
        read.dedup();
        let among = |place: usize| read.partition_point(|other| *other < place);
        Ok(Columns {
            query: among(query),
            document: document.map(among),
            label: label.map(among),
            score: among(score),
            segment: segment.map(among),
            read,
        })
    }

    /// A batch of the columns that are read, as rows.
    pub fn rows(&self, batch: &RecordBatch, first_row: u64, location: &Location) -> Result<RecordBatch> {
        let text = |place: Option<usize>| -> Result<StringArray> {
            let Some(place) = place else { return Ok(StringArray::new_null(batch.num_rows())) };
            Ok(converted(batch, place, &DataType::Utf8, location)?.as_string::<i32>().clone())
        };
        let query_ids = text(Some(self.query))?;
        let scores = converted(batch, self.score, &DataType::Float64, location)?;
        for (name, column) in [("query_id", &query_ids as &dyn Array), ("score", &*scores)] {
            if let Some(row) = first_null(column) {
                return Err(Error::place(
                    location,
                    format_args!("row {} has no {name}", first_row + row as u64 + 1),
                    "leave the row out, or fill the gap",
                ));
            }
        }
        let labels = match self.label {
            Some(place) => converted(batch, place, &DataType::Float32, location)?,
            None => arrow::array::new_null_array(&DataType::Float32, batch.num_rows()),
        };
        RowColumns {
            query_ids,
            doc_ids: text(self.document)?,
            labels: labels.as_primitive::<Float32Type>().clone(),
            scores: scores.as_primitive::<Float64Type>().clone(),
            first_row,
            segments: self.segment.map(|place| text(Some(place))).transpose()?,
        }
        .into_batch()
    }
}

/// The error of a column that is not there.
pub fn no_such_column<'n>(
    location: &Location,
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Error {
    let all: Vec<&str> = names.clone().collect();
    let otherwise = format!("it has {}", all.join(", "));
    let near = suggest::nearest(name, names);
    Error::place(
        location,
        format_args!("there is no column {name}"),
        suggest::did_you_mean(&near, &otherwise),
    )
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || *kind == DataType::Null
}

fn first_null(column: &dyn Array) -> Option<usize> {
    (column.null_count() > 0).then(|| (0..column.len()).find(|row| column.is_null(*row))).flatten()
}

fn converted(batch: &RecordBatch, place: usize, kind: &DataType, location: &Location) -> Result<ArrayRef> {
    let column = batch.column(place);
    cast(column, kind).map_err(|error| {
        let name = batch.schema_ref().field(place).name().clone();
        Error::place(location, format_args!("column {name}: {error}"), "write the column in another type")
    })
}

/// The rows of some row groups.
struct Rows {
    file: Arc<ParquetFile>,
    columns: Columns,
    groups: std::vec::IntoIter<usize>,
    current: Option<(GroupBatches, u64)>,
    batch_rows: usize,
}

impl Rows {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((batches, first_row)) = &mut self.current
                && let Some(batch) = batches.next()
            {
                let batch = batch?;
                let rows = self.columns.rows(&batch, *first_row, self.file.location())?;
                *first_row += batch.num_rows() as u64;
                return Ok(Some(rows));
            }
            let Some(group) = self.groups.next() else { return Ok(None) };
            let batches = self.file.group_batches(group, Some(&self.columns.read), self.batch_rows)?;
            self.current = Some((batches, self.file.first_row(group)));
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
