//! Boxes for people. A column is as wide as its widest value among the first rows; rows after those are written
//! as they come.

use super::{RowWriter, failed, formatters};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use planetree_base::error::Result;
use std::io::{self, Write};

/// Rows that decide on the widths.
const FIRST_ROWS: usize = 2000;

/// See the module.
pub struct Table<'a> {
    output: Box<dyn Write + Send + 'a>,
    names: Vec<String>,
    /// Whether a column's values stand on the right.
    is_number: Vec<bool>,
    /// Rows that are not written yet.
    waiting: Vec<Vec<String>>,
    /// The widths, once they are known.
    widths: Option<Vec<usize>>,
}

impl<'a> Table<'a> {
    /// Nothing written yet.
    pub fn new(schema: &SchemaRef, output: Box<dyn Write + Send + 'a>) -> Self {
        let fields = schema.fields();
        Table {
            output,
            names: fields.iter().map(|field| field.name().clone()).collect(),
            is_number: fields.iter().map(|field| field.data_type().is_numeric()).collect(),
            waiting: Vec::new(),
            widths: None,
        }
    }

    /// Writes what is waiting, with the header before the first rows.
    fn write_waiting(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        if self.widths.is_none() {
            let mut widths: Vec<usize> = self.names.iter().map(|name| width(name)).collect();
            for row in &rows {
                for (width_so_far, value) in widths.iter_mut().zip(row) {
                    *width_so_far = value.lines().map(width).max().unwrap_or(0).max(*width_so_far);
                }
            }
            self.widths = Some(widths);
            self.rule('┌', '┬', '┐')?;
            let names = self.names.clone();
            self.row(&names)?;
            self.rule('├', '┼', '┤')?;
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

/// Columns of a terminal, taking every letter for one.
fn width(text: &str) -> usize {
    text.chars().count()
}

impl RowWriter for Table<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new().with_null("NULL");
        let columns = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            let value = |column: &arrow::util::display::ArrayFormatter<'_>| column.value(row).to_string();
            self.waiting.push(columns.iter().map(value).collect());
            if self.waiting.len() >= FIRST_ROWS {
                self.write_waiting().map_err(failed)?;
            }
        }
        if self.widths.is_some() { self.write_waiting().map_err(failed) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.write_waiting().and_then(|()| self.rule('└', '┴', '┘')).map_err(failed)?;
        self.output.flush().map_err(failed)
    }
}
