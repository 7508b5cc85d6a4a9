//! Writes rows from Python as datasets and as Parquet files.

use super::column;
use super::job::{self, Reports};
use super::rows::{SideColumn, WithColumns, reader};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use planetree_base::error::{Error, Result};
use planetree_base::size::parse_size;
use planetree_base::storage::{Access, Location, interrupt};
use planetree_data::convert::{ConvertOptions, convert};
use planetree_data::ingest::{Ingest, IngestOptions, RoleOptions};
use pyo3::prelude::*;
use std::sync::Arc;

/// Rows from Python, and the columns that are passed beside them.
#[derive(FromPyObject)]
pub(crate) struct GivenRows<'py> {
    /// Name of the rows in messages.
    name: String,
    /// An Arrow stream, or an iterator of chunks.
    rows: Bound<'py, PyAny>,
    /// Names of the columns of chunks that are arrays.
    columns: Option<Vec<String>>,
    label: Option<Bound<'py, PyAny>>,
    query: Option<Bound<'py, PyAny>>,
    weight: Option<Bound<'py, PyAny>>,
}

impl GivenRows<'_> {
    /// Returns the rows with all columns.
    fn reader(&self, reports: &Arc<Reports>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        let rows = reader(&self.rows, self.columns.clone(), reports)?;
        let mut added = Vec::new();
        if let Some(label) = &self.label {
            added.push(SideColumn { name: "label", argument: "y", values: column::numbers(label)? });
        }
        if let Some(query) = &self.query {
            added.push(SideColumn { name: "query_id", argument: "qid", values: column::identifiers(query)? });
        }
        if let Some(weight) = &self.weight {
            let values = column::numbers(weight)?;
            added.push(SideColumn { name: "weight", argument: "sample_weight", values });
        }
        Ok(if added.is_empty() { rows } else { Box::new(WithColumns::new(rows, added)) })
    }
}

/// How rows become a dataset. The fields are those of `planetree convert`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DatasetOptions {
    query_column: Option<String>,
    label_column: Option<String>,
    doc_column: Option<String>,
    weight_column: Option<String>,
    position_column: Option<String>,
    ignore_columns: Vec<String>,
    categorical: Vec<String>,
    sort_queries: bool,
    overwrite: bool,
    threads: Option<usize>,
    /// A size such as `2GiB`.
    memory_limit: Option<String>,
}

/// Writes rows as a dataset. Returns its rows, queries, features and fingerprint.
#[pyfunction]
#[pyo3(signature = (rows, output, options, report=None))]
pub(crate) fn write_dataset(
    py: Python<'_>,
    rows: GivenRows<'_>,
    output: &str,
    options: DatasetOptions,
    report: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, Vec<String>, String)> {
    let reports = Arc::new(Reports::default());
    let (batches, name, output) = (rows.reader(&reports)?, rows.name.clone(), output.to_owned());
    // A label that is passed beside the rows is the label, whatever the names of their columns.
    let given_label = rows.label.as_ref().map(|_| "label".to_owned());
    let work = move || {
        interrupt::be_orderly();
        let output = Location::parse(&output, Access::default())?;
        let mut convert_options = ConvertOptions::new(output);
        convert_options.overwrite = options.overwrite;
        convert_options.sort_queries = options.sort_queries;
        convert_options.threads = options.threads.unwrap_or(convert_options.threads);
        if let Some(limit) = &options.memory_limit {
            let size = parse_size(limit);
            let remedy = "pass a size such as \"1GiB\", or a number of bytes";
            convert_options.memory_limit =
                size.map_err(|problem| Error::usage(format_args!("memory_limit: {problem}"), remedy))?;
        }
        let roles = RoleOptions {
            query: options.query_column,
            label: options.label_column.or(given_label),
            document: options.doc_column,
            weight: options.weight_column,
            position: options.position_column,
            ignored: options.ignore_columns,
            categories: options.categorical,
            ..RoleOptions::default()
        };
        let ingest = Ingest::of_batches(&name, batches, IngestOptions { roles, ..IngestOptions::default() })?;
        let manifest = convert(ingest, &convert_options, &mut |_| {})?;
        let fingerprint = manifest.fingerprint.map(|hash| hash.to_string()).unwrap_or_default();
        Ok((manifest.rows, manifest.queries, manifest.features, fingerprint))
    };
    job::run(py, report.as_ref(), &reports, work)
}

/// Writes rows as a plain Parquet file.
#[pyfunction]
pub(crate) fn write_parquet(py: Python<'_>, rows: GivenRows<'_>, output: &str) -> PyResult<()> {
    let reports = Arc::new(Reports::default());
    let (batches, name, output) = (rows.reader(&reports)?, rows.name.clone(), output.to_owned());
    job::run(py, None, &reports, move || write_batches(batches, &name, &output))
}

fn write_batches(batches: Box<dyn RecordBatchReader + Send>, name: &str, output: &str) -> Result<()> {
    let failed = |problem: String| Error::place(name, problem, "cast the column to another type");
    let file = std::fs::File::create(output).map_err(|error| Error::io(output, "create", error))?;
    // Metadata of a table of planetree include its checksum, which would not be that of this file.
    let schema = Arc::new(Schema::new(batches.schema().fields().clone()));
    let mut writer =
        ArrowWriter::try_new(file, schema.clone(), None).map_err(|error| failed(error.to_string()))?;
    for batch in batches {
        interrupt::check()?;
        let written = batch
            .and_then(|batch| RecordBatch::try_new(schema.clone(), batch.columns().to_vec()))
            .map_err(ParquetError::from)
            .and_then(|batch| writer.write(&batch));
        written.map_err(|error| failed(error.to_string()))?;
    }
    writer.close().map(drop).map_err(|error| failed(error.to_string()))
}
