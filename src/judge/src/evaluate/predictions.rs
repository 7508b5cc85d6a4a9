//! Reads predictions from Parquet files: planetree's own tables, and other files with the same columns.

use super::rows::RankingColumns;
use super::unreadable::{READABLE, with_remedy};
use crate::plan::{BATCH_ROWS, BatchIterator, OpenReader, SORT_ROWS};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use planetree_data::table::provenance::{DATASET, TRAINED_ON, are_of_training_rows};
use planetree_data::table::{AnyParquet, GroupBatches, ParquetFile, TableKind, TableReader};
use std::sync::Arc;

/// A file of predictions.
pub struct Predictions {
    file: Arc<ParquetFile>,
    columns: PredictionColumns,
    /// Whether the model was trained on the rows of these predictions.
    pub seen_in_training: bool,
    /// Fingerprints of the predicted datasets and of the training datasets, separated by commas, as the file records
    /// them.
    pub fingerprints: [Option<String>; 2],
}

/// The columns to read from the file, and the position of each needed column among them.
#[derive(Clone)]
pub struct PredictionColumns {
    /// Indices in the file of the columns to read, in ascending order.
    pub read: Vec<usize>,
    query: usize,
    document: Option<usize>,
    label: Option<usize>,
    score: usize,
    segment: Option<usize>,
}

impl Predictions {
    /// Opens predictions without checking the kind and the checksum of the file, because another process has already
    /// verified them.
    pub fn open_checked(location: &Location, by: Option<&str>) -> Result<Self> {
        let file = TableReader::open_checked(location)?;
        let columns = PredictionColumns::find(file.schema(), location, by)?;
        // Only the verifying process knows the origin.
        Ok(Predictions { file, columns, seen_in_training: false, fingerprints: [None, None] })
    }

    /// Returns the location of the file.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Returns a string that identifies the content of the file.
    pub fn identity(&self) -> Result<String> {
        self.file.identity()
    }

    /// Returns the number of rows in each row group.
    pub fn group_rows(&self) -> Vec<u64> {
        self.file.group_rows()
    }

    /// Returns a reader of one row group.
    pub(crate) fn group_reader(&self, group: usize) -> OpenReader {
        self.reader(vec![group], BATCH_ROWS)
    }

    /// Opens predictions. `by` is the column by which queries are grouped into segments.
    pub fn open(location: &Location, by: Option<&str>) -> Result<Self> {
        let mut seen_in_training = false;
        let mut fingerprints = [None, None];
        let opened = TableReader::open_or_foreign(location, READABLE);
        let file = match opened.map_err(|error| with_remedy(error, location))? {
            AnyParquet::Foreign(file) => file,
            AnyParquet::Ours(table) if table.kind() == TableKind::Predictions => {
                seen_in_training = are_of_training_rows(|key| table.metadata(key));
                fingerprints = [DATASET, TRAINED_ON].map(|key| table.metadata(key).map(str::to_owned));
                table.file().clone()
            }
            AnyParquet::Ours(table) => {
                return Err(Error::place(
                    location,
                    format_args!("this is {}, not predictions", table.kind().noun()),
                    "use predictions written by `planetree predict`, or a Parquet file with the columns query_id, label and \
                     score",
                ));
            }
        };
        let columns = PredictionColumns::find(file.schema(), location, by)?;
        Ok(Predictions { file, columns, seen_in_training, fingerprints })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.file.rows()
    }

    /// Returns the bytes that a reader needs at most while its rows are evaluated, if it returns batches of `batch_rows`
    /// rows.
    pub(crate) fn reader_bytes(&self, batch_rows: usize) -> u64 {
        /// Batches that exist at the same time: two that wait, one that is decoded, one that is converted, and one that is
        /// evaluated.
        const BATCHES: u64 = 5;
        /// Bytes of a row besides its texts.
        const ROW_BYTES: u64 = 48;
        /// Bytes of an open page and of the dictionary of a column.
        const PAGE_BYTES: u64 = 2 << 20;
        let (stored, decompressed) = self.file.most_group_bytes(&self.columns.read);
        let rows = self.file.group_rows().into_iter().max().unwrap_or(0).max(1);
        let pages = decompressed.min(self.columns.read.len() as u64 * PAGE_BYTES);
        // Texts may be stored once and repeated in rows.
        let row = (decompressed / rows).saturating_mul(2).saturating_add(ROW_BYTES);
        let batches = row.saturating_mul(BATCHES * rows.min(batch_rows as u64));
        stored.saturating_add(pages).saturating_add(batches)
    }

    /// Returns one reader per row group, in order, which returns batches of `batch_rows` rows.
    pub(crate) fn readers(&self, batch_rows: usize) -> Vec<OpenReader> {
        let reader = |group| self.reader(vec![group], batch_rows);
        (0..self.file.groups()).map(reader).collect()
    }

    /// Returns up to `count` readers, each of which reads some of the row groups, for rows that will be sorted.
    pub(crate) fn shared_readers(&self, count: usize) -> Vec<OpenReader> {
        let count = count.min(self.file.groups()).max(1);
        let groups = |reader| (reader..self.file.groups()).step_by(count).collect();
        (0..count).map(|reader| self.reader(groups(reader), SORT_ROWS)).collect()
    }

    fn reader(&self, groups: Vec<usize>, batch_rows: usize) -> OpenReader {
        let (file, columns) = (self.file.clone(), self.columns.clone());
        Arc::new(move || {
            let (file, columns) = (file.clone(), columns.clone());
            let groups = groups.clone().into_iter();
            Ok(Box::new(PredictionBatches { file, columns, groups, current: None, batch_rows })
                as BatchIterator)
        })
    }
}

impl PredictionColumns {
    /// Finds the columns by name. Returns an error if a required column is missing or has the wrong type.
    pub fn find(schema: &Schema, location: &Location, by: Option<&str>) -> Result<Self> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let place = |name: &str| names().position(|other| other == name);
        let needed = |name: &str| {
            place(name).ok_or_else(|| {
                let near = suggest::nearest(name, names());
                let remedy = match near.first() {
                    Some(near) => format!("rename the column {near} to {name}"),
                    None => "predictions need the columns query_id, label and score; doc_id is optional"
                        .to_owned(),
                };
                Error::place(location, format_args!("not predictions: no column {name}"), remedy)
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
                let problem = format_args!("not predictions: column {name} is {kind}, not numeric");
                return Err(Error::place(location, problem, "store the column as numbers"));
            }
        }
        let mut read: Vec<usize> =
            [Some(query), document, label, Some(score), segment].into_iter().flatten().collect();
        read.sort_unstable();
        read.dedup();
        let among = |place: usize| read.partition_point(|other| *other < place);
        Ok(PredictionColumns {
            query: among(query),
            document: document.map(among),
            label: label.map(among),
            score: among(score),
            segment: segment.map(among),
            read,
        })
    }

    /// Converts a batch of the columns in `read` to the schema that rows of all sources share.
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
                    "remove the row, or supply the value",
                ));
            }
        }
        let labels = match self.label {
            Some(place) => converted(batch, place, &DataType::Float32, location)?,
            None => arrow::array::new_null_array(&DataType::Float32, batch.num_rows()),
        };
        RankingColumns {
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

/// Creates the error for a missing column, which suggests a similar name or lists all columns.
pub(crate) fn no_such_column<'n>(
    location: &Location,
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Error {
    let all: Vec<&str> = names.clone().collect();
    let otherwise = format!("available columns: {}", all.join(", "));
    let near = suggest::nearest(name, names);
    Error::place(location, format_args!("no column {name}"), suggest::did_you_mean(&near, &otherwise))
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
        Error::place(location, format_args!("column {name}: {error}"), "store the column as another type")
    })
}

/// Iterates over the batches of several row groups, converted to the schema that rows of all sources share.
struct PredictionBatches {
    file: Arc<ParquetFile>,
    columns: PredictionColumns,
    groups: std::vec::IntoIter<usize>,
    current: Option<(GroupBatches, u64)>,
    batch_rows: usize,
}

impl PredictionBatches {
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

impl Iterator for PredictionBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
