//! A dataset's contributions, some rows at a time: while all threads explain these, the next are read.

use super::explainer::Explainer;
use crate::model::Model;
use crate::predict::ColumnPlan;
use arrow::array::{Array, AsArray, Float32Array, RecordBatch, StringArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::dataset::DatasetReader;
use rayon::prelude::*;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Values that are held at a time: a wide dataset needs as little memory as a narrow one.
const VALUES: usize = 1 << 20;
/// Rows that a thread takes.
const SHARE: usize = 32;
/// These three come first in every dataset.
const COLUMNS: [&str; 3] = ["query_id", "doc_id", "label"];

/// Some rows of a dataset, explained.
#[derive(Debug)]
pub struct ExplainedRows {
    /// Which query each row belongs to.
    pub query_ids: StringArray,
    /// The document's id, where it has one.
    pub doc_ids: StringArray,
    /// The label, where there is one.
    pub labels: Float32Array,
    /// Row after row, the contribution of every feature of the model.
    pub contributions: Vec<f64>,
}

/// What is known when a dataset is explained.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainReport {
    /// What every row's contributions start from.
    pub expected_value: f64,
    /// Rows that were explained.
    pub rows: u64,
    /// What the user should know.
    pub warning: Option<String>,
}

/// Explains a dataset on a number of threads (0: as many as there are cores) and hands rows on in their
/// order.
pub fn explain(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    sink: &mut dyn FnMut(ExplainedRows) -> Result<()>,
) -> Result<ExplainReport> {
    let explainer = Explainer::new(model)?;
    let plan = ColumnPlan::new(model, explainer.used_features(), reader)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let mut rows = 0;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let reading = scope.spawn(|| read(reader, &plan, explainer.features(), sender));
        for batch in receiver {
            interrupt::check()?;
            let explained = pool.install(|| explain_batch(reader, &explainer, &plan, &batch))?;
            rows += explained.query_ids.len() as u64;
            sink(explained)?;
        }
        // A reader that panicked hands its panic on at the end of the scope.
        reading.join().map_err(|_| Error::Interrupted)?
    })?;
    Ok(ExplainReport { expected_value: explainer.expected_value(), rows, warning: plan.found.warning() })
}

/// Decodes what is needed, some rows at a time, until nobody wants more.
fn read(
    reader: &DatasetReader,
    plan: &ColumnPlan,
    features: usize,
    sender: SyncSender<RecordBatch>,
) -> Result<()> {
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let names = group.names();
        let known = &reader.manifest().features;
        let first = names.len().checked_sub(known.len()).filter(|first| names[*first..] == *known);
        let first = first.filter(|_| names.starts_with(&COLUMNS)).ok_or_else(|| odd(reader))?;
        let mut places: Vec<usize> = (0..COLUMNS.len()).collect();
        places.extend(plan.used.iter().map(|(place, _)| first + place));
        let batch_rows = (VALUES / features.max(1)).next_multiple_of(SHARE);
        // Nobody listens after an error, and nobody asks for this one.
        let send = &mut |batch| sender.send(batch).map_err(|_| Error::Interrupted);
        group.read_batches(&places, batch_rows, send)?;
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
        return Err(odd(reader));
    };
    let width = explainer.features();
    let values = plan.values(&batch.columns()[COLUMNS.len()..], reader)?;
    let columns = values.by_feature(width);
    let mut contributions = vec![0.0; batch.num_rows() * width];
    contributions.par_chunks_mut((SHARE * width).max(1)).enumerate().for_each(|(share, out)| {
        let first = share * SHARE;
        explainer.explain_columns(&columns, first..first + out.len() / width, out);
    });
    Ok(ExplainedRows { query_ids, doc_ids, labels: labels.clone(), contributions })
}

fn odd(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "its columns are not those of a dataset", "convert the data again")
}
