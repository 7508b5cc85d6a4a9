//! Evaluates all rows of a scan in parallel tasks, and assembles the results in input order. A query may span several
//! tasks, so the rows of a task's last query are joined here with those of the next task's first query.

use super::judgments::Judgments;
use super::remote::{EvaluationInput, RemoteEvaluator};
use super::results::{Results, SeenQueries};
use super::trec::run_output;
use super::worker::{EvaluationSettings, PartialEvaluation, QueryJudge};
use crate::plan::{Engine, PlanBatches, ScanPlan};
use arrow::array::RecordBatch;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{Meter, SharedMeter};
use planetree_base::storage::{Location, TextOutput, interrupt};
use planetree_base::threads::thread_pool;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// Evaluates the rows of a scan plan.
pub struct EvaluationDriver<'a> {
    /// Engine that runs the plan.
    pub engine: &'a Engine,
    /// Metrics and options of the evaluation.
    pub settings: &'a EvaluationSettings,
    /// Location to which the ranking is written as a TREC run, if requested.
    pub run: Option<&'a Location>,
    /// Whether rows are sorted by query. If not, the driver checks that the rows of each query are contiguous.
    pub sorted: bool,
    /// Number of tasks whose rows fit in memory at the same time.
    pub tasks: usize,
    /// Progress meter, which counts rows if the plan has a single partition or the evaluation is remote.
    pub meter: SharedMeter,
}

impl EvaluationDriver<'_> {
    /// Evaluates all queries in this process. Results are in row order; `None` if the rows of a query are not
    /// contiguous and must be sorted first.
    pub fn judge(&self, plan: &ScanPlan) -> Result<Option<Results>> {
        let threads = self.engine.threads();
        let pool = thread_pool(threads)?;
        let mut assembly = ResultAssembly::new(self)?;
        let mut tasks = JudgeTasks::new(self.engine, plan)?;
        let cancelled = AtomicBool::new(false);
        // One more task waits than threads work, if there is room for it.
        let most_pending = if self.tasks < threads { self.tasks } else { threads + 1 };
        // The scope runs on this thread and not in the pool, so that waiting here does not block a worker.
        let outcome = pool.in_place_scope(|scope| {
            let mut pending: VecDeque<Receiver<Result<PartialEvaluation>>> = VecDeque::new();
            let mut collect = || -> Result<bool> {
                loop {
                    interrupt::check()?;
                    while pending.len() < most_pending
                        && let Some(task) = tasks.next_task(&*self.meter)?
                    {
                        let (sender, receiver) = sync_channel(1);
                        let cancelled = &cancelled;
                        scope.spawn(move |_| {
                            // Sending fails only if an error has already dropped the receiver.
                            let _ = sender.send(self.judge_task(plan, task, cancelled));
                        });
                        pending.push_back(receiver);
                    }
                    let Some(first) = pending.pop_front() else { return Ok(true) };
                    // A worker that panics drops its sender, and the scope propagates the panic.
                    if !assembly.add(first.recv().map_err(|_| Error::Interrupted)??)? {
                        return Ok(false);
                    }
                }
            };
            let outcome = collect();
            cancelled.store(true, Ordering::Relaxed);
            outcome
        });
        if outcome? { assembly.finish() } else { Ok(None) }
    }

    /// Evaluates all queries in other processes, with the same results as [`EvaluationDriver::judge`].
    pub(crate) fn judge_by(
        &self,
        remote: &dyn RemoteEvaluator,
        input: &EvaluationInput<'_>,
    ) -> Result<Option<Results>> {
        let mut assembly = ResultAssembly::new(self)?;
        let mut is_contiguous = true;
        remote.judge(input, &mut |partial| {
            let rows =
                |batches: &[RecordBatch]| batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            let ends = rows(&partial.head) + partial.tail.as_deref().map_or(0, rows);
            self.meter.advance(partial.between.rows + ends);
            is_contiguous = assembly.add(partial)?;
            Ok(is_contiguous)
        })?;
        if is_contiguous { assembly.finish() } else { Ok(None) }
    }

    fn judge_task(
        &self,
        plan: &ScanPlan,
        task: JudgeTask,
        cancelled: &AtomicBool,
    ) -> Result<PartialEvaluation> {
        let judge = QueryJudge::new(self.settings)?;
        let unless_cancelled = |batch: Result<RecordBatch>| {
            if cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { batch }
        };
        match task {
            JudgeTask::Partition(partition) => {
                let batches = self.engine.batches(plan, partition)?.map(unless_cancelled);
                judge.judge_batches(batches, self.sorted)
            }
            JudgeTask::Batches(batches) => judge.judge_batches(batches.into_iter().map(Ok), self.sorted),
        }
    }
}

/// The rows that one thread evaluates at a time.
enum JudgeTask {
    /// A whole partition.
    Partition(usize),
    /// A group of batches of the only partition.
    Batches(Vec<RecordBatch>),
}

/// The tasks of a plan: its partitions or, if there is only one, groups of its batches.
enum JudgeTasks {
    Partitions(std::ops::Range<usize>),
    Batches(PlanBatches),
}

impl JudgeTasks {
    fn new(engine: &Engine, plan: &ScanPlan) -> Result<Self> {
        Ok(match plan.partitions() {
            1 => JudgeTasks::Batches(engine.batches(plan, 0)?),
            count => JudgeTasks::Partitions(0..count),
        })
    }

    fn next_task(&mut self, meter: &dyn Meter) -> Result<Option<JudgeTask>> {
        /// Minimum number of rows per task. Handing fewer rows to a thread is not worthwhile.
        const MIN_ROWS: usize = 1 << 15;
        match self {
            JudgeTasks::Partitions(partitions) => Ok(partitions.next().map(JudgeTask::Partition)),
            JudgeTasks::Batches(batches) => {
                let (mut task, mut rows) = (Vec::new(), 0);
                while rows < MIN_ROWS
                    && let Some(batch) = batches.next().transpose()?
                {
                    rows += batch.num_rows();
                    meter.advance(batch.num_rows() as u64);
                    task.push(batch);
                }
                Ok((!task.is_empty()).then_some(JudgeTask::Batches(task)))
            }
        }
    }
}

/// Collects results in input order.
struct ResultAssembly<'a> {
    settings: &'a EvaluationSettings,
    judge: QueryJudge<'a>,
    /// Rows of the last query so far, which is not evaluated yet because it may continue in the next task.
    open: Vec<RecordBatch>,
    results: Results,
    seen: Option<SeenQueries>,
    run: Option<(TextOutput, &'a Location)>,
}

impl<'a> ResultAssembly<'a> {
    fn new(drive: &EvaluationDriver<'a>) -> Result<Self> {
        let tag = drive.settings.tag.clone().unwrap_or_default();
        let run = drive.run.map(|location| Ok((run_output(location, tag)?, location)));
        Ok(ResultAssembly {
            settings: drive.settings,
            judge: QueryJudge::new(drive.settings)?,
            open: Vec::new(),
            results: Results::new(drive.settings.metrics.len()),
            seen: (!drive.sorted).then(SeenQueries::default),
            run: run.transpose()?,
        })
    }

    /// Adds the results of the next task. Returns `false` if a query occurs again after other queries.
    fn add(&mut self, partial: PartialEvaluation) -> Result<bool> {
        self.open.extend(partial.head);
        let Some(tail) = partial.tail else { return Ok(true) };
        if !self.close()? {
            return Ok(false);
        }
        // The rows before those of the failure are evaluated by now, so that the first invalid row is reported.
        if let Some(failure) = partial.failure {
            return Err(failure);
        }
        self.open = tail;
        self.append(partial.between)
    }

    fn close(&mut self) -> Result<bool> {
        self.judge.judge_rows(&std::mem::take(&mut self.open))?;
        let results = self.judge.take_results();
        self.append(results)
    }

    fn append(&mut self, mut results: Results) -> Result<bool> {
        if let Some(seen) = &mut self.seen
            && !results.names().all(|name| seen.is_new(name))
        {
            return Ok(false);
        }
        if let Some((output, location)) = &mut self.run {
            let text = std::mem::take(&mut results.run);
            output.write_all(&text).map_err(|error| Error::io(&**location, "write", error))?;
        }
        self.results.append(results);
        Ok(true)
    }

    fn finish(mut self) -> Result<Option<Results>> {
        if !self.close()? {
            return Ok(None);
        }
        if let Some(Judgments::Qrels(location)) = &self.settings.judgments {
            let Results { overlap, unjudged, unranked, .. } = &self.results;
            overlap.check(&self.settings.input, location, [*unjudged, *unranked])?;
        }
        if let Some((output, _)) = self.run {
            output.commit()?;
        }
        Ok(Some(self.results))
    }
}
