//! Limits the text in a decoding task: long texts are refused, and batches with much text are cut.

use arrow::array::{Array, AsArray, RecordBatch, StringViewArray};
use planetree_base::error::{Error, Result};
use planetree_base::size::shown_size;
use std::ops::Range;

/// Maximum bytes of an id or category in a Parquet input. Lines of text have a maximum, too.
const MAX_TEXT: usize = 1 << 20;
/// Bytes of text after which a batch is cut. The rows of a batch are copied when they are decoded.
const TEXT_PER_TASK: usize = 4 << 20;

/// Cuts a batch of `bytes` bytes into ranges of rows with little text, each with its size in bytes. Fails if a text is too
/// long. `first_row` is the number of the batch's first row, counted from 1.
pub(super) fn text_slices(
    batch: &RecordBatch,
    bytes: usize,
    name: &str,
    first_row: u64,
) -> Result<Vec<(Range<usize>, usize)>> {
    let texts: Vec<(usize, &StringViewArray)> = (batch.columns().iter().enumerate())
        .filter_map(|(place, column)| Some((place, column.as_string_view_opt()?)))
        .collect();
    if texts.is_empty() {
        return Ok(vec![(0..batch.num_rows(), bytes)]);
    }
    let numbers = batch.columns().iter().filter(|column| column.as_string_view_opt().is_none());
    let row_bytes: usize =
        numbers.map(|column| column.get_array_memory_size()).sum::<usize>() / batch.num_rows().max(1);
    let mut slices = Vec::new();
    let (mut start, mut size) = (0, 0);
    for row in 0..batch.num_rows() {
        let mut bytes = 0;
        for (place, text) in &texts {
            let length = if text.is_null(row) { 0 } else { text.value(row).len() };
            if length > MAX_TEXT {
                let schema = batch.schema();
                let column = schema.field(*place).name();
                return Err(Error::place(
                    format_args!("{name}: row {}, column {column}", first_row + row as u64),
                    format_args!(
                        "found a text of {}, expected at most {}",
                        shown_size(length as u64),
                        shown_size(MAX_TEXT as u64)
                    ),
                    format_args!("shorten the text, or pass --ignore-columns {column}"),
                ));
            }
            bytes += length;
        }
        if size + bytes > TEXT_PER_TASK && row > start {
            slices.push((start..row, size + row_bytes * (row - start)));
            (start, size) = (row, 0);
        }
        size += bytes;
    }
    slices.push((start..batch.num_rows(), size + row_bytes * (batch.num_rows() - start)));
    Ok(slices)
}
