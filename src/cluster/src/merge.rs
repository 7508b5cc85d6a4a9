//! Merges partials, which are the results of a job for the shares of the data, on executors. A partial consists of
//! blocks, and each merge task merges some of the blocks over all shares. Therefore the amount of data that the
//! driver receives does not grow with the number of executors.
//!
//! ```text
//! shares: partials in blocks ──by block──► merge tasks: merged over all shares ──► driver
//! ```

use super::executor::name;
use super::node::{BLOCK, ReceivedReply, put_together, schema, to_batches};
use super::registry::RegisteredJob;
use super::task::Reply;
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
use planetree_base::compact::{self, Bytes};
use planetree_sql::{Operator, OperatorExec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of blocks per merge task. Blocks are assigned to tasks by hash, which balances the load only if there are
/// many blocks.
const BLOCKS_EACH: usize = 4;

/// Share number that marks a reply as merged over all shares.
pub(crate) const ALL_SHARES: u64 = u64::MAX;

/// How partials are merged on executors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MergePlan {
    /// Number of merge tasks.
    pub mergers: usize,
}

impl MergePlan {
    /// Returns the maximum number of blocks of a partial.
    pub(crate) fn blocks(&self) -> usize {
        self.mergers * BLOCKS_EACH
    }

    /// Extends a plan so that its replies are merged by the merge function of the given job.
    pub(crate) fn of(&self, job: &str, replies: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let by_block = Partitioning::Hash(vec![col(BLOCK, &schema())?], self.mergers);
        let shuffled = RepartitionExec::try_new(replies, by_block)?;
        Ok(Arc::new(MergeExec::new(MergeBlocks { job: job.to_owned() }, Arc::new(shuffled))))
    }
}

/// Plan node that merges blocks. All replies with the same block number must be in the same partition of its input.
pub(crate) type MergeExec = OperatorExec<MergeBlocks>;

/// The operator of [`MergeExec`].
#[derive(Debug, Clone)]
pub(crate) struct MergeBlocks {
    /// The name of the job whose partials are merged.
    pub job: String,
}

impl Operator for MergeBlocks {
    const NAME: &'static str = "MergeExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, replies: &Self::Input) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(replies.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        )
    }

    fn execute(
        &self,
        replies: &Self::Input,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (replies, job) = (replies.execute(partition, context)?, self.job.clone());
        let merged = async move {
            let batches: Vec<RecordBatch> = replies.try_collect().await?;
            let merged = tokio::task::spawn_blocking(move || merge(&batches, &job)).await;
            let merged = merged.map_err(|error| DataFusionError::Execution(error.to_string()))??;
            Ok::<_, DataFusionError>(stream::iter(merged))
        };
        let merged = stream::once(merged).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema(), merged)))
    }
}

/// Merges partials with the same block number, in the order of their shares. Replies that are not partials pass through
/// unchanged.
fn merge(batches: &[RecordBatch], job: &str) -> Result<Vec<Result<RecordBatch>>> {
    let damaged = || DataFusionError::Execution("a response was damaged in transit".to_owned());
    let job = RegisteredJob::find(job).map_err(|error| DataFusionError::Execution(error.to_string()))?;
    let mut blocks: BTreeMap<u64, (u64, Vec<Bytes>)> = BTreeMap::new();
    let mut merged = Vec::new();
    for ((share, block), ReceivedReply { bytes, sender }) in put_together(batches).ok_or_else(damaged)? {
        match compact::from_bytes(&bytes).map_err(|_| damaged())? {
            Reply::Block { of, partial } => {
                let (of_first, partials) = blocks.entry(block).or_insert((of, Vec::new()));
                if *of_first != of {
                    return Err(damaged());
                }
                partials.push(partial);
            }
            other => merged.extend(to_batches(share, block, &other, &sender)),
        }
    }
    for (block, (of, partials)) in blocks {
        let shares = partials.len() as u64;
        let partial = (job.merge)(&partials).map_err(|_| damaged())?;
        merged.extend(to_batches(ALL_SHARES, block, &Reply::Merged { shares, of, partial }, &name()));
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_train::jobs::{BoostStep, Level, LevelBlock};

    #[test]
    fn blocks_are_merged_and_other_replies_pass_through() {
        let cells = |weighted: bool, count: u8| {
            let cells = Bytes(vec![1, 2, count, 2 * count, 0, count, 2 * count, 1]);
            Bytes(compact::to_bytes(&LevelBlock { weighted, cells }))
        };
        let block = |count| Reply::Block { of: 2, partial: cells(false, count) };
        let sent = [
            (0, 0, block(1)),
            (0, 1, block(2)),
            (1, 0, block(3)),
            (1, 1, block(4)),
            (2, 0, Reply::MissingState),
        ];
        let batches = sent.iter().flat_map(|(share, block, reply)| to_batches(*share, *block, reply, "far"));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_>>().unwrap();
        let merged: Vec<RecordBatch> =
            merge(&batches, Level::NAME).unwrap().into_iter().collect::<Result<_>>().unwrap();
        let merged = put_together(&merged).unwrap();
        let replies: Vec<_> = merged
            .iter()
            .map(|(place, received)| (*place, compact::from_bytes::<Reply>(&received.bytes).unwrap()))
            .collect();
        let sum = |count| Reply::Merged { shares: 2, of: 2, partial: cells(false, count) };
        assert_eq!(
            replies,
            [((2, 0), Reply::MissingState), ((ALL_SHARES, 0), sum(4)), ((ALL_SHARES, 1), sum(6))]
        );
        assert_eq!(merged[&(2, 0)].sender, "far");
        // Weighted and unweighted histogram cells cannot be merged.
        let weighted = Reply::Block { of: 2, partial: cells(true, 1) };
        let mixed = to_batches(3, 0, &weighted, "far").into_iter().collect::<Result<Vec<_>>>().unwrap();
        assert!(merge(&[batches.clone(), mixed].concat(), Level::NAME).is_err());
        assert!(merge(&batches, "no such job").is_err());
    }
}
