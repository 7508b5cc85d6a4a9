//! Tables as Python objects that any Arrow library reads.

use super::capsule;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use planetree_base::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A result, which is decoded while it is read.
#[pyclass(frozen, module = "planetree._native")]
pub(crate) struct Table {
    file: Bytes,
    schema: SchemaRef,
    rows: usize,
}

#[pymethods]
impl Table {
    /// Reads a Parquet file.
    #[staticmethod]
    fn read(py: Python<'_>, path: &str) -> PyResult<Self> {
        let table = py.detach(|| {
            let file = std::fs::read(path).map_err(|error| Error::io(path, "read", error))?;
            Table::new(path, Bytes::from(file))
        });
        table.map_err(|error| super::failure::exception(py, &error))
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter();
        let columns: Vec<String> =
            columns.map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!("planetree.Table({} rows; {})", self.rows, columns.join(", "))
    }

    /// Returns the rows as a pyarrow table.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Returns the rows as a pandas data frame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// Returns the rows as a polars data frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Returns the rows as an Arrow stream. Other schemas are not supported, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // the interface allows to ignore it
        let reader = ParquetRecordBatchReaderBuilder::try_new(self.file.clone())
            .and_then(|builder| builder.build())
            .map_err(|error| super::failure::exception(py, &damaged("result", &error)))?;
        capsule::export(py, Box::new(reader))
    }
}

impl Table {
    fn new(path: &str, file: Bytes) -> Result<Self, Error> {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(|error| damaged(path, &error))?;
        let rows = builder.metadata().file_metadata().num_rows() as usize;
        Ok(Table { schema: builder.schema().clone(), rows, file })
    }
}

fn damaged(place: &str, error: &parquet::errors::ParquetError) -> Error {
    Error::place(place, format_args!("invalid Parquet file: {error}"), "write the file again")
}
