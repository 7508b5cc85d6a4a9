//! Separates planetree's physical operators from the engine's boilerplate. An [`Operator`] contains what is specific
//! to one operator. [`OperatorExec`] is the plan node that the engine sees, with the operator's input and properties.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions,
};
use std::fmt;
use std::sync::Arc;

/// A physical operator with at most one input. The engine does not repartition this input to use more threads.
pub trait Operator: fmt::Debug + Clone + Send + Sync + 'static {
    /// Name of the operator in plans.
    const NAME: &'static str;

    /// The plan that feeds the operator; `()` if it has none.
    type Input: OperatorInput;

    /// Returns the schema, partitioning and behaviour of the output.
    fn properties(&self, input: &Self::Input) -> PlanProperties;

    /// Starts one partition of the output.
    fn execute(
        &self,
        input: &Self::Input,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;

    /// Writes the operator's line in `EXPLAIN`.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)
    }

    /// Returns how the rows of the input must be distributed over its partitions.
    fn input_distribution(&self) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    /// Returns the order that the rows of each input partition must have; `None` if any order will do.
    fn input_ordering(&self) -> Option<OrderingRequirements> {
        None
    }

    /// Returns the expressions that the operator evaluates.
    fn expressions(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    /// Returns which statistics of the input [`statistics`](Self::statistics) uses.
    fn input_statistics(&self) -> ChildStats {
        ChildStats::Skip
    }

    /// Returns the statistics of one partition, or of all partitions if none is given. Returns `None` if they are
    /// unknown.
    fn statistics(&self, _input: &[Arc<Statistics>], _partition: Option<usize>) -> Option<Arc<Statistics>> {
        None
    }

    /// Returns the metrics for `EXPLAIN ANALYZE`.
    fn metrics(&self) -> Option<MetricsSet> {
        None
    }

    /// Returns the maximum number of rows per partition; `None` if there is no limit.
    fn fetch(&self) -> Option<usize> {
        None
    }

    /// Returns the operator with another maximum number of rows, or `None` if it cannot stop early.
    fn with_fetch(&self, _fetch: Option<usize>) -> Option<Self> {
        None
    }
}

/// Input of an operator: one plan or none.
pub trait OperatorInput: Clone + Send + Sync + Sized + 'static {
    /// Returns the plans of the input.
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>>;

    /// Creates an input from plans. Fails if their number is wrong.
    fn from_children(children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self>;
}

impl OperatorInput for () {
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn from_children(children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        match children.len() {
            0 => Ok(()),
            count => internal_err!("an operator without inputs was given {count} inputs"),
        }
    }
}

impl OperatorInput for Arc<dyn ExecutionPlan> {
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self]
    }

    fn from_children(mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        match (children.pop(), children.len()) {
            (Some(child), 0) => Ok(child),
            (_, others) => internal_err!("an operator with one input was given {others} others"),
        }
    }
}

/// The plan node of an [`Operator`].
#[derive(Clone)]
pub struct OperatorExec<O: Operator> {
    operator: O,
    input: O::Input,
    properties: Arc<PlanProperties>,
}

impl<O: Operator> OperatorExec<O> {
    /// Creates a node that applies an operator to an input.
    pub fn new(operator: O, input: O::Input) -> Self {
        let properties = Arc::new(operator.properties(&input));
        OperatorExec { operator, input, properties }
    }

    /// Returns the operator of this node.
    pub fn operator(&self) -> &O {
        &self.operator
    }
}

impl<O: Operator> fmt::Debug for OperatorExec<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", O::NAME, self.operator)
    }
}

impl<O: Operator> DisplayAs for OperatorExec<O> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.describe(f)
    }
}

impl<O: Operator> ExecutionPlan for OperatorExec<O> {
    fn name(&self) -> &str {
        O::NAME
    }

    fn static_name() -> &'static str {
        O::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.children()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let per_child = self.children().iter().map(|_| self.operator.input_distribution()).collect();
        InputDistributionRequirements::new(per_child)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.children().iter().map(|_| self.operator.input_ordering()).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in self.operator.expressions() {
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
        Ok(Arc::new(OperatorExec::new(self.operator.clone(), O::Input::from_children(children)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.operator.execute(&self.input, partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.operator.metrics()
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let known = self.operator.statistics(inputs, arguments.partition());
        Ok(known.unwrap_or_else(|| Arc::new(Statistics::new_unknown(&self.schema()))))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        self.children().iter().map(|_| self.operator.input_statistics()).collect()
    }

    fn with_fetch(&self, fetch: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let operator = self.operator.with_fetch(fetch)?;
        Some(Arc::new(OperatorExec { operator, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.operator.fetch()
    }
}
