//! The round as a plan: one node over a scan of the dataset's files. Every partition of the plan is a share; whoever
//! runs it answers the question of the node.
//!
//! The scan is never run. It is there because the engine hands out the file groups of a scan to its executors, and our
//! own reader checks every byte against the dataset's manifest.

use super::holding::answer;
use super::share::groups_of;
use super::task::Task;
use arrow::array::{ArrayRef, AsArray, BinaryArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an answer that travel in one row.
const PIECE: usize = 1 << 20;

/// See the module.
#[derive(Clone)]
pub struct RoundExec {
    scan: Arc<dyn ExecutionPlan>,
    question: Question,
    properties: Arc<PlanProperties>,
}

/// What a plan carries.
#[derive(Clone, PartialEq, Default)]
pub struct Question {
    /// A packed [`Task`].
    pub task: Vec<u8>,
    /// A packed [`Foundation`](super::task::Foundation), for those that lack it; empty if nobody is believed to.
    pub foundation: Vec<u8>,
}

/// The columns of answers: which share, which piece of its answer, the bytes, their checksum, and who sends them.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("share", DataType::UInt64, false),
        Field::new("piece", DataType::UInt64, false),
        Field::new("bytes", DataType::Binary, false),
        Field::new("xxh3", DataType::UInt64, false),
        Field::new("sender", DataType::Utf8, false),
    ]))
}

impl RoundExec {
    /// A question to all file groups of a scan.
    pub fn new(scan: Arc<dyn ExecutionPlan>, question: Question) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(scan.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        RoundExec { scan, question, properties: Arc::new(properties) }
    }

    /// What it asks.
    pub fn question(&self) -> &Question {
        &self.question
    }
}

impl fmt::Debug for RoundExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoundExec({} bytes)", self.question.task.len() + self.question.foundation.len())
    }
}

impl DisplayAs for RoundExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl ExecutionPlan for RoundExec {
    fn name(&self) -> &str {
        "RoundExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.scan]
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
        Ok(Arc::new(RoundExec::new(children.swap_remove(0), self.question.clone())))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(RoundExec::new(children.swap_remove(0), self.question.clone())))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let group = groups_of(&*self.scan).and_then(|groups| groups.get(partition)).cloned();
        let group = group.ok_or_else(|| failed("the plan has no such share"))?;
        let question = self.question.clone();
        let mut stream = RecordBatchReceiverStream::builder(schema(), 2);
        let sender = stream.tx();
        stream.spawn_blocking(move || {
            let task: Task = super::task::unpack(&question.task).map_err(failed)?;
            let (share, answer) = answer(&task, &question.foundation, &group);
            let name = super::holding::name();
            let bytes = answer.to_bytes();
            for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
                let batch = to_batch(share, piece as u64, bytes, &name)?;
                if sender.blocking_send(Ok(batch)).is_err() {
                    break; // nobody wants more
                }
            }
            Ok(())
        });
        Ok(stream.build())
    }
}

fn failed(problem: impl fmt::Display) -> DataFusionError {
    DataFusionError::Execution(problem.to_string())
}

fn to_batch(share: u64, piece: u64, bytes: &[u8], sender: &str) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![share])),
        Arc::new(UInt64Array::from(vec![piece])),
        Arc::new(BinaryArray::from(vec![bytes])),
        Arc::new(UInt64Array::from(vec![xxh3_64(bytes)])),
        Arc::new(StringArray::from(vec![sender])),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// An answer as it arrived.
#[derive(Debug, Default, PartialEq)]
pub struct Arrived {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Who sent them.
    pub sender: String,
}

/// Puts the answers of all shares together, in their order. `None` if a piece is missing or damaged.
pub fn put_together(batches: &[RecordBatch]) -> Option<BTreeMap<u64, Arrived>> {
    let mut pieces: BTreeMap<(u64, u64), (Vec<u8>, String)> = BTreeMap::new();
    for batch in batches {
        let number = |column: usize, row: usize| {
            Some(batch.columns().get(column)?.as_primitive_opt::<UInt64Type>()?.value(row))
        };
        for row in 0..batch.num_rows() {
            let bytes = batch.columns().get(2)?.as_binary_opt::<i32>()?.value(row);
            if xxh3_64(bytes) != number(3, row)? {
                return None;
            }
            let sender = batch.columns().get(4)?.as_string_opt::<i32>()?.value(row).to_owned();
            pieces.insert((number(0, row)?, number(1, row)?), (bytes.to_vec(), sender));
        }
    }
    let mut answers: BTreeMap<u64, Arrived> = BTreeMap::new();
    let mut expected = (u64::MAX, 0);
    for ((share, piece), (bytes, sender)) in pieces {
        expected = if share == expected.0 { (share, expected.1 + 1) } else { (share, 0) };
        if piece != expected.1 {
            return None;
        }
        let arrived = answers.entry(share).or_default();
        arrived.bytes.extend_from_slice(&bytes);
        arrived.sender = sender;
    }
    Some(answers)
}
