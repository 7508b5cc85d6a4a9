//! Makes the rows of a reader a stream. Each reader has a thread of its own, because it may block on disks and networks,
//! and waits until its rows are taken. A runtime of tokio would run only a limited number of such readers and let the
//! others wait, without an error: if a join needs the rows of one that waits, none of them would ever end.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use planetree_base::error::Result;
use planetree_base::threads::start_thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// Maximum number of batches that a reader is ahead of the consumer.
const BUFFERED_BATCHES: usize = 2;

/// Passes batches to the consumer.
pub struct BatchSender(Sender<datafusion_common::Result<RecordBatch>>);

impl BatchSender {
    /// Waits until the consumer has room for a batch. Returns whether it still needs rows.
    #[must_use]
    pub fn send(&self, batch: RecordBatch) -> bool {
        self.0.blocking_send(Ok(batch)).is_ok()
    }
}

/// Starts `read` on a thread of its own and returns the batches that it sends. An error of `read` is an item of the stream,
/// and its panic is that of the stream; either may come before batches that wait.
pub fn read_on_thread(
    schema: SchemaRef,
    read: impl FnOnce(&BatchSender) -> Result<(), DataFusionError> + Send + 'static,
) -> Result<SendableRecordBatchStream> {
    let mut stream = RecordBatchReceiverStream::builder(schema, BUFFERED_BATCHES);
    let sender = BatchSender(stream.tx());
    let (done, outcome) = oneshot::channel();
    start_thread("planetree-read", move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| read(&sender)));
        let _ = done.send(outcome); // fails only if the stream was dropped
    })?;
    stream.spawn(async move {
        match outcome.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Ok(()), // the thread sends its outcome before it ends
        }
    });
    Ok(stream.build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int32Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use futures::StreamExt;
    use std::sync::Arc;
    use tokio::runtime::Builder;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("number", DataType::Int32, false)]))
    }

    fn batch(number: i32) -> RecordBatch {
        RecordBatch::try_new(schema(), vec![Arc::new(Int32Array::from(vec![number]))]).unwrap()
    }

    #[test]
    fn readers_that_wait_do_not_keep_others_from_reading() {
        // A runtime would start a single thread for all of them.
        let runtime = Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
        let rows = runtime.block_on(async {
            let open = |number: i32| {
                let read = move |sender: &BatchSender| {
                    assert!((0..10).all(|_| sender.send(batch(number))));
                    Ok(())
                };
                read_on_thread(schema(), read).unwrap()
            };
            let mut streams: Vec<_> = (0..5).map(open).collect();
            let mut rows = 0;
            for stream in streams.iter_mut().rev() {
                while let Some(batch) = stream.next().await {
                    rows += batch.unwrap().num_rows();
                }
            }
            rows
        });
        assert_eq!(rows, 50);
    }

    #[test]
    fn errors_are_passed_on_and_a_reader_ends_with_its_consumer() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let failing = |sender: &BatchSender| {
                assert!(sender.send(batch(1)));
                Err(DataFusionError::Execution("damaged".to_owned()))
            };
            let items: Vec<_> = read_on_thread(schema(), failing).unwrap().collect().await;
            let (rows, errors): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.is_ok());
            assert!(rows.iter().all(|rows| *rows.as_ref().unwrap() == batch(1)), "{rows:?}");
            assert_eq!(errors.len(), 1);
            assert!(errors[0].as_ref().unwrap_err().to_string().contains("damaged"));

            let (ended, has_ended) = oneshot::channel();
            let endless = move |sender: &BatchSender| {
                while sender.send(batch(1)) {}
                ended.send(()).unwrap();
                Ok(())
            };
            drop(read_on_thread(schema(), endless).unwrap());
            has_ended.await.unwrap();
        });
    }
}
