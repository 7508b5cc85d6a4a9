//! Runs DataFusion query plans on rows that planetree's readers produce. A plan scans the rows in partitions and
//! optionally sorts them. Its output is a plain iterator of record batches for each partition. Async code is confined
//! to this module: readers run on blocking threads, and the thread that consumes batches blocks until they arrive.

mod partition;

pub use partition::{BatchIterator, OpenReader};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::expressions::col;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use partition::{ReaderFailure, ReaderPartition};
use planetree_base::error::{Error, Result, copy_of};
use planetree_base::panics;
use planetree_base::size::shown_size;
use planetree_base::storage::require_open_files;
use planetree_base::threads::start_runtime;
use planetree_engine::ReservingPool;
use std::sync::Arc;
use tokio::runtime::{Handle, Runtime};

/// Rows per batch of a sort.
pub(crate) const SORT_ROWS: usize = 1 << 12;

/// Rows per batch of a sort with little memory. Such a sort needs smaller batches, because a merge holds two batches
/// of each of its inputs in memory.
const SMALL_SORT_ROWS: usize = 1 << 10;

/// Rows per batch if the rows need not be sorted and there is enough memory for such batches.
pub(crate) const BATCH_ROWS: usize = 1 << 15;

/// Bytes for the program and its libraries.
const PROGRAM: u64 = 80 << 20;

/// Minimum size in bytes of the memory pool for sorts. With less memory, a sort cannot merge the rows that it spilled
/// to disk.
const MIN_POOL: usize = 8 << 20;

/// Minimum memory per sort in bytes. If less is available, there is one sort for all partitions instead of one sort
/// per partition. It is several times what a sort reserves for merging, because the rest is for the rows.
const SORT_BYTES: usize = 32 << 20;

/// Open files that an evaluation needs: those of the program, and those of each thread that sorts more than fits in
/// memory.
const FILES: u64 = 32;
const FILES_PER_THREAD: u64 = 16;

/// Runs plans with a number of threads, and with a limit on the memory that sorts may use before they spill to disk.
pub struct Engine {
    runtime: Runtime,
    context: Arc<TaskContext>,
    failure: ReaderFailure,
    threads: usize,
    /// Bytes that all sorts together may use, without the reserve for merging.
    sort_pool: usize,
    memory_limit: u64,
}

/// A plan that produces rows in one or several partitions.
pub struct ScanPlan(Arc<dyn ExecutionPlan>);

impl Engine {
    /// Starts an engine with `threads` threads. Sorts and merges use up to a third of `memory_limit`.
    pub fn new(threads: usize, memory_limit: u64) -> Result<Self> {
        require_open_files(FILES + FILES_PER_THREAD * threads as u64, "an evaluation")?;
        let runtime = start_runtime("planetree-plan", threads, panics::guard_thread, |_| ())?;
        let pool = pool_of(memory_limit);
        let reserve = pool / 3;
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(ReservingPool::new(pool, reserve)))
            .build_arc();
        let batch_rows = if pool < SORT_BYTES / 2 { SMALL_SORT_ROWS } else { SORT_ROWS };
        let mut config = SessionConfig::new().with_batch_size(batch_rows);
        let execution = &mut config.options_mut().execution;
        // This memory is reserved by each sort for merging the rows that were spilled to disk. All of them together fit
        // in the reserve.
        let sorts = (pool / SORT_BYTES).clamp(1, threads.max(1));
        execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(reserve / sorts);
        let context = TaskContext::default()
            .with_session_config(config)
            .with_runtime(environment.map_err(|error| failed(&error))?);
        let failure = ReaderFailure::default();
        let context = Arc::new(context);
        Ok(Engine { runtime, context, failure, threads, sort_pool: pool - reserve, memory_limit })
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns whether the memory limit leaves this many bytes besides the program and the pool.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        unpooled(self.memory_limit) >= bytes
    }

    /// Returns how many tasks fit in memory at the same time, at least one, if each reads and evaluates rows with this many
    /// bytes.
    pub(crate) fn tasks(&self, bytes: u64) -> usize {
        let tasks = unpooled(self.memory_limit) / bytes.max(1);
        usize::try_from(tasks).unwrap_or(usize::MAX).clamp(1, self.threads.max(1))
    }

    /// Fails if the memory limit is too small for a single task, which needs this many bytes.
    pub(crate) fn require(&self, bytes: u64) -> Result<()> {
        if self.has_room(bytes) {
            return Ok(());
        }
        /// More bytes than any machine has. A damaged file may claim to need more.
        const MOST: u64 = 1 << 50;
        let bytes = bytes.min(MOST);
        // At least half of what a limit leaves besides the program is not in the pool.
        let (mut too_small, mut least) = (self.memory_limit >> 20, (PROGRAM >> 20) + (bytes >> 19) + 18);
        while too_small + 1 < least {
            let middle = too_small.midpoint(least);
            match unpooled(middle << 20) < bytes {
                true => too_small = middle,
                false => least = middle,
            }
        }
        Err(Error::usage(
            format_args!(
                "--memory-limit {} is too small: the evaluation needs about {least} MiB",
                shown_size(self.memory_limit)
            ),
            "raise --memory-limit, or write the predictions in smaller row groups",
        ))
    }

    /// Creates a plan that reads the rows of the readers, with one partition per reader.
    pub fn scan(&self, schema: &SchemaRef, readers: Vec<OpenReader>) -> Result<ScanPlan> {
        let partition = |open: OpenReader| -> Arc<dyn PartitionStream> {
            Arc::new(ReaderPartition { schema: schema.clone(), open, failure: self.failure.clone() })
        };
        let partitions = readers.into_iter().map(partition).collect();
        let scan = StreamingTableExec::try_new(schema.clone(), partitions, None, [], false, None);
        Ok(ScanPlan(Arc::new(scan.map_err(|error| failed(&error))?)))
    }

    /// Sorts the rows in ascending order of the columns, into one partition. The sort spills to temporary files if
    /// memory is short.
    pub fn sort(&self, plan: ScanPlan, columns: &[&str]) -> Result<ScanPlan> {
        let schema = plan.0.schema();
        let expressions = columns.iter().map(|name| Ok(PhysicalSortExpr::new_default(col(name, &schema)?)));
        let expressions: Result<Vec<_>, DataFusionError> = expressions.collect();
        let Some(order) = LexOrdering::new(expressions.map_err(|error| failed(&error))?) else {
            return Ok(plan);
        };
        let is_memory_short = self.sort_pool / plan.partitions().max(1) < SORT_BYTES;
        let input = if is_memory_short { Arc::new(CoalescePartitionsExec::new(plan.0)) as _ } else { plan.0 };
        let sorted = SortExec::new(order.clone(), input).with_preserve_partitioning(true);
        Ok(ScanPlan(Arc::new(SortPreservingMergeExec::new(order, Arc::new(sorted)))))
    }

    /// Executes one partition of a plan and returns its batches.
    pub fn batches(&self, plan: &ScanPlan, partition: usize) -> Result<PlanBatches> {
        let _entered = self.runtime.enter(); // operators spawn tasks on this runtime
        let stream = plan.0.execute(partition, self.context.clone()).map_err(|error| failed(&error))?;
        Ok(PlanBatches {
            stream: Some(stream),
            handle: self.runtime.handle().clone(),
            failure: self.failure.clone(),
        })
    }
}

/// Returns the bytes that sorts and merges may use. The rest of the limit is for reading, decoding, copying and evaluating,
/// whose memory the pool does not track.
fn pool_of(memory_limit: u64) -> usize {
    let pool = (memory_limit / 3).min(memory_limit.saturating_sub(PROGRAM) / 2);
    usize::try_from(pool).unwrap_or(usize::MAX).max(MIN_POOL)
}

/// Returns the bytes that a memory limit leaves besides the program and the pool.
fn unpooled(memory_limit: u64) -> u64 {
    memory_limit.saturating_sub(PROGRAM).saturating_sub(pool_of(memory_limit) as u64)
}

impl ScanPlan {
    /// Returns the number of partitions.
    pub fn partitions(&self) -> usize {
        self.0.output_partitioning().partition_count()
    }
}

/// The batches of one partition, up to and including the first error.
pub struct PlanBatches {
    stream: Option<SendableRecordBatchStream>,
    handle: Handle,
    failure: ReaderFailure,
}

impl Iterator for PlanBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let stream = self.stream.as_mut()?;
        match self.handle.block_on(stream.next()) {
            Some(Ok(batch)) => Some(Ok(batch)),
            Some(Err(error)) => {
                self.stream = None;
                // The reader's own error has more detail than the DataFusion error that wraps it.
                Some(Err(self.failure.take().unwrap_or_else(|| failed(&error))))
            }
            None => {
                self.stream = None;
                None
            }
        }
    }
}

/// Converts a DataFusion error to a planetree error.
fn failed(error: &DataFusionError) -> Error {
    let root = error.find_root();
    let text = root.to_string();
    let text = text.lines().next().unwrap_or_default();
    match root {
        DataFusionError::ResourcesExhausted(_) => {
            Error::usage(format_args!("memory limit too small: {text}"), "raise --memory-limit")
        }
        DataFusionError::IoError(error) => Error::io("temporary files of a sort", "write", copy_of(error)),
        _ => Error::bug("plan", text),
    }
}

#[cfg(test)]
mod tests;
