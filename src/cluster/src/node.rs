//! Represents a request as a physical plan, which is one node over a scan of the dataset's files. Each partition of
//! the plan is a share (a range of row groups), and the executor that runs the partition executes the node's task on
//! the share.
//!
//! The scan is never executed. It exists because the engine distributes work by the file groups of a scan. The data are
//! read by our own reader, which checks every byte against the dataset's manifest.

use super::executor::answer;
use super::share::groups_of;
use super::task::{Reply, Task};
use super::work_folder::check_room;
use arrow::array::{ArrayRef, AsArray, LargeBinaryArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties};
use planetree_base::compact;
use planetree_sql::{Operator, OperatorExec};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of bytes of a reply in one row. Longer replies are split into several rows.
const PIECE: usize = 1 << 20;

/// Name of the column by which replies are partitioned before they are merged.
pub(crate) const BLOCK: &str = "block";

/// Plan node that executes a task on every share. Each file group of its scan is a share.
pub(crate) type RoundExec = OperatorExec<RoundRequest>;

/// The serialised request that a [`RoundExec`] carries.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct RoundRequest {
    /// Serialised [`Task`].
    pub task: Vec<u8>,
    /// Serialised snapshot for executors that lack the state. It is empty if all executors are expected to have the
    /// state.
    pub snapshot: Vec<u8>,
    /// Serialised job; empty if the task does not run a job.
    pub job: Vec<u8>,
}

/// Returns the schema of replies: share, block, number of the piece within the block, bytes, checksum and sender.
pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("share", DataType::UInt64, false),
        Field::new(BLOCK, DataType::UInt64, false),
        Field::new("piece", DataType::UInt64, false),
        Field::new("bytes", DataType::LargeBinary, false),
        Field::new("xxh3", DataType::UInt64, false),
        Field::new("sender", DataType::Utf8, false),
    ]))
}

impl RoundRequest {
    /// Returns the total size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.task.len() + self.snapshot.len() + self.job.len()
    }
}

impl fmt::Debug for RoundRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Operator for RoundRequest {
    const NAME: &'static str = "RoundExec";
    type Input = Arc<dyn ExecutionPlan>;

    fn properties(&self, scan: &Self::Input) -> PlanProperties {
        PlanProperties::new(
            EquivalenceProperties::new(schema()),
            Partitioning::UnknownPartitioning(scan.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        )
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoundExec({self:?})")
    }

    fn execute(
        &self,
        scan: &Self::Input,
        partition: usize,
        _: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let group = groups_of(&**scan).and_then(|groups| groups.get(partition)).cloned();
        let group = group.ok_or_else(|| failed("share not found in the plan"))?;
        let request = self.clone();
        let mut stream = RecordBatchReceiverStream::builder(schema(), 2);
        let sender = stream.tx();
        stream.spawn_blocking(move || {
            let task = Task::from_bytes(&request.task).map_err(failed)?;
            let (share, replies) = answer(&task, &request.job, &request.snapshot, &group);
            let name = super::executor::name();
            for (block, reply) in (0..).zip(&replies) {
                for batch in to_batches(share, block, reply, &name) {
                    if sender.blocking_send(batch).is_err() {
                        return Ok(()); // the receiver is gone
                    }
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

/// Splits a reply into pieces that fit into messages, with one batch per piece. Fails if the disk has no room for them.
pub(crate) fn to_batches(share: u64, block: u64, reply: &Reply, sender: &str) -> Vec<Result<RecordBatch>> {
    let bytes = compact::to_bytes(reply);
    if let Err(error) = check_room(bytes.len()) {
        return vec![Err(error.into())];
    }
    let batch = |(piece, bytes): (u64, &[u8])| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(vec![share])),
            Arc::new(UInt64Array::from(vec![block])),
            Arc::new(UInt64Array::from(vec![piece])),
            Arc::new(LargeBinaryArray::from(vec![bytes])),
            Arc::new(UInt64Array::from(vec![xxh3_64(bytes)])),
            Arc::new(StringArray::from(vec![sender])),
        ];
        Ok(RecordBatch::try_new(schema(), columns)?)
    };
    (0..).zip(bytes.chunks(PIECE)).map(batch).collect()
}

/// A reassembled reply.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ReceivedReply {
    /// The serialised reply.
    pub bytes: Vec<u8>,
    /// Name of the executor that sent the reply.
    pub sender: String,
}

/// Share number and block number of a reply.
pub(crate) type ReplyKey = (u64, u64);

/// Reassembles replies from their pieces, sorted by share and block. Returns `None` if a piece is missing or damaged.
pub(crate) fn put_together(batches: &[RecordBatch]) -> Option<BTreeMap<ReplyKey, ReceivedReply>> {
    let mut pieces: BTreeMap<(ReplyKey, u64), ReceivedReply> = BTreeMap::new();
    for batch in batches {
        let number = |column: usize, row: usize| {
            Some(batch.columns().get(column)?.as_primitive_opt::<UInt64Type>()?.value(row))
        };
        for row in 0..batch.num_rows() {
            let bytes = batch.columns().get(3)?.as_binary_opt::<i64>()?.value(row);
            if xxh3_64(bytes) != number(4, row)? {
                return None;
            }
            let sender = batch.columns().get(5)?.as_string_opt::<i32>()?.value(row).to_owned();
            let reply = (number(0, row)?, number(1, row)?);
            pieces.insert((reply, number(2, row)?), ReceivedReply { bytes: bytes.to_vec(), sender });
        }
    }
    let mut replies: BTreeMap<ReplyKey, ReceivedReply> = BTreeMap::new();
    let mut last = None;
    for ((reply, piece), ReceivedReply { bytes, sender }) in pieces {
        let expected = match last {
            Some((same, before)) if same == reply => before + 1,
            _ => 0,
        };
        if piece != expected {
            return None;
        }
        last = Some((reply, piece));
        let received = replies.entry(reply).or_default();
        received.bytes.extend_from_slice(&bytes);
        received.sender = sender;
    }
    Some(replies)
}
