//! Writes query results as text or Parquet, as the rows arrive.

mod destination;
mod line;
mod markdown;
mod parquet;
mod table;
mod text;

pub use destination::{Destination, ReplacePolicy};
pub(crate) use text::TextResult;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, FileFormat, Location, OutputFormats, TABLE_FORMATS};
use planetree_data::table::TextRows;
use std::io::{self, Write};

/// Format of query results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// A table with borders.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// JSON: one array of objects.
    Json,
    /// JSON: one object per line.
    Ndjson,
    /// One line per value.
    Line,
    /// A Markdown table.
    Markdown,
    /// A Parquet file.
    Parquet,
}

/// All formats with their names.
const FORMATS: [(&str, ResultFormat); 8] = [
    ("table", ResultFormat::Table),
    ("csv", ResultFormat::Csv),
    ("tsv", ResultFormat::Tsv),
    ("json", ResultFormat::Json),
    ("ndjson", ResultFormat::Ndjson),
    ("line", ResultFormat::Line),
    ("markdown", ResultFormat::Markdown),
    ("parquet", ResultFormat::Parquet),
];

/// File formats of results. The first one is used for file names without an extension.
const RESULTS: &[FileFormat] = &[
    FileFormat::Text,
    FileFormat::Csv,
    FileFormat::Tsv,
    FileFormat::Json,
    FileFormat::Ndjson,
    FileFormat::Markdown,
    FileFormat::Parquet,
];

impl ResultFormat {
    /// Returns the names of all formats.
    pub fn names() -> [&'static str; 8] {
        FORMATS.map(|(name, _)| name)
    }

    /// Returns the format with the given name. DuckDB's names are accepted, too.
    pub fn named(name: &str) -> Option<Self> {
        let name = match name.to_ascii_lowercase().as_str() {
            "jsonlines" | "jsonl" => "ndjson".to_owned(),
            "duckbox" | "box" => "table".to_owned(),
            "lines" | "vertical" => "line".to_owned(),
            "md" => "markdown".to_owned(),
            other => other.to_owned(),
        };
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// Returns the format and compression of a file. The format is the chosen one, or else the one that the extension
    /// implies; it is `None` if there is neither. An unknown extension is an error, and so is a choice that contradicts
    /// the extension.
    pub fn of_file(location: &Location, chosen: Option<Self>) -> Result<(Option<Self>, Compression)> {
        let formats = OutputFormats { what: "results", takes: RESULTS, ..TABLE_FORMATS };
        let (format, compression) = formats.among(location, chosen.map(Self::file))?;
        let by_name = match format {
            FileFormat::Csv => Some(ResultFormat::Csv),
            FileFormat::Tsv => Some(ResultFormat::Tsv),
            FileFormat::Json => Some(ResultFormat::Json),
            FileFormat::Ndjson => Some(ResultFormat::Ndjson),
            FileFormat::Markdown => Some(ResultFormat::Markdown),
            FileFormat::Parquet => Some(ResultFormat::Parquet),
            FileFormat::Text | FileFormat::Html => None,
        };
        Ok((chosen.or(by_name), compression))
    }

    fn file(self) -> FileFormat {
        match self {
            ResultFormat::Table | ResultFormat::Line => FileFormat::Text,
            ResultFormat::Csv => FileFormat::Csv,
            ResultFormat::Tsv => FileFormat::Tsv,
            ResultFormat::Json => FileFormat::Json,
            ResultFormat::Ndjson => FileFormat::Ndjson,
            ResultFormat::Markdown => FileFormat::Markdown,
            ResultFormat::Parquet => FileFormat::Parquet,
        }
    }

    /// Creates a writer for rows with the given columns. A Parquet writer uses about `memory` bytes. Without `headers`,
    /// tables and delimited text have no header.
    pub fn writer<'a>(
        self,
        schema: &SchemaRef,
        output: Box<dyn Write + Send + 'a>,
        memory: usize,
        headers: bool,
    ) -> Result<Box<dyn ResultWriter + 'a>> {
        Ok(match self {
            ResultFormat::Table => Box::new(table::BoxWriter::new(schema, output, headers)),
            ResultFormat::Line => Box::new(line::LineWriter::new(schema, output)),
            ResultFormat::Markdown => Box::new(markdown::MarkdownWriter::new(schema, output)?),
            ResultFormat::Parquet => Box::new(parquet::ParquetWriter::new(schema, output, memory)?),
            ResultFormat::Csv | ResultFormat::Tsv => {
                let separator = if self == ResultFormat::Csv { ',' } else { '\t' };
                Box::new(TextResult::new(schema, output, TextRows::delimited(separator, headers))?)
            }
            ResultFormat::Json | ResultFormat::Ndjson => {
                let rows = TextRows::new(self.file()).expect("a text format of rows");
                Box::new(TextResult::new(schema, output, rows)?)
            }
        })
    }
}

/// Writes the rows of a result.
pub trait ResultWriter {
    /// Writes a batch of rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes the end of the output and flushes it.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Place of errors of the output whose name is not known where they occur.
const OUTPUT: &str = "the output";

/// Returns the error for a failed write.
pub(crate) fn failed(error: io::Error) -> Error {
    Error::io(OUTPUT, "write", error)
}

/// Names the output in an error of writing to it. Other errors are returned as they are.
pub(crate) fn at_output(error: Error, name: &str) -> Error {
    match error {
        Error::Place { place, problem, remedy, source } if place == OUTPUT => {
            Error::Place { place: name.to_owned(), problem, remedy, source }
        }
        other => other,
    }
}

/// Returns the error for a value that cannot be written as text.
fn unwritable(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(error),
        other => Error::place(OUTPUT, other, "cast the column to another type"),
    }
}

/// Creates formatters for all columns of a batch.
fn formatters<'b>(batch: &'b RecordBatch, options: &'b FormatOptions<'b>) -> Result<Vec<ArrayFormatter<'b>>> {
    let columns = batch.columns().iter();
    columns.map(|column| ArrayFormatter::try_new(column, options).map_err(unwritable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_writing_name_the_output() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = at_output(failed(full()), "out.csv");
        assert!(error.to_string().starts_with("out.csv: cannot write: "), "{error}");
        assert!(error.remedy().is_some_and(|remedy| remedy.starts_with("free some disk space")));
        let other = at_output(Error::place("query", "failed", ""), "out.csv");
        assert_eq!(other.to_string(), "query: failed");
    }
}
