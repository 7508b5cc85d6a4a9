//! Columns that are passed beside the rows: labels, query ids and weights.

use arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, StringArray};
use arrow::buffer::ScalarBuffer;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use std::sync::Arc;

/// Returns the numbers of a one-dimensional array of 64-bit floating-point numbers.
pub(crate) fn numbers(array: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(Arc::new(Float64Array::from(values::<f64>(array)?)))
}

/// Returns query ids: an array of 64-bit integers, or a list of strings.
pub(crate) fn identifiers(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(buffer) = PyBuffer::<i64>::get(object) {
        return Ok(Arc::new(Int64Array::from(buffer.to_vec(object.py())?)));
    }
    let words: Vec<String> = object.extract()?;
    Ok(Arc::new(StringArray::from_iter_values(words)))
}

/// Returns the columns of a two-dimensional array, which has one row per column of the table.
pub(crate) fn columns(array: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if let Ok(buffer) = PyBuffer::<f32>::get(array) {
        let column = |values| Arc::new(Float32Array::new(values, None)) as ArrayRef;
        return rows_of(array.py(), &buffer, column);
    }
    let buffer = PyBuffer::<f64>::get(array)?;
    rows_of(array.py(), &buffer, |values| Arc::new(Float64Array::new(values, None)))
}

/// Returns the numbers of a two-dimensional array of floating-point numbers, row by row. `None` if it has another number of
/// columns, no row, more than `most_rows` rows, other numbers, or a number that is infinite as a 32-bit float.
pub(crate) fn matrix(
    array: &Bound<'_, PyAny>,
    columns: usize,
    most_rows: usize,
) -> PyResult<Option<Vec<f32>>> {
    let fits = |shape: &[usize]| match shape {
        [rows, width] => (1..=most_rows).contains(rows) && *width == columns && columns > 0,
        _ => false,
    };
    let values: Vec<f32> = if let Ok(buffer) = PyBuffer::<f32>::get(array) {
        if !fits(buffer.shape()) {
            return Ok(None);
        }
        buffer.to_vec(array.py())?
    } else if let Ok(buffer) = PyBuffer::<f64>::get(array) {
        if !fits(buffer.shape()) {
            return Ok(None);
        }
        buffer.to_vec(array.py())?.into_iter().map(|value| value as f32).collect()
    } else {
        return Ok(None);
    };
    Ok(values.iter().all(|value| !value.is_infinite()).then_some(values))
}

/// Copies an array once, and returns its rows as slices of the copy.
fn rows_of<T: Element + arrow::datatypes::ArrowNativeType>(
    py: Python<'_>,
    buffer: &PyBuffer<T>,
    column: impl Fn(ScalarBuffer<T>) -> ArrayRef,
) -> PyResult<Vec<ArrayRef>> {
    let (rows, length) = match buffer.shape() {
        [rows, length] => (*rows, *length),
        _ => (1, buffer.item_count()),
    };
    let values = ScalarBuffer::from(buffer.to_vec(py)?);
    Ok((0..rows).map(|row| column(values.slice(row * length, length))).collect())
}

fn values<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}
