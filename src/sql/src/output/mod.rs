//! Results as text or Parquet, written as they come.

mod delimited;
mod destination;
mod json;
mod markdown;
mod parquet;
mod table;

pub use delimited::Delimited;
pub use destination::Destination;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planetree_base::error::{Error, Result};
use std::io::{self, Write};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Boxes, for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// The same with tabs.
    Tsv,
    /// One array of objects.
    Json,
    /// An object a line.
    Ndjson,
    /// A table as Markdown has it.
    Markdown,
    /// A Parquet file.
    Parquet,
}

/// All formats by name.
const FORMATS: [(&str, Format); 7] = [
    ("table", Format::Table),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("markdown", Format::Markdown),
    ("parquet", Format::Parquet),
];

impl Format {
    /// All names.
    pub fn names() -> [&'static str; 7] {
        FORMATS.map(|(name, _)| name)
    }

    /// The format of a name, also as DuckDB calls it.
    pub fn named(name: &str) -> Option<Self> {
        let name = match name.to_ascii_lowercase().as_str() {
            "jsonlines" | "jsonl" => "ndjson".to_owned(),
            "duckbox" | "box" => "table".to_owned(),
            other => other.to_owned(),
        };
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// What a file's ending says.
    pub fn of_file(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
            "json" => Some(Format::Json),
            "ndjson" | "jsonl" => Some(Format::Ndjson),
            "md" => Some(Format::Markdown),
            "parquet" | "pq" => Some(Format::Parquet),
            _ => None,
        }
    }

    /// Starts to write rows of some columns.
    pub fn writer<'a>(
        self,
        schema: &SchemaRef,
        output: Box<dyn Write + Send + 'a>,
    ) -> Result<Box<dyn RowWriter + 'a>> {
        Ok(match self {
            Format::Table => Box::new(table::Table::new(schema, output)),
            Format::Csv => Box::new(Delimited::new(schema, output, ',', true)?),
            Format::Tsv => Box::new(Delimited::new(schema, output, '\t', true)?),
            Format::Json => Box::new(json::array(output)),
            Format::Ndjson => Box::new(json::lines(output)),
            Format::Markdown => Box::new(markdown::Markdown::new(schema, output)?),
            Format::Parquet => Box::new(parquet::Parquet::new(schema, output)?),
        })
    }
}

/// Rows on their way out.
pub trait RowWriter {
    /// Writes some rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what comes after the last row.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A failed write.
fn failed(error: io::Error) -> Error {
    Error::io("the output", "write", &error)
}

/// A value that has no text.
fn unwritable(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(error),
        other => Error::place("the output", other, "cast the column to another type"),
    }
}

/// What turns every column's values into text.
fn formatters<'b>(batch: &'b RecordBatch, options: &'b FormatOptions<'b>) -> Result<Vec<ArrayFormatter<'b>>> {
    let columns = batch.columns().iter();
    columns.map(|column| ArrayFormatter::try_new(column, options).map_err(unwritable)).collect()
}
