//! Judging all rows of a plan: stretches on all cores, their results in the order of the input. The query
//! that a stretch ends with may go on in the next one, so both ends are put together here.

use super::remote::{EvaluationJob, RemoteEvaluator};
use super::results::{Results, SeenQueries};
use super::trec::run_output;
use super::worker::{Settings, Stretch, Worker};
use crate::plan::{Engine, Plan, PlanBatches};
use arrow::array::RecordBatch;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{Meter, SharedMeter};
use planetree_base::storage::{Location, TextOutput, interrupt};
use rayon::ThreadPoolBuilder;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// What is done with the rows of a plan.
pub struct Drive<'a> {
    /// What runs the plan.
    pub engine: &'a Engine,
    /// What is wanted.
    pub settings: &'a Settings,
    /// Where the ranking is written to.
    pub run: Option<&'a Location>,
    /// Whether the rows are sorted by query, so that no query can return.
    pub sorted: bool,
    /// Told of the rows that the plan gives, where it gives them one after another.
    pub meter: SharedMeter,
}

impl Drive<'_> {
    /// The results of all queries, in the order of the rows; `None` if the rows of a query are not
    /// together, and must be sorted first.
    pub fn judge(&self, plan: &Plan) -> Result<Option<Results>> {
        let threads = self.engine.threads();
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
            Error::usage(format_args!("cannot start threads: {error}"), "lower --threads")
        })?;
        let mut assembly = Assembly::new(self)?;
        let mut units = Units::new(self.engine, plan)?;
        let given_up = AtomicBool::new(false);
        // The scope runs on this thread, not on the pool's: waiting here keeps no worker from its work.
        let outcome = pool.in_place_scope(|scope| {
            let mut pending: VecDeque<Receiver<Result<Stretch>>> = VecDeque::new();
            let mut collect = || -> Result<bool> {
                loop {
                    interrupt::check()?;
                    while pending.len() <= threads
                        && let Some(unit) = units.next_unit(&*self.meter)?
                    {
                        let (sender, receiver) = sync_channel(1);
                        let given_up = &given_up;
                        scope.spawn(move |_| {
                            let _ = sender.send(self.judge_unit(plan, unit, given_up)); // nobody waits after an error
                        });
                        pending.push_back(receiver);
                    }
                    let Some(first) = pending.pop_front() else { return Ok(true) };
                    // A worker that panics hangs up; the scope passes its panic on.
                    if !assembly.add(first.recv().map_err(|_| Error::Interrupted)??)? {
                        return Ok(false);
                    }
                }
            };
            let outcome = collect();
            given_up.store(true, Ordering::Relaxed);
            outcome
        });
        if outcome? { assembly.finish() } else { Ok(None) }
    }

    /// The same by others, who hold the rows.
    pub fn judge_by(
        &self,
        remote: &dyn RemoteEvaluator,
        judged: &EvaluationJob<'_>,
    ) -> Result<Option<Results>> {
        let mut assembly = Assembly::new(self)?;
        let mut is_together = true;
        remote.judge(judged, &mut |stretch| {
            let rows =
                |batches: &[RecordBatch]| batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            let ends = rows(&stretch.head) + stretch.tail.as_deref().map_or(0, rows);
            self.meter.advance(stretch.between.rows + ends);
            is_together = assembly.add(stretch)?;
            Ok(is_together)
        })?;
        if is_together { assembly.finish() } else { Ok(None) }
    }

    fn judge_unit(&self, plan: &Plan, unit: Unit, given_up: &AtomicBool) -> Result<Stretch> {
        let worker = Worker::new(self.settings);
        let go_on = |batch: Result<RecordBatch>| {
            if given_up.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { batch }
        };
        match unit {
            Unit::Partition(partition) => {
                worker.judge_stretch(self.engine.batches(plan, partition)?.map(go_on))
            }
            Unit::Rows(batches) => worker.judge_stretch(batches.into_iter().map(Ok)),
        }
    }
}

/// What one worker does at a time.
enum Unit {
    /// All of a partition.
    Partition(usize),
    /// Some rows of the only partition.
    Rows(Vec<RecordBatch>),
}

/// The units of a plan: its partitions or, if there is only one, stretches of its rows.
enum Units {
    Partitions(std::ops::Range<usize>),
    Rows(PlanBatches),
}

impl Units {
    fn new(engine: &Engine, plan: &Plan) -> Result<Self> {
        Ok(match plan.partitions() {
            1 => Units::Rows(engine.batches(plan, 0)?),
            count => Units::Partitions(0..count),
        })
    }

    fn next_unit(&mut self, meter: &dyn Meter) -> Result<Option<Unit>> {
        /// Rows of a unit: enough work to be worth handing over.
        const ROWS: usize = 1 << 15;
        match self {
            Units::Partitions(partitions) => Ok(partitions.next().map(Unit::Partition)),
            Units::Rows(batches) => {
                let (mut unit, mut rows) = (Vec::new(), 0);
                while rows < ROWS
                    && let Some(batch) = batches.next().transpose()?
                {
                    rows += batch.num_rows();
                    meter.advance(batch.num_rows() as u64);
                    unit.push(batch);
                }
                Ok((!unit.is_empty()).then_some(Unit::Rows(unit)))
            }
        }
    }
}

/// Results as they come in, in order.
struct Assembly<'a> {
    worker: Worker<'a>,
    /// The rows of the query that may go on.
    open: Vec<RecordBatch>,
    results: Results,
    seen: Option<SeenQueries>,
    run: Option<(TextOutput, &'a Location)>,
}

impl<'a> Assembly<'a> {
    fn new(drive: &Drive<'a>) -> Result<Self> {
        let tag = drive.settings.tag.clone().unwrap_or_default();
        let run = drive.run.map(|location| Ok((run_output(location, tag)?, location)));
        Ok(Assembly {
            worker: Worker::new(drive.settings),
            open: Vec::new(),
            results: Results::new(drive.settings.metrics.len()),
            seen: (!drive.sorted).then(SeenQueries::default),
            run: run.transpose()?,
        })
    }

    /// Adds a stretch; `false` if a query returned.
    fn add(&mut self, stretch: Stretch) -> Result<bool> {
        self.open.extend(stretch.head);
        let Some(tail) = stretch.tail else { return Ok(true) };
        Ok(self.close()? && {
            self.open = tail;
            self.append(stretch.between)?
        })
    }

    fn close(&mut self) -> Result<bool> {
        self.worker.judge_rows(&std::mem::take(&mut self.open))?;
        let results = self.worker.take_results();
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
            output.write_all(&text).map_err(|error| Error::io(&**location, "write", &error))?;
        }
        self.results.append(results);
        Ok(true)
    }

    fn finish(mut self) -> Result<Option<Results>> {
        if !self.close()? {
            return Ok(None);
        }
        if let Some((output, _)) = self.run {
            output.commit()?;
        }
        Ok(Some(self.results))
    }
}
