//! Makes a reader available as a partition of a DataFusion plan. The reader runs on its own thread, because it may
//! block on disk or network, and stops when the receiver of its batches is dropped.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use datafusion_physical_plan::streaming::PartitionStream;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_engine::{BatchSender, read_on_thread};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The batches of a reader, up to and including the first error.
pub type BatchIterator = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// A function that opens a reader at its first row. It can be called several times.
pub type OpenReader = Arc<dyn Fn() -> Result<BatchIterator> + Send + Sync>;

/// The first error of any reader. It is stored outside the plan, because the plan can return only DataFusion errors.
#[derive(Clone, Default)]
pub struct ReaderFailure(Arc<Mutex<Option<Error>>>);

impl ReaderFailure {
    /// Removes and returns the error; `None` if no reader failed.
    pub fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// A partition whose rows come from a reader.
pub struct ReaderPartition {
    /// Schema of the rows.
    pub schema: SchemaRef,
    /// Opens the reader.
    pub open: OpenReader,
    /// Receives the error if the reader fails.
    pub failure: ReaderFailure,
}

impl fmt::Debug for ReaderPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReaderPartition")
    }
}

impl PartitionStream for ReaderPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (open, failure) = (self.open.clone(), self.failure.clone());
        let failed = |failure: &ReaderFailure, error| {
            failure.put(error);
            DataFusionError::Execution("a reader failed".to_owned())
        };
        let reported = failure.clone();
        let read = move |sender: &BatchSender| {
            let read = || -> Result<()> {
                for batch in open()? {
                    interrupt::check()?;
                    if !sender.send(batch?) {
                        return Ok(()); // the receiver was dropped
                    }
                }
                Ok(())
            };
            read().map_err(|error| failed(&reported, error))
        };
        read_on_thread(self.schema.clone(), read).unwrap_or_else(|error| {
            let error = failed(&failure, error);
            let mut stream = RecordBatchReceiverStream::builder(self.schema.clone(), 1);
            stream.spawn(async { Err(error) });
            stream.build()
        })
    }
}
