//! A dataset's scores, row group after row group: several groups are read and scored at once, a bounded
//! number of them, and handed on in the order of the rows.

use super::columns::{ColumnPlan, odd};
use super::rank::ranks;
use super::scorer::Scorer;
use super::wins::wins;
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
    /// Which query each row belongs to.
    pub query_ids: StringArray,
    /// The document's id, where it has one.
    pub doc_ids: StringArray,
    /// The label, where there is one.
    pub labels: Float32Array,
    /// The score.
    pub scores: Vec<f64>,
    /// The place in the query's ranking, counted from 1.
    pub ranks: Vec<u32>,
}

/// What a prediction says when it is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Rows that were scored.
    pub rows: u64,
    /// Threads that worked.
    pub threads: usize,
    /// Seconds of reading and decoding: the sum over all threads, divided by their number.
    pub load_seconds: f64,
    /// Seconds of scoring, likewise.
    pub predict_seconds: f64,
    /// What the user should know.
    pub warning: Option<String>,
}

/// Scores a dataset on a number of threads (0: as many as there are cores) and hands the groups on in
/// the order of the rows.
pub fn predict(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<Report> {
    each_group(reader, model, threads, |group, scores| complete(reader, group, scores), sink)
}

/// The scores of all rows of a dataset, in their order.
pub fn scores_of(reader: &DatasetReader, model: &Model) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(reader.manifest().rows as usize);
    let threads = rayon::current_num_threads();
    each_group(reader, model, threads, |_, scores| Ok(scores), &mut |scores| {
        all.extend(scores);
        Ok(())
    })?;
    Ok(all)
}

/// Scores row groups of one dataset, each on its own.
pub struct GroupScorer {
    scorer: Scorer,
    plan: ColumnPlan,
}

impl GroupScorer {
    /// Prepares a model for a dataset, whose columns must be those of the model.
    pub fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        model.check_single_rows(reader.location())?;
        let scorer = Scorer::new(model);
        let plan = ColumnPlan::new(model, scorer.used_features(), reader)?;
        Ok(GroupScorer { scorer, plan })
    }

    /// What the user should know of how model and dataset fit.
    pub fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// The scores of a group's rows.
    pub fn scores(&self, reader: &DatasetReader, group: &GroupReader) -> Result<Vec<f64>> {
        let (scores, _) = score_group(reader, group, &self.scorer, &self.plan)?;
        check_finite(reader, group, &scores)?;
        Ok(scores)
    }
}

/// Predicts row groups of one dataset, each on its own, whatever the model is made of.
pub struct GroupPredictor<M> {
    model: M,
    scorer: Scorer,
    plan: ColumnPlan,
}

impl<M: Borrow<Model>> GroupPredictor<M> {
    /// Prepares a model for a dataset, whose columns must be those of the model.
    pub fn new(model: M, reader: &DatasetReader) -> Result<Self> {
        let scorer = Scorer::new(model.borrow());
        let plan = ColumnPlan::new(model.borrow(), scorer.used_features(), reader)?;
        Ok(GroupPredictor { model, scorer, plan })
    }

    /// What the user should know of how model and dataset fit.
    pub fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// The predictions of a group.
    pub fn predict(&self, reader: &DatasetReader, id: GroupId) -> Result<TimedGroup<PredictedGroup>> {
        self.finish(reader, id, &|group, scores| complete(reader, group, scores))
    }

    /// Scores a group and makes something of the scores.
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

/// What became of a group, and how long it took to read and to score.
#[derive(Debug)]
pub struct TimedGroup<T> {
    /// What became of it.
    pub result: T,
    /// Its rows.
    pub rows: usize,
    /// How long it took to read.
    pub load: Duration,
    /// How long it took to score.
    pub score: Duration,
}

/// Scores all groups. `finish` is run on the workers, `sink` on this thread, in order.
fn each_group<T: Send>(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    finish: impl Fn(&GroupReader, Vec<f64>) -> Result<T> + Sync,
    sink: &mut dyn FnMut(T) -> Result<()>,
) -> Result<Report> {
    let predictor = GroupPredictor::new(model, reader)?;
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let threads = pool.current_num_threads();
    let work = |id: GroupId| predictor.finish(reader, id, &finish);
    let (mut rows, mut load, mut score) = (0, Duration::ZERO, Duration::ZERO);
    let mut groups = reader.groups().into_iter();
    // The scope runs on this thread, not on the pool's: waiting here keeps no worker from its work.
    pool.in_place_scope(|scope| {
        let mut pending: VecDeque<Receiver<Result<TimedGroup<T>>>> = VecDeque::new();
        loop {
            interrupt::check()?;
            // One group more than there are threads: nobody waits while this thread hands one on.
            for id in groups.by_ref().take(threads + 1 - pending.len()) {
                let (sender, receiver) = sync_channel(1);
                let work = &work;
                scope.spawn(move |_| {
                    let _ = sender.send(work(id)); // nobody waits for it after an error
                });
                pending.push_back(receiver);
            }
            let Some(first) = pending.pop_front() else { return Ok(()) };
            // A worker that panics hangs up; the scope passes its panic on.
            let done = first.recv().map_err(|_| Error::Interrupted)??;
            (rows, load, score) = (rows + done.rows as u64, load + done.load, score + done.score);
            sink(done.result)?;
        }
    })?;
    let per_thread = |time: Duration| time.as_secs_f64() / threads as f64;
    Ok(Report {
        rows,
        threads,
        load_seconds: per_thread(load),
        predict_seconds: per_thread(score),
        warning: predictor.warning(),
    })
}

/// Decodes the columns that the trees ask for, some rows at a time, and scores them.
fn score_group(
    reader: &DatasetReader,
    group: &GroupReader,
    scorer: &Scorer,
    plan: &ColumnPlan,
) -> Result<(Vec<f64>, Duration)> {
    /// Values that are decoded at a time, so that they are still at hand when they are scored, and
    /// that a wide group needs little memory.
    const VALUES: usize = 1 << 20;
    let mut scores = vec![0.0; group.rows()];
    let mut spent = Duration::ZERO;
    let features = &reader.manifest().features;
    let names = group.names();
    let first = names.len().checked_sub(features.len()).filter(|first| names[*first..] == *features);
    let first = first.ok_or_else(|| odd(reader))?;
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
    let places: Vec<usize> = plan.used.iter().map(|(place, _)| first + place).collect();
    let batch_rows = (VALUES / places.len()).next_multiple_of(super::planes::BLOCK);
    let mut rest = scores.as_mut_slice();
    group.read_batches(&places, batch_rows, &mut |batch| {
        interrupt::check()?;
        let values = plan.values(batch.columns(), reader)?;
        let (these, others) =
            std::mem::take(&mut rest).split_at_mut_checked(batch.num_rows()).ok_or_else(|| odd(reader))?;
        score(&values.by_feature(width), these);
        rest = others;
        Ok(())
    })?;
    Ok((scores, spent))
}

/// Refuses scores that are beyond the largest number: finite values of leaves may add up to one.
fn check_finite(reader: &DatasetReader, group: &GroupReader, scores: &[f64]) -> Result<()> {
    let Some(row) = scores.iter().position(|score| !score.is_finite()) else { return Ok(()) };
    let rows = identity(reader, group)?;
    let query = rows.column(0).as_string_opt::<i32>().ok_or_else(|| odd(reader))?.value(row);
    Err(Error::place(
        reader.location(),
        format_args!("the score of row {} (query {query}) {NOT_FINITE}", group.first_row() + row as u64 + 1),
        "check the leaf values of the model, or train it with a lower learning_rate",
    ))
}

/// What is wrong with a score.
pub const NOT_FINITE: &str = "is not finite: the values of the trees add up to more than a number can hold";

/// Decodes the columns that the trees ask for, and scores query after query.
fn score_by_wins(
    reader: &DatasetReader,
    group: &GroupReader,
    scorer: &Scorer,
    plan: &ColumnPlan,
    model: &Model,
) -> Result<(Vec<f64>, Duration)> {
    let names = group.names();
    let first = names.len().checked_sub(reader.manifest().features.len()).ok_or_else(|| odd(reader))?;
    let width = model.features.len();
    let fills: Vec<f32> = model.features.iter().map(|feature| feature.fill.unwrap_or(f32::NAN)).collect();
    let mut values = fills.repeat(group.rows());
    for (place, feature) in &plan.used {
        let column = group.read(first + place..first + place + 1)?;
        let column = column.column(0).as_primitive_opt::<Float32Type>().ok_or_else(|| odd(reader))?;
        let column = plan.found.recoded(*feature, column)?;
        for (row, value) in column.iter().enumerate() {
            if let Some(value) = value.filter(|value| !value.is_nan()) {
                values[row * width + feature] = value;
            }
        }
    }
    let queries = group.read(0..1)?;
    let queries = queries.column(0).as_string_opt::<i32>().ok_or_else(|| odd(reader))?;
    let started = Instant::now();
    let mut scores = Vec::with_capacity(group.rows());
    let mut start = 0;
    for end in 1..=group.rows() {
        if end == group.rows() || queries.value(end) != queries.value(start) {
            interrupt::check()?;
            scores.extend(wins(&values[start * width..end * width], width, |rows, chances| {
                scorer.score(rows, chances);
            }));
            start = end;
        }
    }
    Ok((scores, started.elapsed()))
}

/// Adds to the scores whose they are, and the ranks.
fn complete(reader: &DatasetReader, group: &GroupReader, scores: Vec<f64>) -> Result<PredictedGroup> {
    put_together(reader, &identity(reader, group)?, scores)
}

/// What tells the rows of a group apart: query, document, label.
pub(super) fn identity(reader: &DatasetReader, group: &GroupReader) -> Result<RecordBatch> {
    /// These three come first in every dataset.
    const COLUMNS: [&str; 3] = ["query_id", "doc_id", "label"];
    if !group.names().starts_with(&COLUMNS) {
        return Err(odd(reader));
    }
    group.read(0..COLUMNS.len())
}

/// Scores, whose they are, and the ranks.
pub(super) fn put_together(
    reader: &DatasetReader,
    rows: &RecordBatch,
    scores: Vec<f64>,
) -> Result<PredictedGroup> {
    let text = |column: usize| rows.column(column).as_string_opt::<i32>().cloned();
    let labels = rows.column(2).as_primitive_opt::<Float32Type>().cloned();
    let (Some(query_ids), Some(doc_ids), Some(labels)) = (text(0), text(1), labels) else {
        return Err(odd(reader));
    };
    let ranks = ranks(&query_ids, &scores);
    Ok(PredictedGroup { query_ids, doc_ids, labels, scores, ranks })
}
