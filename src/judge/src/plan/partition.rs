//! A reader of ours as a partition of a plan. It runs on a thread of its own, because it may wait for
//! disks and networks, and stops when nobody wants its rows any more.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use datafusion_physical_plan::streaming::PartitionStream;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Batches that a reader gives. The first error is the last item.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Starts a reader from its beginning.
pub type Open = Arc<dyn Fn() -> Result<Batches> + Send + Sync>;

/// Batches that wait for whoever uses them.
const AHEAD: usize = 2;

/// What went wrong in a reader: it travels beside the plan, which has errors of its own kind.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<Error>>>);

impl Failure {
    /// The first failure, once.
    pub fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// See the module.
pub struct Partition {
    /// The columns.
    pub schema: SchemaRef,
    /// The reader.
    pub open: Open,
    /// Where its failure goes.
    pub failure: Failure,
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Partition")
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(self.schema.clone(), AHEAD);
        let (sender, open, failure) = (stream.tx(), self.open.clone(), self.failure.clone());
        stream.spawn_blocking(move || {
            let read = || -> Result<()> {
                for batch in open()? {
                    interrupt::check()?;
                    if sender.blocking_send(Ok(batch?)).is_err() {
                        return Ok(()); // nobody wants more
                    }
                }
                Ok(())
            };
            read().map_err(|error| {
                failure.put(error);
                DataFusionError::Execution("a reader failed".to_owned())
            })
        });
        stream.build()
    }
}
