//! Writes results as tables with box-drawing characters. The first rows decide the column widths; later rows are
//! written as they arrive.

use super::{ResultWriter, failed, formatters};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use planetree_base::terminal::printable;
use std::io::{self, Write};

/// Number of rows that decide the column widths.
const FIRST_ROWS: usize = 2000;

/// Writes a table with borders.
pub(super) struct BoxWriter<'a> {
    output: Box<dyn Write + Send + 'a>,
    names: Vec<String>,
    /// Whether each column is numeric and therefore right-aligned.
    is_number: Vec<bool>,
    /// Rows that are not written yet.
    pending: Vec<Vec<String>>,
    headers: bool,
    /// The column widths; `None` until the first rows are written.
    widths: Option<Vec<usize>>,
}

impl<'a> BoxWriter<'a> {
    /// Creates a writer that has written nothing. Column names are written only with `headers`.
    pub(super) fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>, headers: bool) -> Self {
        let fields = schema.fields();
        BoxWriter {
            output,
            names: fields.iter().map(|field| printable(field.name()).into_owned()).collect(),
            is_number: fields.iter().map(|field| field.data_type().is_numeric()).collect(),
            pending: Vec::new(),
            headers,
            widths: None,
        }
    }

    /// Writes the pending rows. The first call also writes the header.
    fn write_pending(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.pending);
        if self.widths.is_none() {
            let names = self.names.iter();
            let mut widths: Vec<usize> =
                names.map(|name| if self.headers { width(name) } else { 0 }).collect();
            for row in &rows {
                for (width_so_far, value) in widths.iter_mut().zip(row) {
                    *width_so_far = value.lines().map(width).max().unwrap_or(0).max(*width_so_far);
                }
            }
            self.widths = Some(widths);
            self.rule('┌', '┬', '┐')?;
            if self.headers {
                let names = self.names.clone();
                self.row(&names)?;
                self.rule('├', '┼', '┤')?;
            }
        }
        rows.iter().try_for_each(|row| self.row(row))
    }

    fn rule(&mut self, left: char, between: char, right: char) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        writeln!(self.output, "{left}{}{right}", bars.join(&between.to_string()))
    }

    /// Writes a row, whose values may have several lines.
    fn row(&mut self, values: &[String]) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let height = values.iter().map(|value| value.lines().count()).max().unwrap_or(1).max(1);
        for line in 0..height {
            let mut text = String::from("│");
            for ((value, wide), is_number) in values.iter().zip(widths).zip(&self.is_number) {
                let value = value.lines().nth(line).unwrap_or_default();
                let room = " ".repeat(wide.saturating_sub(width(value)));
                let (before, after) = if *is_number { (room.as_str(), "") } else { ("", room.as_str()) };
                text.push_str(&format!(" {before}{value}{after} │"));
            }
            writeln!(self.output, "{text}")?;
        }
        Ok(())
    }
}

/// Returns the width of a text on a terminal, assuming that every character takes one column.
fn width(text: &str) -> usize {
    text.chars().count()
}

impl ResultWriter for BoxWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new().with_null("NULL");
        let columns = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            let value = |column: &arrow::util::display::ArrayFormatter<'_>| {
                printable(&column.value(row).to_string()).into_owned()
            };
            self.pending.push(columns.iter().map(value).collect());
            if self.pending.len() >= FIRST_ROWS {
                self.write_pending().map_err(failed)?;
            }
        }
        if self.widths.is_some() { self.write_pending().map_err(failed) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_pending().and_then(|()| self.rule('└', '┴', '┘')).map_err(failed)?;
        self.output.flush().map_err(failed)
    }
}
