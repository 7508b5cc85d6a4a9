//! Adds the row's place in the table as a last column, so that a sort can keep the table's order among equals.

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// The name of the column.
pub const POSITION: &str = "__position";

/// Bits of a row's number within its partition; those above are the partition.
const ROW_BITS: u32 = 40;

/// See the module.
#[derive(Debug)]
pub struct PositionExec {
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl PositionExec {
    /// The rows of a plan whose partitions are in order.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let before = input.schema();
        let mut fields: Vec<_> = before.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(POSITION, DataType::UInt64, false)));
        let schema = Arc::new(Schema::new_with_metadata(fields, before.metadata().clone()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        PositionExec { input, schema, properties: Arc::new(properties) }
    }
}

/// The only child of an operator.
pub fn unchanged_children(mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    match (children.pop(), children.is_empty()) {
        (Some(child), true) => Ok(child),
        _ => internal_err!("an operator with one input was given another number"),
    }
}

impl DisplayAs for PositionExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PositionExec")
    }
}

impl ExecutionPlan for PositionExec {
    fn name(&self) -> &str {
        "PositionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PositionExec::new(unchanged_children(children)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PositionExec::new(unchanged_children(children)?)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema.clone();
        let mut next = (partition as u64) << ROW_BITS;
        let numbered = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let end = next + batch.num_rows() as u64;
            let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
            columns.push(Arc::new(UInt64Array::from_iter_values(next..end)));
            next = end;
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), numbered)))
    }
}
