//! Adds each row's position in the table as the last column, so that a sort can keep the table's order among rows that
//! compare equal.

use crate::operator::{Operator, OperatorExec};
use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;
use std::sync::Arc;

/// Name of the added column.
pub(super) const POSITION: &str = "__position";

/// Number of low bits of a position, which hold the number of the row within its partition. The high bits hold the
/// number of the partition.
const ROW_BITS: u32 = 40;

/// Plan node that adds positions to the rows of a plan whose partitions are in order.
pub(super) type PositionExec = OperatorExec<AddPosition>;

/// The operator of [`PositionExec`].
#[derive(Debug, Clone)]
pub(super) struct AddPosition;

fn schema_with_position(input: &Arc<dyn ExecutionPlan>) -> SchemaRef {
    let schema = input.schema();
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(POSITION, DataType::UInt64, false)));
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

impl Operator for AddPosition {
    const NAME: &'static str = "PositionExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, input: &Self::Input) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(schema_with_position(input)),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        )
    }

    fn execute(
        &self,
        input: &Self::Input,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = schema_with_position(input);
        let batch_schema = schema.clone();
        let mut next = (partition as u64) << ROW_BITS;
        let numbered = input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let end = next + batch.num_rows() as u64;
            let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
            columns.push(Arc::new(UInt64Array::from_iter_values(next..end)));
            next = end;
            Ok(RecordBatch::try_new(batch_schema.clone(), columns)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, numbered)))
    }
}
