//! Scores the row groups of a dataset in parallel. A bounded number of groups is in memory at a time, and results are
//! passed on in row order.

use super::columns::{ColumnPlan, malformed};
use super::rank::ranks;
use super::scorer::Scorer;
use super::wins::win_rates;
use crate::model::{Ensemble, Model};
use arrow::array::{AsArray, Float32Array, RecordBatch, StringArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupId, GroupReader};
use rayon::ThreadPoolBuilder;
use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// The scores of one row group.
#[derive(Debug)]
pub struct PredictedGroup {
    /// Query ids.
    pub query_ids: StringArray,
    /// Document ids, null where there is none.
    pub doc_ids: StringArray,
    /// Labels, null where there is none.
    pub labels: Float32Array,
    /// Scores.
    pub scores: Vec<f64>,
    /// Ranks within the query, from 1.
    pub ranks: Vec<u32>,
}

/// Summary of a prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictReport {
    /// Number of rows scored.
    pub rows: u64,
    /// Number of threads used.
    pub threads: usize,
    /// Seconds spent reading and decoding: the sum over all threads, divided by their number.
    pub load_seconds: f64,
    /// Seconds spent scoring: the sum over all threads, divided by their number.
    pub predict_seconds: f64,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Scores a dataset with `threads` threads (0: one per core) and passes the row groups to `sink` in row order.
pub fn predict(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<PredictReport> {
    each_group(reader, model, threads, |group, scores| complete(reader, group, scores), sink)
}

/// The scores of all rows of a dataset, in row order.
pub fn scores_of(reader: &DatasetReader, model: &Model) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(reader.manifest().rows as usize);
    let threads = rayon::current_num_threads();
    each_group(reader, model, threads, |_, scores| Ok(scores), &mut |scores| {
        all.extend(scores);
        Ok(())
    })?;
    Ok(all)
}

/// Scores single row groups of a dataset. Pairwise models are not supported; see [`GroupPredictor`].
pub struct GroupScorer {
    scorer: Scorer,
    plan: ColumnPlan,
}

impl GroupScorer {
    /// Prepares a model for a dataset, which must have the features of the model.
    pub fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        model.check_single_rows(reader.location())?;
        let scorer = Scorer::new(model);
        let plan = ColumnPlan::new(model, scorer.used_features(), reader)?;
        Ok(GroupScorer { scorer, plan })
    }

    /// A warning about features or categories that the dataset or the model lacks.
    pub fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// Scores the rows of a group.
    pub fn scores(&self, reader: &DatasetReader, group: &GroupReader) -> Result<Vec<f64>> {
        let (scores, _) = score_group(reader, group, &self.scorer, &self.plan)?;
        check_finite(reader, group, &scores)?;
        Ok(scores)
    }
}

/// Predicts single row groups of a dataset, with any kind of model.
pub struct GroupPredictor<M> {
    model: M,
    scorer: Scorer,
    plan: ColumnPlan,
}

impl<M: Borrow<Model>> GroupPredictor<M> {
    /// Prepares a model for a dataset, which must have the features of the model.
    pub fn new(model: M, reader: &DatasetReader) -> Result<Self> {
        let scorer = Scorer::new(model.borrow());
        let plan = ColumnPlan::new(model.borrow(), scorer.used_features(), reader)?;
        Ok(GroupPredictor { model, scorer, plan })
    }

    /// A warning about features or categories that the dataset or the model lacks.
    pub fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// Scores and ranks the rows of a group.
    pub fn predict(&self, reader: &DatasetReader, id: GroupId) -> Result<TimedGroup<PredictedGroup>> {
        self.finish(reader, id, &|group, scores| complete(reader, group, scores))
    }

    /// Scores a group and passes the scores to `finish`.
    fn finish<T>(
        &self,
        reader: &DatasetReader,
        id: GroupId,
        finish: &dyn Fn(&GroupReader, Vec<f64>) -> Result<T>,
    ) -> Result<TimedGroup<T>> {
        let started = Instant::now();
        let group = reader.open_group(id)?;
        let model: &Model = self.model.borrow();
        let (scores, score) = match model.ensemble {
            Ensemble::Wins => score_by_wins(reader, &group, &self.scorer, &self.plan, model)?,
            Ensemble::Boost | Ensemble::Bag => score_group(reader, &group, &self.scorer, &self.plan)?,
        };
        check_finite(reader, &group, &scores)?;
        let result = finish(&group, scores)?;
        Ok(TimedGroup { result, rows: group.rows(), load: started.elapsed() - score, score })
    }
}

/// The result for a row group, with timings.
#[derive(Debug)]
pub struct TimedGroup<T> {
    /// The result.
    pub result: T,
    /// Number of rows.
    pub rows: usize,
    /// Time spent reading and decoding.
    pub load: Duration,
    /// Time spent scoring.
    pub score: Duration,
}

/// Scores all groups. `finish` runs on the worker threads, `sink` on the calling thread, in row order.
fn each_group<T: Send>(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    finish: impl Fn(&GroupReader, Vec<f64>) -> Result<T> + Sync,
    sink: &mut dyn FnMut(T) -> Result<()>,
) -> Result<PredictReport> {
    let predictor = GroupPredictor::new(model, reader)?;
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let threads = pool.current_num_threads();
    let work = |id: GroupId| predictor.finish(reader, id, &finish);
    let (mut rows, mut load, mut score) = (0, Duration::ZERO, Duration::ZERO);
    let mut groups = reader.groups().into_iter();
    // The scope runs on the calling thread, so that waiting for results does not block a thread of the pool.
    pool.in_place_scope(|scope| {
        let mut pending: VecDeque<Receiver<Result<TimedGroup<T>>>> = VecDeque::new();
        loop {
            interrupt::check()?;
            // One more group than threads, so that no worker is idle while this thread runs `sink`.
            for id in groups.by_ref().take(threads + 1 - pending.len()) {
                let (sender, receiver) = sync_channel(1);
                let work = &work;
                scope.spawn(move |_| {
                    let _ = sender.send(work(id)); // the receiver is gone after an error
                });
                pending.push_back(receiver);
            }
            let Some(first) = pending.pop_front() else { return Ok(()) };
            // The channel closes if the worker panics; the scope propagates the panic.
            let done = first.recv().map_err(|_| Error::Interrupted)??;
            (rows, load, score) = (rows + done.rows as u64, load + done.load, score + done.score);
            sink(done.result)?;
        }
    })?;
    let per_thread = |time: Duration| time.as_secs_f64() / threads as f64;
    Ok(PredictReport {
        rows,
        threads,
        load_seconds: per_thread(load),
        predict_seconds: per_thread(score),
        warning: predictor.warning(),
    })
}

/// Decodes and scores the rows of a group, a batch at a time. Returns the scores and the time spent scoring.
fn score_group(
    reader: &DatasetReader,
    group: &GroupReader,
    scorer: &Scorer,
    plan: &ColumnPlan,
) -> Result<(Vec<f64>, Duration)> {
    /// Values per batch: few enough that they are still in the cache when they are scored, and that a wide group
    /// needs little memory.
    const BATCH_VALUES: usize = 1 << 20;
    let mut scores = vec![0.0; group.rows()];
    let mut spent = Duration::ZERO;
    let features = &reader.manifest().features;
    let names = group.names();
    let first = names.len().checked_sub(features.len()).filter(|first| names[*first..] == *features);
    let first = first.ok_or_else(|| malformed(reader))?;
    let width = plan.used.iter().map(|(_, feature)| feature + 1).max().unwrap_or(0);
    let mut score = |columns: &[Option<&Float32Array>], scores: &mut [f64]| {
        let started = Instant::now();
        scorer.score_columns(columns, scores);
        spent += started.elapsed();
    };
    if plan.used.is_empty() {
        score(&[], &mut scores);
        return Ok((scores, spent));
    }
    let columns: Vec<usize> = plan.used.iter().map(|(column, _)| first + column).collect();
    let batch_rows = (BATCH_VALUES / columns.len()).next_multiple_of(super::planes::BLOCK);
    let mut rest = scores.as_mut_slice();
    group.read_batches(&columns, batch_rows, &mut |batch| {
        interrupt::check()?;
        let values = plan.values(batch.columns(), reader)?;
        let (these, following) = std::mem::take(&mut rest)
            .split_at_mut_checked(batch.num_rows())
            .ok_or_else(|| malformed(reader))?;
        score(&values.by_feature(width), these);
        rest = following;
        Ok(())
    })?;
    Ok((scores, spent))
}

/// Returns an error if a score is not finite: the sum of finite leaf values can overflow.
fn check_finite(reader: &DatasetReader, group: &GroupReader, scores: &[f64]) -> Result<()> {
    let Some(row) = scores.iter().position(|score| !score.is_finite()) else { return Ok(()) };
    let rows = row_identity(reader, group)?;
    let query = rows.column(0).as_string_opt::<i32>().ok_or_else(|| malformed(reader))?.value(row);
    Err(Error::place(
        reader.location(),
        format_args!("the score of row {} (query {query}) {NOT_FINITE}", group.first_row() + row as u64 + 1),
        "check the leaf values of the model, or train it with a lower learning_rate",
    ))
}

/// The end of an error message about a score.
pub const NOT_FINITE: &str = "is not finite: the sum of the tree values overflows";

/// Decodes the rows of a group and scores them query by query with a pairwise model. Returns the scores and the time
/// spent scoring.
fn score_by_wins(
    reader: &DatasetReader,
    group: &GroupReader,
    scorer: &Scorer,
    plan: &ColumnPlan,
    model: &Model,
) -> Result<(Vec<f64>, Duration)> {
    let names = group.names();
    let first = names.len().checked_sub(reader.manifest().features.len()).ok_or_else(|| malformed(reader))?;
    let width = model.features.len();
    let fills: Vec<f32> = model.features.iter().map(|feature| feature.fill.unwrap_or(f32::NAN)).collect();
    let mut values = fills.repeat(group.rows());
    for (column, feature) in &plan.used {
        let column = group.read(first + column..first + column + 1)?;
        let column = column.column(0).as_primitive_opt::<Float32Type>().ok_or_else(|| malformed(reader))?;
        let column = plan.found.recoded(*feature, column)?;
        for (row, value) in column.iter().enumerate() {
            if let Some(value) = value.filter(|value| !value.is_nan()) {
                values[row * width + feature] = value;
            }
        }
    }
    let queries = group.read(0..1)?;
    let queries = queries.column(0).as_string_opt::<i32>().ok_or_else(|| malformed(reader))?;
    let started = Instant::now();
    let mut scores = Vec::with_capacity(group.rows());
    let mut start = 0;
    for end in 1..=group.rows() {
        if end == group.rows() || queries.value(end) != queries.value(start) {
            interrupt::check()?;
            scores.extend(win_rates(&values[start * width..end * width], width, |rows, probabilities| {
                scorer.score(rows, probabilities);
            }));
            start = end;
        }
    }
    Ok((scores, started.elapsed()))
}

/// Adds the identifying columns and the ranks to the scores of a group.
fn complete(reader: &DatasetReader, group: &GroupReader, scores: Vec<f64>) -> Result<PredictedGroup> {
    ranked_rows(reader, &row_identity(reader, group)?, scores)
}

/// The query ids, document ids and labels of a group.
pub(super) fn row_identity(reader: &DatasetReader, group: &GroupReader) -> Result<RecordBatch> {
    /// The first columns of every dataset.
    const COLUMNS: [&str; 3] = ["query_id", "doc_id", "label"];
    if !group.names().starts_with(&COLUMNS) {
        return Err(malformed(reader));
    }
    group.read(0..COLUMNS.len())
}

/// Combines rows, as returned by [`row_identity`], with their scores and ranks.
pub(super) fn ranked_rows(
    reader: &DatasetReader,
    rows: &RecordBatch,
    scores: Vec<f64>,
) -> Result<PredictedGroup> {
    let text = |column: usize| rows.column(column).as_string_opt::<i32>().cloned();
    let labels = rows.column(2).as_primitive_opt::<Float32Type>().cloned();
    let (Some(query_ids), Some(doc_ids), Some(labels)) = (text(0), text(1), labels) else {
        return Err(malformed(reader));
    };
    let ranks = ranks(&query_ids, &scores);
    Ok(PredictedGroup { query_ids, doc_ids, labels, scores, ranks })
}
