//! Merging answers on executors: each merge task sums some blocks of all shares. So the amount of data that the driver
//! receives does not grow with the number of executors.
//!
//! ```text
//! shares: answers in blocks ──by block──► merge tasks: sums over all shares ──► driver
//! ```

use super::cells::merge_blocks;
use super::executor::name;
use super::node::{BLOCK, ReceivedAnswer, put_together, schema, to_batches};
use super::task::Answer;
use arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use planetree_sql::{Operator, OperatorExec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks per merge task. Blocks are assigned by hash, which is balanced only for many of them.
const BLOCKS_EACH: usize = 4;

/// Share number of an answer that was merged over all shares.
pub const ALL_SHARES: u64 = u64::MAX;

/// How answers are merged on executors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergePlan {
    /// Number of merge tasks.
    pub mergers: usize,
    /// Whether cells have weights.
    pub weighted: bool,
}

impl MergePlan {
    /// Number of blocks per answer.
    pub fn blocks(&self) -> usize {
        self.mergers * BLOCKS_EACH
    }

    /// Adds merging to a plan.
    pub fn of(&self, answers: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let by_block = Partitioning::Hash(vec![col(BLOCK, &schema())?], self.mergers);
        let shuffled = RepartitionExec::try_new(answers, by_block)?;
        Ok(Arc::new(MergeExec::new(MergeBlocks { weighted: self.weighted }, Arc::new(shuffled))))
    }
}

/// Plan node that sums blocks; its input is partitioned by block.
pub type MergeExec = OperatorExec<MergeBlocks>;

/// The operator of [`MergeExec`].
#[derive(Debug, Clone)]
pub struct MergeBlocks {
    /// Whether cells have weights.
    pub weighted: bool,
}

impl Operator for MergeBlocks {
    const NAME: &'static str = "MergeExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, answers: &Self::Input) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(answers.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        )
    }

    fn execute(
        &self,
        answers: &Self::Input,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (answers, weighted) = (answers.execute(partition, context)?, self.weighted);
        let merged = async move {
            let batches: Vec<RecordBatch> = answers.try_collect().await?;
            let merged = tokio::task::spawn_blocking(move || merge(&batches, weighted)).await;
            let merged = merged.map_err(|error| DataFusionError::Execution(error.to_string()))??;
            Ok::<_, DataFusionError>(stream::iter(merged))
        };
        let merged = stream::once(merged).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), merged)))
    }
}

/// Sums answers by block. Answers that are not blocks pass through.
fn merge(batches: &[RecordBatch], weighted: bool) -> Result<Vec<Result<RecordBatch>>> {
    let damaged = || DataFusionError::Execution("an answer arrived damaged".to_owned());
    let mut blocks: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    let mut merged = Vec::new();
    for ((share, block), ReceivedAnswer { bytes, sender }) in put_together(batches).ok_or_else(damaged)? {
        match Answer::from_bytes(&bytes).map_err(|_| damaged())? {
            Answer::Level(cells) => blocks.entry(block).or_default().extend(cells),
            other => merged.extend(to_batches(share, block, &other, &sender)),
        }
    }
    for (block, of_shares) in blocks {
        let bytes: Vec<&[u8]> = of_shares.iter().map(Vec::as_slice).collect();
        let cells = merge_blocks(&bytes, weighted).map_err(|_| damaged())?;
        let answer = Answer::Merged { shares: of_shares.len() as u64, cells };
        merged.extend(to_batches(ALL_SHARES, block, &answer, &name()));
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_merged_and_other_answers_pass_through() {
        let cells = |count: u8| vec![1, 2, count, 2 * count, 0, count, 2 * count, 1];
        let level = |count| Answer::Level(vec![cells(count)]);
        let lacking = Answer::MissingState;
        let sent =
            [(0, 0, &level(1)), (0, 1, &level(2)), (1, 0, &level(3)), (1, 1, &level(4)), (2, 0, &lacking)];
        let batches =
            sent.into_iter().flat_map(|(share, block, answer)| to_batches(share, block, answer, "far"));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_>>().unwrap();
        let merged: Vec<RecordBatch> =
            merge(&batches, false).unwrap().into_iter().collect::<Result<_>>().unwrap();
        let merged = put_together(&merged).unwrap();
        let answers: Vec<_> = merged
            .iter()
            .map(|(place, received)| (*place, Answer::from_bytes(&received.bytes).unwrap()))
            .collect();
        let sum = |count| Answer::Merged { shares: 2, cells: cells(count) };
        assert_eq!(
            answers,
            [((2, 0), Answer::MissingState), ((ALL_SHARES, 0), sum(4)), ((ALL_SHARES, 1), sum(6))]
        );
        assert_eq!(merged[&(2, 0)].sender, "far");
        assert!(merge(&batches, true).is_err());
    }
}
