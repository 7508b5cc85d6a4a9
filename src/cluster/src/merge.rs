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
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::fmt;
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
        Ok(Arc::new(MergeExec::new(Arc::new(shuffled), self.weighted)))
    }
}

/// Plan node that sums blocks.
#[derive(Debug)]
pub struct MergeExec {
    answers: Arc<dyn ExecutionPlan>,
    weighted: bool,
    properties: Arc<PlanProperties>,
}

impl MergeExec {
    /// A node that sums its input, which is partitioned by block.
    pub fn new(answers: Arc<dyn ExecutionPlan>, weighted: bool) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(answers.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        MergeExec { answers, weighted, properties: Arc::new(properties) }
    }

    /// Whether cells have weights.
    pub fn weighted(&self) -> bool {
        self.weighted
    }
}

impl DisplayAs for MergeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MergeExec")
    }
}

impl ExecutionPlan for MergeExec {
    fn name(&self) -> &str {
        "MergeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.answers]
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
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(MergeExec::new(children.swap_remove(0), self.weighted)))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(MergeExec::new(children.swap_remove(0), self.weighted)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (answers, weighted) = (self.answers.execute(partition, context)?, self.weighted);
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
