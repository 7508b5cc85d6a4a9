//! Running DataFusion's operators over our own readers. A plan is scanned partitions, sorted if need be;
//! what comes out is plain iterators of record batches. With `storage/`, the only place that knows async:
//! readers run on threads where they may wait, and whoever asks for batches waits on its own thread.

mod partition;

pub use partition::{Batches, Open};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::memory_pool::FairSpillPool;
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
use partition::{Failure, Partition};
use planetree_base::error::{Error, Result};
use std::sync::Arc;
use tokio::runtime::{Builder, Handle, Runtime};

/// Rows of a batch that goes through a sort.
pub const SORT_ROWS: usize = 1 << 12;

/// The same where there is little memory: a merge holds two batches of everything it merges.
const FEW_SORT_ROWS: usize = 1 << 10;

/// Below this a sort cannot even merge what it wrote to disk.
const LEAST_POOL: usize = 8 << 20;

/// What a sort should have for itself; with less, there is one sort instead of one a partition.
const SORT_BYTES: usize = 16 << 20;

/// What runs plans: threads, and the memory that sorts may take before they write to disk.
pub struct Engine {
    runtime: Runtime,
    context: Arc<TaskContext>,
    failure: Failure,
    threads: usize,
    /// Bytes that all sorts together may take.
    pool: usize,
}

/// Something that gives rows, in one or several partitions.
pub struct Plan(Arc<dyn ExecutionPlan>);

impl Engine {
    /// Starts an engine with some threads whose sorts stay below a number of bytes.
    pub fn new(threads: usize, memory_limit: u64) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("planetree-plan")
            .build()
            .map_err(|error| {
                Error::usage(format_args!("cannot start threads: {error}"), "lower --threads")
            })?;
        // The rest is for what is being read, decoded, copied and merged, which no pool counts.
        let pool = usize::try_from(memory_limit / 3).unwrap_or(usize::MAX).max(LEAST_POOL);
        let environment =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(pool))).build_arc();
        let batch_rows = if pool < SORT_BYTES { FEW_SORT_ROWS } else { SORT_ROWS };
        let mut config = SessionConfig::new().with_batch_size(batch_rows);
        let execution = &mut config.options_mut().execution;
        // What a sort keeps for merging its runs; it must not be most of what it has.
        execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(pool / 3);
        let context = TaskContext::default()
            .with_session_config(config)
            .with_runtime(environment.map_err(|error| failed(&error))?);
        Ok(Engine { runtime, context: Arc::new(context), failure: Failure::default(), threads, pool })
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Rows as readers give them, a partition a reader.
    pub fn scan(&self, schema: &SchemaRef, readers: Vec<Open>) -> Result<Plan> {
        let partition = |open: Open| -> Arc<dyn PartitionStream> {
            Arc::new(Partition { schema: schema.clone(), open, failure: self.failure.clone() })
        };
        let partitions = readers.into_iter().map(partition).collect();
        let scan = StreamingTableExec::try_new(schema.clone(), partitions, None, [], false, None);
        Ok(Plan(Arc::new(scan.map_err(|error| failed(&error))?)))
    }

    /// The same rows in one partition, in ascending order of some columns. What does not fit into memory
    /// is written to temporary files.
    pub fn sort(&self, plan: Plan, columns: &[&str]) -> Result<Plan> {
        let schema = plan.0.schema();
        let expressions = columns.iter().map(|name| Ok(PhysicalSortExpr::new_default(col(name, &schema)?)));
        let expressions: Result<Vec<_>, DataFusionError> = expressions.collect();
        let Some(order) = LexOrdering::new(expressions.map_err(|error| failed(&error))?) else {
            return Ok(plan);
        };
        let is_tight = self.pool / plan.partitions().max(1) < SORT_BYTES;
        let input = if is_tight { Arc::new(CoalescePartitionsExec::new(plan.0)) as _ } else { plan.0 };
        let sorted = SortExec::new(order.clone(), input).with_preserve_partitioning(true);
        Ok(Plan(Arc::new(SortPreservingMergeExec::new(order, Arc::new(sorted)))))
    }

    /// Starts one partition of a plan.
    pub fn batches(&self, plan: &Plan, partition: usize) -> Result<PlanBatches> {
        let _entered = self.runtime.enter(); // operators start their tasks here
        let stream = plan.0.execute(partition, self.context.clone()).map_err(|error| failed(&error))?;
        Ok(PlanBatches {
            stream: Some(stream),
            handle: self.runtime.handle().clone(),
            failure: self.failure.clone(),
        })
    }
}

impl Plan {
    /// How many partitions it has.
    pub fn partitions(&self) -> usize {
        self.0.output_partitioning().partition_count()
    }
}

/// The batches of one partition. The first error is the last item.
pub struct PlanBatches {
    stream: Option<SendableRecordBatchStream>,
    handle: Handle,
    failure: Failure,
}

impl Iterator for PlanBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let stream = self.stream.as_mut()?;
        match self.handle.block_on(stream.next()) {
            Some(Ok(batch)) => Some(Ok(batch)),
            Some(Err(error)) => {
                self.stream = None;
                // A reader's own error says more than what became of it on the way.
                Some(Err(self.failure.take().unwrap_or_else(|| failed(&error))))
            }
            None => {
                self.stream = None;
                None
            }
        }
    }
}

/// An engine's error as ours.
fn failed(error: &DataFusionError) -> Error {
    let root = error.find_root();
    let text = root.to_string();
    let text = text.lines().next().unwrap_or_default();
    match root {
        DataFusionError::ResourcesExhausted(_) => {
            Error::usage(format_args!("the memory limit is too small: {text}"), "raise --memory-limit")
        }
        DataFusionError::IoError(error) => Error::io("temporary files of a sort", "write", error),
        _ => Error::place("plan", text, "report this: it is a fault of planetree"),
    }
}

#[cfg(test)]
mod tests;
