//! Aggregates rows that are in order. Rows with the same key are adjacent in planetree's tables, so each partition is
//! aggregated on its own, one run (range of adjacent rows with the same key) after another, without hashing or
//! shuffling. Runs that cross a partition boundary are joined at the end. If a key occurs again after other keys, the
//! results are discarded, and all rows are aggregated as one stream in their order.
//!
//! The results are held in memory until all rows have been read. There is one row per key, which any aggregation has to
//! hold.

use super::in_order::{ConcatPartitions, InOrderExec};
use super::partition::{PartitionAggregator, PartitionResult, RunSpec, SeenKeys, aggregate_rows};
use crate::operator::{Operator, OperatorExec};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::JoinSet;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, PhysicalGroupBy, aggregate_expressions,
};
use datafusion::physical_plan::execution_plan::{EmissionType, reset_plan_states};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Plan node that aggregates the rows of a plan whose partitions are in order.
pub(super) type RunAggregateExec = OperatorExec<Aggregation>;

/// The operator of [`RunAggregateExec`]: its keys and aggregates.
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    /// The grouping keys.
    pub keys: Arc<PhysicalGroupBy>,
    /// The aggregate functions.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// The `FILTER` of each aggregate.
    pub filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// Required order of the rows with the same key. If it is empty, they keep the order of the input.
    pub order: Vec<PhysicalSortExpr>,
    /// Columns of the input.
    pub input_schema: SchemaRef,
    /// Columns of the result.
    pub schema: SchemaRef,
}

impl Aggregation {
    /// Returns the same aggregation over a single stream, in which a key may occur again after other keys.
    pub(crate) fn single_stream(&self, input: Arc<dyn ExecutionPlan>) -> Result<AggregateExec> {
        let order = LexOrdering::new(self.order.clone());
        AggregateExec::try_new(
            AggregateMode::Single,
            self.keys.clone(),
            self.aggregates.clone(),
            self.filters.clone(),
            Arc::new(InOrderExec::new(ConcatPartitions { order }, input)),
            self.input_schema.clone(),
        )
    }

    /// Returns the order by keys and then by `order`, or `None` if no order is required.
    fn sort_order(&self) -> Option<LexOrdering> {
        if self.order.is_empty() {
            return None;
        }
        let keys = self.keys.input_exprs().into_iter().map(PhysicalSortExpr::new_default);
        LexOrdering::new(keys.chain(self.order.iter().cloned()))
    }

    fn run_spec(&self) -> Result<RunSpec> {
        Ok(RunSpec {
            keys: self.keys.expr().iter().map(|(expression, _)| expression.clone()).collect(),
            arguments: aggregate_expressions(&self.aggregates, &AggregateMode::Single, 0)?,
            aggregates: self.aggregates.clone(),
            filters: self.filters.clone(),
            schema: self.schema.clone(),
        })
    }
}

impl Operator for Aggregation {
    const NAME: &'static str = "RunAggregateExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, input: &Self::Input) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(self.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            input.boundedness(),
        )
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.keys.expr().iter().map(|(expression, _)| expression.to_string()).collect();
        let aggregates: Vec<&str> = self.aggregates.iter().map(|aggregate| aggregate.name()).collect();
        write!(f, "RunAggregateExec: gby=[{}], aggr=[{}]", keys.join(", "), aggregates.join(", "))
    }

    fn input_distribution(&self) -> Distribution {
        // Sorted rows may be in any partition, as long as all rows with the same key are in the same partition.
        match self.order.is_empty() {
            true => Distribution::UnspecifiedDistribution,
            false => Distribution::KeyPartitioned(self.keys.input_exprs()),
        }
    }

    fn input_ordering(&self) -> Option<OrderingRequirements> {
        self.sort_order().map(OrderingRequirements::from)
    }

    fn expressions(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let keys = self.keys.expr().iter().map(|(expression, _)| expression.clone());
        let arguments = self.aggregates.iter().flat_map(|aggregate| aggregate.expressions());
        let filters = self.filters.iter().flatten().cloned();
        keys.chain(arguments).chain(filters).collect()
    }

    fn execute(
        &self,
        input: &Self::Input,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (aggregation, input) = (self.clone(), input.clone());
        let all = async move {
            if let Some(results) = by_runs(&aggregation, &input, &context).await? {
                return Ok(futures::stream::iter(results.into_iter().map(Ok)).boxed());
            }
            let input = reset_plan_states(input)?;
            Ok::<_, DataFusionError>(aggregation.single_stream(input)?.execute(0, context)?.boxed())
        };
        let stream = futures::stream::once(all).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream)))
    }
}

/// Aggregates all runs and returns the results in order. Returns `None` if a key occurs again after other keys.
async fn by_runs(
    aggregation: &Aggregation,
    input: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<Option<Vec<RecordBatch>>> {
    let spec = Arc::new(aggregation.run_spec()?);
    let memory = MemoryConsumer::new("RunAggregateExec").register(context.memory_pool());
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let partition_count = input.output_partitioning().partition_count();
    for partition in 0..partition_count {
        let stream = input.execute(partition, context.clone())?;
        let (spec, cancelled) = (spec.clone(), cancelled.clone());
        tasks.spawn(async move { (partition, aggregate_partition(&spec, stream, &cancelled).await) });
    }
    let mut partitions: Vec<Option<PartitionResult>> = (0..partition_count).map(|_| None).collect();
    while let Some(done) = tasks.join_next().await {
        let (partition, result) = done.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?;
        let Some(result) = result? else { return Ok(None) };
        memory.try_grow(size_of(&result.inner))?;
        partitions[partition] = Some(result);
    }
    let partitions = partitions.into_iter().flatten();
    tokio::task::block_in_place(|| join_partitions(&spec, partitions, &memory))
}

/// Aggregates one partition. Returns `None` if a key occurs again after other keys in any partition.
async fn aggregate_partition(
    spec: &RunSpec,
    mut stream: SendableRecordBatchStream,
    cancelled: &AtomicBool,
) -> Result<Option<PartitionResult>> {
    let mut aggregator = PartitionAggregator::new(spec)?;
    while let Some(batch) = stream.next().await {
        if cancelled.load(Ordering::Relaxed) || !aggregator.add(&batch?)? {
            cancelled.store(true, Ordering::Relaxed);
            return Ok(None);
        }
    }
    aggregator.finish().map(Some)
}

/// Joins the results of the partitions in order, and aggregates the runs that cross their boundaries. Returns `None` if
/// a key occurs again after other keys.
fn join_partitions(
    spec: &RunSpec,
    partitions: impl Iterator<Item = PartitionResult>,
    memory: &MemoryReservation,
) -> Result<Option<Vec<RecordBatch>>> {
    let (mut results, mut open) = (Vec::new(), Vec::new());
    for PartitionResult { first, inner, last } in partitions {
        open.extend(first);
        let Some(last) = last else { continue };
        let Some(closed) = aggregate_rows(spec, &std::mem::replace(&mut open, last))? else {
            return Ok(None);
        };
        memory.try_grow(size_of(&closed))?;
        results.extend(closed);
        results.extend(inner);
    }
    let Some(closed) = aggregate_rows(spec, &open)? else { return Ok(None) };
    results.extend(closed);
    let mut seen = SeenKeys::default();
    for batch in &results {
        if !seen.add(&batch.columns()[..spec.keys.len()])? {
            return Ok(None);
        }
    }
    Ok(Some(results))
}

fn size_of(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::get_array_memory_size).sum()
}
