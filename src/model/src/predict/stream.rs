//! Scores the row groups of a dataset in parallel. A bounded number of groups is in memory at a time, and results are
//! passed on in row order.

use super::group::{GroupPredictor, GroupScores, PartColumn, PredictedGroup, TimedGroup, complete};
use crate::model::Model;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_base::threads::thread_pool;
use planetree_data::dataset::{DatasetReader, GroupId, GroupReader};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Summary that [`predict`] returns.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictReport {
    /// Number of rows scored.
    pub rows: u64,
    /// Number of threads used.
    pub threads: usize,
    /// Seconds spent reading and decoding, averaged over all threads.
    pub load_seconds: f64,
    /// Seconds spent scoring, averaged over all threads.
    pub predict_seconds: f64,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Scores a dataset with `threads` threads (0 means one per core) and passes the row groups to `sink` in row order.
pub fn predict(
    reader: &DatasetReader,
    model: &Model,
    threads: usize,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<PredictReport> {
    predict_with(reader, &GroupPredictor::new(model, reader)?, threads, sink)
}

/// Scores a dataset like [`predict`], but with a prepared model.
pub fn predict_with(
    reader: &DatasetReader,
    predictor: &GroupPredictor,
    threads: usize,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<PredictReport> {
    each_group(reader, predictor, threads, |group, scores| complete(reader, group, scores), sink)
}

/// Returns the scores of all rows of a dataset, in row order.
pub fn scores_of(reader: &DatasetReader, model: &Model) -> Result<Vec<f64>> {
    let mut all = Vec::with_capacity(reader.manifest().rows as usize);
    let threads = rayon::current_num_threads();
    let predictor = GroupPredictor::new(model, reader)?;
    each_group(reader, &predictor, threads, |_, scores| Ok(scores.scores), &mut |scores| {
        all.extend(scores);
        Ok(())
    })?;
    Ok(all)
}

/// Returns the normalised values of each part of a model for all rows of a dataset, in row order.
pub fn part_values(reader: &DatasetReader, model: &Model) -> Result<Vec<Vec<f64>>> {
    let rows = reader.manifest().rows as usize;
    let mut all: Vec<Vec<f64>> = model.parts.iter().map(|_| Vec::with_capacity(rows)).collect();
    let threads = rayon::current_num_threads();
    let predictor = GroupPredictor::with_parts(model, reader, true)?;
    each_group(reader, &predictor, threads, |_, scores| Ok(scores.parts), &mut |parts: Vec<PartColumn>| {
        all.iter_mut().zip(parts).for_each(|(all, part)| all.extend(part.values));
        Ok(())
    })?;
    Ok(all)
}

/// Scores all row groups. `finish` runs on the worker threads, and `sink` runs on the calling thread, in row order.
fn each_group<T: Send>(
    reader: &DatasetReader,
    predictor: &GroupPredictor,
    threads: usize,
    finish: impl Fn(&GroupReader, GroupScores) -> Result<T> + Sync,
    sink: &mut dyn FnMut(T) -> Result<()>,
) -> Result<PredictReport> {
    let pool = thread_pool(threads)?;
    let threads = pool.current_num_threads();
    let work = |id: GroupId| predictor.finish(reader, id, &finish);
    let (mut rows, mut load, mut score) = (0, Duration::ZERO, Duration::ZERO);
    let mut groups = reader.groups().into_iter();
    // The scope runs on the calling thread, so that waiting for results does not block a thread of the pool.
    pool.in_place_scope(|scope| {
        let mut pending: VecDeque<Receiver<Result<TimedGroup<T>>>> = VecDeque::new();
        loop {
            interrupt::check()?;
            // One more group than there are threads is in progress, so that no worker is idle while this thread runs
            // `sink`.
            for id in groups.by_ref().take(threads + 1 - pending.len()) {
                let (sender, receiver) = sync_channel(1);
                let work = &work;
                scope.spawn(move |_| {
                    let _ = sender.send(work(id)); // fails only if the receiver was dropped after an error
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
