//! Exchanges record batches with other libraries by Arrow's PyCapsule interface, without copying them.

use super::failure::exception;
use arrow::array::RecordBatchReader;
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use planetree_base::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;

/// Name of the method that returns a stream.
pub(crate) const STREAM_METHOD: &str = "__arrow_c_stream__";
/// Name that the interface prescribes for capsules of streams.
const STREAM: &CStr = c"arrow_array_stream";

/// Returns the rows of an object with the method `__arrow_c_stream__`.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let capsule = object.call_method0(STREAM_METHOD)?.cast_into::<PyCapsule>()?;
    let stream = take_stream(&capsule)?;
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(|error| {
        let problem = format_args!("not a stream of rows with columns: {error}");
        exception(object.py(), &Error::place("rows", problem, "pass a data frame or an Arrow table"))
    })?;
    Ok(Box::new(reader))
}

/// Takes the stream out of a capsule. The capsule keeps a released stream, as the interface prescribes, so that the
/// stream has a single owner.
#[expect(unsafe_code, reason = "a capsule holds a pointer; its name says that it points to a stream")]
fn take_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to a stream, which no other code uses while the interpreter is locked.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) })
}

/// Returns a capsule with a stream of rows.
pub(crate) fn export<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}
