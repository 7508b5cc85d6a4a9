//! Models as Python objects: scoring and inspection.

use super::column;
use super::failure::exception;
use super::job::{self, Reports};
use super::rows::reader;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchReader, UInt64Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, interrupt};
use planetree_model::model::Model;
use planetree_model::predict::{BatchScorer, Scorer};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Name of the rows in messages.
const PLACE: &str = "X";

/// Maximum number of rows that are scored on the calling thread, within a second even by large models, so that they need
/// no check of signals.
const FEW_ROWS: usize = 4096;

/// A model in memory, and the content of its file.
#[pyclass(frozen, module = "planetree._native")]
pub(crate) struct NativeModel {
    model: Arc<Model>,
    file: Vec<u8>,
    /// The model prepared for [`NativeModel::score_array`]; `None` if it cannot score arrays.
    scorer: OnceLock<Option<Scorer>>,
}

#[pymethods]
impl NativeModel {
    /// Reads the content of a model file.
    #[new]
    fn new(py: Python<'_>, file: Vec<u8>) -> PyResult<Self> {
        let model = py.detach(|| Model::from_bytes(&file)).map_err(|error| exception(py, &error))?;
        Ok(NativeModel { model: Arc::new(model), file, scorer: OnceLock::new() })
    }

    /// Reads a model from a file or a URL.
    #[staticmethod]
    fn read(py: Python<'_>, path: String) -> PyResult<Self> {
        let read = move || {
            let location = Location::parse(&path, Access::default())?;
            location.read_all()?.ok_or_else(|| location.absent())
        };
        Self::new(py, job::run(py, None, &Arc::default(), read)?.to_vec())
    }

    /// Writes the model to a file or a URL.
    fn write(&self, py: Python<'_>, path: String) -> PyResult<()> {
        let model = self.model.clone();
        let write = move || model.write(&Location::parse(&path, Access::default())?);
        job::run(py, None, &Arc::default(), write)
    }

    /// The content of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.file)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Bound<'py, PyBytes>,)) {
        (slf.get_type().into_any(), (slf.get().to_bytes(slf.py()),))
    }

    /// Names of the features, in the order of the columns.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.model.features.iter().map(|feature| feature.name.clone()).collect()
    }

    /// All parameters of the training, as TOML.
    #[getter]
    fn configuration(&self) -> String {
        self.model.configuration.clone()
    }

    /// Number of trees.
    #[getter]
    fn num_trees(&self) -> usize {
        self.model.trees().count()
    }

    /// Number of rounds of the training.
    #[getter]
    fn rounds(&self) -> u32 {
        self.model.rounds
    }

    /// Size for messages, such as `100 trees`.
    #[getter]
    fn size(&self) -> String {
        self.model.size_text()
    }

    /// Whether the score of a document depends on the other documents of its query.
    #[getter]
    fn needs_queries(&self) -> bool {
        self.model.parts.iter().any(planetree_model::model::Part::needs_queries)
    }

    /// Importance of every feature, in the order of the columns: gain and number of splits.
    fn importance(&self) -> (Vec<f64>, Vec<u64>) {
        let mut all = self.model.importance();
        all.sort_by_key(|one| one.feature);
        all.iter().map(|one| (one.gain, one.splits)).unzip()
    }

    /// Scores a few rows at once, for services: an array with a row per document and a column per feature of the model.
    /// Returns 64-bit floating-point numbers, or `None` if only [`NativeModel::predict`] can score these rows or explain
    /// what is wrong with them.
    fn score_array<'py>(
        &self,
        py: Python<'py>,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        let width = self.model.features.len();
        let Some(values) = column::matrix(array, width, FEW_ROWS)? else { return Ok(None) };
        let Some(scorer) = self.scorer() else { return Ok(None) };
        let mut scores = vec![0.0; values.len() / width];
        py.detach(|| scorer.score(&values, &mut scores));
        if !scores.iter().all(|score| score.is_finite()) {
            return Ok(None);
        }
        let bytes: Vec<u8> = scores.into_iter().flat_map(f64::to_ne_bytes).collect();
        Ok(Some(PyByteArray::new(py, &bytes)))
    }

    /// Scores rows, in their order. Returns 64-bit floating-point numbers.
    #[pyo3(signature = (rows, columns=None, query=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        columns: Option<Vec<String>>,
        query: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let reports = Arc::new(Reports::default());
        let batches = reader(rows, columns, &reports)?;
        let query = query.as_ref().map(column::identifiers).transpose()?;
        let model = self.model.clone();
        let scores = job::run(py, None, &reports, move || scores(&model, batches, query))?;
        let bytes: Vec<u8> = scores.into_iter().flat_map(f64::to_ne_bytes).collect();
        Ok(PyByteArray::new(py, &bytes))
    }
}

impl NativeModel {
    /// Returns the prepared model; `None` if scores depend on words or on other documents.
    fn scorer(&self) -> Option<&Scorer> {
        let prepared = self.scorer.get_or_init(|| {
            let has_words = self.model.features.iter().any(|feature| !feature.words.is_empty());
            let scorer = Scorer::new(&self.model).ok()?;
            (!has_words && !scorer.needs_queries()).then_some(scorer)
        });
        prepared.as_ref()
    }
}

fn scores(
    model: &Model,
    batches: Box<dyn RecordBatchReader + Send>,
    query: Option<ArrayRef>,
) -> Result<Vec<f64>> {
    let scorer = BatchScorer::new(model, &batches.schema(), PLACE)?;
    if scorer.needs_queries() {
        return query_scores(&scorer, batches, query);
    }
    let mut scores = Vec::new();
    for batch in batches {
        interrupt::check()?;
        let batch = batch.map_err(read_error)?;
        scores.extend(scorer.scores(&batch, scores.len() as u64 + 1)?);
    }
    Ok(scores)
}

/// Scores whole queries, whose rows may be anywhere.
fn query_scores(
    scorer: &BatchScorer,
    batches: Box<dyn RecordBatchReader + Send>,
    query: Option<ArrayRef>,
) -> Result<Vec<f64>> {
    let Some(query) = query else {
        return Err(Error::usage(
            "the scores of this model depend on all documents of a query",
            "pass qid, one id per row",
        ));
    };
    let schema = batches.schema();
    let all: Vec<RecordBatch> = batches.collect::<Result<_, _>>().map_err(read_error)?;
    let rows = concat_batches(&schema, &all).map_err(read_error)?;
    if rows.num_rows() != query.len() {
        return Err(Error::usage(
            format_args!("X has {} rows, but qid has {}", rows.num_rows(), query.len()),
            "pass one value of qid per row of X",
        ));
    }
    let (order, bounds) = by_query(&query)?;
    let grouped = take_record_batch(&rows, &UInt64Array::from(order.clone())).map_err(read_error)?;
    let scored = scorer.score(&grouped, &bounds, 1)?;
    let mut scores = vec![0.0; scored.len()];
    for (row, score) in order.iter().zip(scored) {
        scores[*row as usize] = score;
    }
    Ok(scores)
}

/// Returns the rows query by query, and where the queries begin and end.
fn by_query(query: &ArrayRef) -> Result<(Vec<u64>, Vec<usize>)> {
    let text = cast(query, &DataType::Utf8).map_err(read_error)?;
    let text = text.as_string::<i32>();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut queries: Vec<Vec<u64>> = Vec::new();
    for row in 0..text.len() {
        let number = *numbers.entry(text.value(row)).or_insert(queries.len());
        if number == queries.len() {
            queries.push(Vec::new());
        }
        queries[number].push(row as u64);
    }
    let mut bounds = vec![0];
    for rows in &queries {
        bounds.push(bounds[bounds.len() - 1] + rows.len());
    }
    Ok((queries.concat(), bounds))
}

fn read_error(error: ArrowError) -> Error {
    Error::place(PLACE, error.to_string(), "check the program that produces the rows")
}
