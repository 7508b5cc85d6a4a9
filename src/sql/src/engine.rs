//! Runs the engine's work on threads with large stacks. The caller only waits, so Ctrl-C takes effect at once even if
//! an operator computes for a long time without yielding, a panic of the engine ends the query, not the process, and a
//! query that exceeds the memory limit ends.

use super::error::to_engine_error;
use super::memory_watch::MemoryWatch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result as EngineResult};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use planetree_base::error::{Error, Result};
use planetree_base::panics;
use planetree_base::storage::{border, require_open_files};
use planetree_base::threads::start_runtime;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{JoinError, JoinHandle};

/// Stack of each thread of the engine in bytes. Planning and execution recurse to the depth of a plan and of its
/// expressions, which [`super::size`] limits. Memory is used only as far as the recursion reaches.
const ENGINE_STACK: usize = 256 << 20;
/// Stack for parsing statements, and for dropping them, in bytes.
const PARSER_STACK: usize = 64 << 20;
/// Open files that a query needs: those of the program, and those of each thread that sorts more than fits in memory.
const FILES: u64 = 32;
const FILES_PER_THREAD: u64 = 16;
/// Number of batches that wait for the writer of the output.
const WAITING_BATCHES: usize = 2;

/// Runs `work` on a stack that is large enough for every statement that [`super::size`] allows.
pub(crate) fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PARSER_STACK / 2, PARSER_STACK, work)
}

/// The threads of the engine.
pub(crate) struct EngineThreads {
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
    memory: MemoryWatch,
}

impl EngineThreads {
    /// Starts `threads` threads, whose memory is watched.
    pub(crate) fn start(threads: usize, memory: MemoryWatch) -> Result<Self> {
        require_open_files(FILES + FILES_PER_THREAD * threads as u64, "a query")?;
        let configure = |builder: &mut Builder| {
            builder.thread_stack_size(ENGINE_STACK).enable_all();
        };
        let runtime = start_runtime("planetree-sql", threads, panics::guard_thread, configure)?;
        Ok(EngineThreads { runtime: Some(runtime), memory })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the runtime is taken only by drop")
    }

    /// Runs a future on the engine's threads and waits for it. Fails at once if the user interrupts the program, or if
    /// the memory limit is exceeded.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = EngineResult<T>> + Send + 'static,
    ) -> EngineResult<T> {
        let mut task = self.runtime().spawn(future);
        // Not on the engine's own threads: if all of them compute, none of them would notice the interrupt.
        match border::wait_or_interrupt(self.memory.during(&mut task)).flatten() {
            Ok(outcome) => outcome.unwrap_or_else(|error| Err(ended(error))),
            Err(error) => {
                task.abort();
                Err(to_engine_error(error))
            }
        }
    }

    /// Runs a stream on the engine's threads.
    pub(crate) fn stream(&self, mut stream: SendableRecordBatchStream) -> RunningStream {
        let (sender, batches) = channel(WAITING_BATCHES);
        let schema = stream.schema();
        let task = self.runtime().spawn(async move {
            while let Some(batch) = stream.next().await {
                if sender.send(batch).await.is_err() {
                    return; // the rows are no longer needed
                }
            }
        });
        RunningStream { schema, batches, task, memory: self.memory }
    }
}

impl Drop for EngineThreads {
    /// Leaves threads that still compute behind. The process would otherwise wait for them after an interrupt.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The result of a query, which the engine's threads compute. It is cancelled when this is dropped.
pub(crate) struct RunningStream {
    schema: SchemaRef,
    batches: Receiver<EngineResult<RecordBatch>>,
    task: JoinHandle<()>,
    memory: MemoryWatch,
}

impl RunningStream {
    /// Returns the columns of the result.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Returns the next batch, or `None` at the end. Fails at once if the user interrupts the program, or if the memory
    /// limit is exceeded.
    pub(crate) fn next(&mut self) -> Result<Option<EngineResult<RecordBatch>>> {
        match border::wait_or_interrupt(self.memory.during(self.batches.recv())).flatten()? {
            Some(batch) => Ok(Some(batch)),
            // The channel also closes when the task panics.
            None => Ok(border::wait(&mut self.task).err().map(|error| Err(ended(error)))),
        }
    }
}

impl Drop for RunningStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the error of a task that ended without a result.
fn ended(error: JoinError) -> DataFusionError {
    let problem = match error.try_into_panic() {
        Ok(panic) => panics::payload_text(&*panic),
        Err(_) => return to_engine_error(Error::Interrupted),
    };
    let is_damaged = panics::was_in_decoder();
    let error = panics::system_limit_error(&problem).unwrap_or_else(|| match is_damaged {
        true => Error::place(
            "query",
            "the engine stopped: a file of the query is damaged and cannot be decoded",
            "restore the file, or write it again",
        ),
        false => Error::place(
            "query",
            "the engine stopped unexpectedly",
            "check that all files of the query are intact; if they are, report this error with the output of --log debug",
        ),
    });
    to_engine_error(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_engine_is_an_error() {
        let threads = EngineThreads::start(1, MemoryWatch::default()).unwrap();
        let outcome: EngineResult<()> = threads.run(async { panic!("index out of bounds") });
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("the engine stopped"), "{error}");
        assert!(!error.contains("index out of bounds"), "the log has the text of the panic: {error}");
        assert_eq!(threads.run(async { Ok(7) }).unwrap(), 7, "the threads survive");
    }
}
