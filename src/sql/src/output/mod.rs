//! Results as text or Parquet, written as they come.

mod destination;
mod markdown;
mod parquet;
mod table;
mod text;

pub use destination::{Destination, Replace};
pub use text::Text;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, FileFormat, Location, OutputFormats, TABLE_FORMATS};
use planetree_data::table::TextRows;
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

/// The formats of files; the first, boxes for people, is that of a name without an extension.
const RESULTS: &[FileFormat] = &[
    FileFormat::Text,
    FileFormat::Csv,
    FileFormat::Tsv,
    FileFormat::Json,
    FileFormat::Ndjson,
    FileFormat::Markdown,
    FileFormat::Parquet,
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

    /// The format of a file: what was chosen, or what its extension says; `None` where neither does. Two that
    /// contradict each other are an error, and so is an extension that means nothing.
    pub fn of_file(location: &Location, chosen: Option<Self>) -> Result<(Option<Self>, Compression)> {
        let formats = OutputFormats { what: "results", takes: RESULTS, ..TABLE_FORMATS };
        let (format, compression) = formats.among(location, chosen.map(Self::file))?;
        let by_name = match format {
            FileFormat::Csv => Some(Format::Csv),
            FileFormat::Tsv => Some(Format::Tsv),
            FileFormat::Json => Some(Format::Json),
            FileFormat::Ndjson => Some(Format::Ndjson),
            FileFormat::Markdown => Some(Format::Markdown),
            FileFormat::Parquet => Some(Format::Parquet),
            FileFormat::Text | FileFormat::Html => None,
        };
        Ok((chosen.or(by_name), compression))
    }

    fn file(self) -> FileFormat {
        match self {
            Format::Table => FileFormat::Text,
            Format::Csv => FileFormat::Csv,
            Format::Tsv => FileFormat::Tsv,
            Format::Json => FileFormat::Json,
            Format::Ndjson => FileFormat::Ndjson,
            Format::Markdown => FileFormat::Markdown,
            Format::Parquet => FileFormat::Parquet,
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
            Format::Markdown => Box::new(markdown::Markdown::new(schema, output)?),
            Format::Parquet => Box::new(parquet::Parquet::new(schema, output)?),
            Format::Csv | Format::Tsv | Format::Json | Format::Ndjson => {
                let rows =
                    TextRows::new(self.file()).expect("it is one of the formats that rows have as text");
                Box::new(Text::new(schema, output, rows)?)
            }
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
