//! Concatenates the partitions of a plan in their order. All partitions run concurrently, and each may be a few batches
//! ahead of the output. If a sort order is required, the input is a single partition in that order.

use crate::operator::{Operator, OperatorExec};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements};
use datafusion::physical_plan::execution_plan::EvaluationType;
use datafusion::physical_plan::statistics::ChildStats;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use futures::StreamExt;
use std::sync::Arc;

/// Number of batches buffered per partition.
const BUFFERED_BATCHES: usize = 4;

/// Plan node that concatenates the partitions of its input in order.
pub(super) type InOrderExec = OperatorExec<ConcatPartitions>;

/// The operator of [`InOrderExec`].
#[derive(Debug, Clone, Default)]
pub(super) struct ConcatPartitions {
    /// Required order of the rows; `None` keeps the order of the input.
    pub order: Option<LexOrdering>,
}

impl Operator for ConcatPartitions {
    const NAME: &'static str = "InOrderExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, input: &Self::Input) -> PlanProperties {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        )
        .with_evaluation_type(EvaluationType::Eager)
    }

    fn input_distribution(&self) -> Distribution {
        match self.order {
            Some(_) => Distribution::SinglePartition,
            None => Distribution::UnspecifiedDistribution,
        }
    }

    fn input_ordering(&self) -> Option<OrderingRequirements> {
        self.order.clone().map(OrderingRequirements::from)
    }

    fn execute(
        &self,
        input: &Self::Input,
        _: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = input.output_partitioning().partition_count();
        if partitions == 1 {
            return input.execute(0, context);
        }
        let schema = input.schema();
        let start = |partition| {
            let mut stream = RecordBatchReceiverStream::builder(schema.clone(), BUFFERED_BATCHES);
            let (sender, input, context) = (stream.tx(), input.clone(), context.clone());
            stream.spawn(async move {
                let mut batches = input.execute(partition, context)?;
                while let Some(batch) = batches.next().await {
                    let failed = batch.is_err();
                    if sender.send(batch).await.is_err() || failed {
                        break; // the receiver is gone, or the input failed
                    }
                }
                Ok(())
            });
            stream.build()
        };
        let streams: Vec<_> = (0..partitions).map(start).collect();
        let concatenated = futures::stream::iter(streams).flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, concatenated)))
    }

    fn input_statistics(&self) -> ChildStats {
        ChildStats::At(None)
    }

    fn statistics(&self, input: &[Arc<Statistics>], _: Option<usize>) -> Option<Arc<Statistics>> {
        input.first().cloned()
    }
}
