//! Aggregation over rows that are in order. Rows of a key are side by side in our tables, so every partition is
//! aggregated by itself, run after run, and nothing is hashed or moved; what lies across two partitions is put
//! together in the end. If a key turns up again after others, all this is thrown away, and the rows are
//! aggregated as one stream, in their order.
//!
//! Results are held back until all rows are seen: a row a key, which any aggregation has to hold.

use super::in_order::InOrderExec;
use super::position::unchanged_children;
use super::stretch::{SeenKeys, Stretch, StretchMaker, Work, aggregate_rows};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::JoinSet;
use datafusion::common::tree_node::TreeNodeRecursion;
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
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is aggregated, and how.
#[derive(Debug, Clone)]
pub struct Aggregation {
    /// The keys.
    pub keys: Arc<PhysicalGroupBy>,
    /// The aggregates.
    pub aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// Which rows each aggregate looks at.
    pub filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// The order that rows of a key must have, if not that of the input.
    pub order: Vec<PhysicalSortExpr>,
    /// The columns before.
    pub input_schema: SchemaRef,
    /// The columns afterwards.
    pub schema: SchemaRef,
}

/// See the module.
#[derive(Debug)]
pub struct RunAggregateExec {
    aggregation: Aggregation,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl RunAggregateExec {
    /// Aggregates the rows of a plan whose partitions are in order.
    pub fn new(aggregation: Aggregation, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(aggregation.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            input.boundedness(),
        );
        RunAggregateExec { aggregation, input, properties: Arc::new(properties) }
    }
}

impl Aggregation {
    /// The same over one stream of rows, in any order of keys.
    pub fn at_once(&self, input: Arc<dyn ExecutionPlan>) -> Result<AggregateExec> {
        AggregateExec::try_new(
            AggregateMode::Single,
            self.keys.clone(),
            self.aggregates.clone(),
            self.filters.clone(),
            Arc::new(InOrderExec::with_order(input, LexOrdering::new(self.order.clone()))),
            self.input_schema.clone(),
        )
    }

    /// The order by key and within it, if one is wanted.
    fn sorted(&self) -> Option<LexOrdering> {
        if self.order.is_empty() {
            return None;
        }
        let keys = self.keys.input_exprs().into_iter().map(PhysicalSortExpr::new_default);
        LexOrdering::new(keys.chain(self.order.iter().cloned()))
    }

    fn work(&self) -> Result<Work> {
        Ok(Work {
            keys: self.keys.expr().iter().map(|(expression, _)| expression.clone()).collect(),
            arguments: aggregate_expressions(&self.aggregates, &AggregateMode::Single, 0)?,
            aggregates: self.aggregates.clone(),
            filters: self.filters.clone(),
            schema: self.schema.clone(),
        })
    }
}

impl DisplayAs for RunAggregateExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            self.aggregation.keys.expr().iter().map(|(expression, _)| expression.to_string()).collect();
        let aggregates: Vec<&str> = self.aggregation.aggregates.iter().map(|one| one.name()).collect();
        write!(f, "RunAggregateExec: gby=[{}], aggr=[{}]", keys.join(", "), aggregates.join(", "))
    }
}

impl ExecutionPlan for RunAggregateExec {
    fn name(&self) -> &str {
        "RunAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        // Rows that are sorted by key may be anywhere, as long as those of a key are together.
        InputDistributionRequirements::new(vec![match self.aggregation.order.is_empty() {
            true => Distribution::UnspecifiedDistribution,
            false => Distribution::KeyPartitioned(self.aggregation.keys.input_exprs()),
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.aggregation.sorted().map(OrderingRequirements::from)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let arguments = self.aggregation.aggregates.iter().flat_map(|aggregate| aggregate.expressions());
        let keys = self.aggregation.keys.expr().iter().map(|(expression, _)| expression.clone());
        let filters = self.aggregation.filters.iter().flatten().cloned();
        for expression in keys.chain(arguments).chain(filters) {
            if visit(&expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(RunAggregateExec::new(self.aggregation.clone(), unchanged_children(children)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(RunAggregateExec::new(self.aggregation.clone(), unchanged_children(children)?)))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (aggregation, input) = (self.aggregation.clone(), self.input.clone());
        let schema = self.schema();
        let all = async move {
            if let Some(results) = by_runs(&aggregation, &input, &context).await? {
                return Ok(futures::stream::iter(results.into_iter().map(Ok)).boxed());
            }
            let input = reset_plan_states(input)?;
            Ok::<_, DataFusionError>(aggregation.at_once(input)?.execute(0, context)?.boxed())
        };
        let stream = futures::stream::once(all).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

/// The results of all runs in their order; `None` if a key returned after others.
async fn by_runs(
    aggregation: &Aggregation,
    input: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<Option<Vec<RecordBatch>>> {
    let work = Arc::new(aggregation.work()?);
    let held = MemoryConsumer::new("RunAggregateExec").register(context.memory_pool());
    let given_up = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let partitions = input.output_partitioning().partition_count();
    for partition in 0..partitions {
        let stream = input.execute(partition, context.clone())?;
        let (work, given_up) = (work.clone(), given_up.clone());
        tasks.spawn(async move { (partition, stretch(&work, stream, &given_up).await) });
    }
    let mut stretches: Vec<Option<Stretch>> = (0..partitions).map(|_| None).collect();
    while let Some(done) = tasks.join_next().await {
        let (partition, stretch) = done.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?;
        let Some(stretch) = stretch? else { return Ok(None) };
        held.try_grow(size_of(&stretch.between))?;
        stretches[partition] = Some(stretch);
    }
    let stretches = stretches.into_iter().flatten();
    tokio::task::block_in_place(|| assemble(&work, stretches, &held))
}

async fn stretch(
    work: &Work,
    mut stream: SendableRecordBatchStream,
    given_up: &AtomicBool,
) -> Result<Option<Stretch>> {
    let mut maker = StretchMaker::new(work)?;
    while let Some(batch) = stream.next().await {
        if given_up.load(Ordering::Relaxed) || !maker.add(&batch?)? {
            given_up.store(true, Ordering::Relaxed);
            return Ok(None);
        }
    }
    maker.finish().map(Some)
}

/// Puts stretches together, in order.
fn assemble(
    work: &Work,
    stretches: impl Iterator<Item = Stretch>,
    held: &MemoryReservation,
) -> Result<Option<Vec<RecordBatch>>> {
    let (mut results, mut open) = (Vec::new(), Vec::new());
    for Stretch { head, between, tail } in stretches {
        open.extend(head);
        let Some(tail) = tail else { continue };
        let Some(closed) = aggregate_rows(work, &std::mem::replace(&mut open, tail))? else {
            return Ok(None);
        };
        held.try_grow(size_of(&closed))?;
        results.extend(closed);
        results.extend(between);
    }
    let Some(closed) = aggregate_rows(work, &open)? else { return Ok(None) };
    results.extend(closed);
    let mut seen = SeenKeys::default();
    for batch in &results {
        if !seen.add(&batch.columns()[..work.keys.len()])? {
            return Ok(None);
        }
    }
    Ok(Some(results))
}

fn size_of(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::get_array_memory_size).sum()
}
