//! Explains a dataset batch by batch. The next batch is read while all threads explain the current one.

use super::explainer::Explainer;
use crate::model::Model;
use crate::predict::ColumnPlan;
use arrow::array::{Array, AsArray, Float32Array, RecordBatch, StringArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_base::panics;
use planetree_base::storage::interrupt;
use planetree_base::threads::thread_pool;
use planetree_data::dataset::{DatasetReader, unexpected_columns};
use rayon::prelude::*;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Number of contributions per batch. Values are counted instead of rows, so that a dataset with many features needs
/// no more memory than a dataset with few features.
const BATCH_VALUES: usize = 1 << 20;
/// Number of rows that each parallel task explains, unless it explains a query.
const ROWS_PER_TASK: usize = 32;
/// The first columns of every dataset.
const COLUMNS: [&str; 3] = ["query_id", "doc_id", "label"];

/// A batch of explained rows.
#[derive(Debug)]
pub struct ExplainedRows {
    /// Query ids.
    pub query_ids: StringArray,
    /// Document ids. Null for rows without a document id.
    pub doc_ids: StringArray,
    /// Labels. Null for rows without a label.
    pub labels: Float32Array,
    /// The contributions in row-major order, with one number per feature of the model.
    pub contributions: Vec<f64>,
}

/// Summary that [`explain`] returns.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainReport {
    /// The expected value, to which the contributions of a row are added.
    pub expected_value: f64,
    /// Number of rows explained.
    pub rows: u64,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Explains a dataset with `threads` threads (0 means one per core) and passes the rows to `sink` in order.
pub fn explain(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    sink: &mut dyn FnMut(ExplainedRows) -> Result<()>,
) -> Result<ExplainReport> {
    let explainer = Explainer::new(model)?;
    let plan = ColumnPlan::new(model, explainer.used_features(), reader)?;
    let pool = thread_pool(threads)?;
    let mut rows = 0;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let reading = scope.spawn(|| panics::guarded(|| read(reader, &plan, &explainer, sender)));
        for batch in receiver {
            interrupt::check()?;
            let explained = pool.install(|| explain_batch(reader, &explainer, &plan, &batch))?;
            rows += explained.query_ids.len() as u64;
            sink(explained)?;
        }
        let outcome = reading.join().map_err(|_| Error::Interrupted)?; // a panic was caught before
        outcome.map_err(|panic| panic.into_error("explain"))?
    })?;
    Ok(ExplainReport { expected_value: explainer.expected_value(), rows, warning: plan.found.warning() })
}

/// Reads the columns that the explanation needs and sends them batch by batch, until the end of the dataset or until
/// the receiver is dropped.
fn read(
    reader: &DatasetReader,
    plan: &ColumnPlan,
    explainer: &Explainer,
    sender: SyncSender<RecordBatch>,
) -> Result<()> {
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let names = group.names();
        let known = &reader.manifest().features;
        let first = names.len().checked_sub(known.len()).filter(|first| names[*first..] == *known);
        let first = first
            .filter(|_| names.starts_with(&COLUMNS))
            .ok_or_else(|| unexpected_columns(reader.location()))?;
        let mut columns: Vec<usize> = (0..COLUMNS.len()).collect();
        columns.extend(plan.used.iter().map(|(column, _)| first + column));
        let batch_rows = match explainer.needs_queries() {
            true => group.rows().max(1), // batches would divide queries
            false => (BATCH_VALUES / explainer.features().max(1)).next_multiple_of(ROWS_PER_TASK),
        };
        // Sending fails only if the receiver was dropped after an error. That error is reported instead of this one.
        let send = &mut |batch| sender.send(batch).map_err(|_| Error::Interrupted);
        group.read_batches(&columns, batch_rows, send)?;
    }
    Ok(())
}

fn explain_batch(
    reader: &DatasetReader,
    explainer: &Explainer,
    plan: &ColumnPlan,
    batch: &RecordBatch,
) -> Result<ExplainedRows> {
    let text = |column: usize| batch.column(column).as_string_opt::<i32>().cloned();
    let numbers = |column: usize| batch.column(column).as_primitive_opt::<Float32Type>();
    let (Some(query_ids), Some(doc_ids), Some(labels)) = (text(0), text(1), numbers(2)) else {
        return Err(unexpected_columns(reader.location()));
    };
    let width = explainer.features();
    let values = plan.values(&batch.columns()[COLUMNS.len()..], reader)?;
    let columns = values.by_feature(width);
    let mut contributions = vec![0.0; batch.num_rows() * width];
    let (mut tasks, mut rest) = (Vec::new(), contributions.as_mut_slice());
    for rows in explainer.independent_rows(&query_ids, ROWS_PER_TASK) {
        let (out, after) = rest.split_at_mut(rows.len() * width);
        tasks.push((rows, out));
        rest = after;
    }
    tasks.into_par_iter().for_each(|(rows, out)| explainer.explain_columns(&columns, rows, out));
    Ok(ExplainedRows { query_ids, doc_ids, labels: labels.clone(), contributions })
}
