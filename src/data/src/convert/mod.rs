//! Converts ranking data of any supported format to a dataset. The stages run concurrently. One thread reads and
//! decompresses the input and splits it into chunks. A thread pool decodes each chunk to a block of rows and encodes
//! the row groups. The calling thread restores the order of the blocks, checks the queries and writes the files.
//!
//! ```text
//! inputs ─read─► chunks ─decode (pool)─► blocks ─in order─► row groups ─encode (pool)─► files
//! ```

mod categories;
mod group_encoder;
mod identifiers;
mod query_sample;
mod query_sorter;
mod query_tracker;
mod sequencer;
mod side_files;
#[cfg(test)]
mod tests;
mod text;
mod unlabelled;
mod zeros;

pub use query_sample::QuerySample;
#[doc(hidden)]
pub use text::convert_text;
pub use unlabelled::Unlabelled;
pub use zeros::ZeroAsMissing;

use crate::dataset::{DatasetWriter, Manifest, WriteOptions};
use crate::ingest::{DecodeTask, Ingest, IngestTotals};
use crate::rows::BlockBuilder;
use group_encoder::GroupEncoder;
use planetree_base::error::{Error, Result};
use planetree_base::panics;
use planetree_base::size::shown_size;
use planetree_base::storage::{Location, interrupt, require_open_files};
use planetree_base::threads::thread_pool;
use query_sorter::QuerySorter;
use rayon::ThreadPool;
use sequencer::Sequencer;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use zeros::ZeroFeatures;

/// Options of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// The dataset to write.
    pub output: Location,
    /// Whether to replace an existing dataset.
    pub overwrite: bool,
    /// Number of rows per file, rounded up to whole queries; `None` for the default file size.
    pub partition_rows: Option<usize>,
    /// Number of threads that decode and encode.
    pub threads: usize,
    /// Whether to sort the rows by query, so that scattered queries are accepted.
    pub sort_queries: bool,
    /// Maximum number of faults to repair or skip; `None` for no limit.
    pub max_errors: Option<u64>,
    /// The sample of queries to keep.
    pub query_sample: QuerySample,
    /// Features whose zeros are missing values.
    pub zero_as_missing: ZeroAsMissing,
    /// What happens to rows without a label.
    pub unlabelled: Unlabelled,
    /// Memory limit in bytes.
    pub memory_limit: u64,
    /// Categories of another dataset. They keep the codes that they have there.
    pub categories: Vec<crate::dataset::Categories>,
}

impl ConvertOptions {
    /// Returns the default options: all queries, all cores, and the default memory limit of the command line.
    pub fn new(output: Location) -> Self {
        ConvertOptions {
            output,
            overwrite: false,
            partition_rows: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            sort_queries: false,
            max_errors: None,
            query_sample: QuerySample::ALL,
            zero_as_missing: ZeroAsMissing::None,
            unlabelled: Unlabelled::Keep,
            memory_limit: 512 << 20,
            categories: Vec::new(),
        }
    }
}

/// Minimum memory limit of a conversion in bytes. It is enough for three row groups and the queued chunks.
pub const MIN_MEMORY: u64 = 192 << 20;

/// Progress of a conversion since the previous report.
pub struct ConvertProgress {
    /// Number of input bytes that were read.
    pub bytes: usize,
    /// Number of rows that were read.
    pub rows: usize,
    /// Number of rows that the sort by query returned, which happens after all rows have been read; 0 without the
    /// sort.
    pub gathered: usize,
    /// Number of rows without a label that were left out, or got the label 0, according to
    /// [`ConvertOptions::unlabelled`].
    pub unlabelled: usize,
}

/// Reads all inputs, writes the dataset and returns its manifest.
pub fn convert(
    ingest: Ingest,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<Manifest> {
    if options.memory_limit < MIN_MEMORY {
        return Err(Error::usage(
            format_args!("--memory-limit {} is too small", shown_size(options.memory_limit)),
            format_args!("raise it to at least {} MiB", MIN_MEMORY >> 20),
        ));
    }
    /// Open files that a conversion needs: those of the program, the inputs and the output.
    const FILES: u64 = 16;
    require_open_files(FILES, "a conversion")?;
    let pool = Arc::new(thread_pool(options.threads)?);
    let layout = ingest.layout().clone();
    let format = ingest.format();
    let write_options = WriteOptions {
        partition_rows: options.partition_rows,
        overwrite: options.overwrite,
        source_format: format.name(),
    };
    let zeros = Arc::new(options.zero_as_missing.find(&layout.features, &options.categories)?);
    options.unlabelled.check_side_files(&ingest)?;
    options.unlabelled.check_label_column(&ingest)?;
    let rows = RowOptions { zeros: zeros.clone(), unlabelled: options.unlabelled };
    let writer = DatasetWriter::begin(&options.output, layout.clone(), write_options)?;
    let encoder = GroupEncoder::new(pool.clone(), layout.clone(), writer);
    let mut sequencer = Sequencer::new(&ingest, options, zeros, encoder);
    // A chunk is 1 MiB of text, and its decoded form needs about another 1 MiB.
    let queue = (4 + 4 * options.threads).min((options.memory_limit >> 24) as usize);
    let totals = if options.sort_queries {
        let mut sorter = QuerySorter::new(layout, options.memory_limit / 4);
        let totals = read_in_order(
            ingest,
            &pool,
            (queue, rows),
            BlockBuilder::finish_rows,
            &mut |input, mut rows, ChunkCounts { bytes, unlabelled }| {
                sequencer.prepare_rows(input, &mut rows)?;
                progress(ConvertProgress { bytes, rows: rows.block.rows(), gathered: 0, unlabelled });
                sorter.add(&rows)
            },
        )?;
        sequencer.finish_side_files()?;
        sorter.finish(&mut |block| {
            progress(ConvertProgress { bytes: 0, rows: 0, gathered: block.rows(), unlabelled: 0 });
            sequencer.group(0, block)
        })?;
        totals
    } else {
        let totals = read_in_order(
            ingest,
            &pool,
            (queue, rows),
            BlockBuilder::finish,
            &mut |input, mut block, ChunkCounts { bytes, unlabelled }| {
                sequencer.prepare(input, &mut block)?;
                progress(ConvertProgress { bytes, rows: block.rows(), gathered: 0, unlabelled });
                sequencer.group(input, block)
            },
        )?;
        sequencer.finish_side_files()?;
        totals
    };
    sequencer.finish(format, totals)
}

/// Changes of decoded rows: the zeros of some features become missing values, and rows without labels may be dropped
/// or labelled.
#[derive(Clone)]
struct RowOptions {
    zeros: Arc<ZeroFeatures>,
    unlabelled: Unlabelled,
}

/// Numbers of a decoded chunk.
struct ChunkCounts {
    /// Number of input bytes.
    bytes: usize,
    /// Number of rows without a label that were dropped or labelled.
    unlabelled: usize,
}

thread_local! {
    static BUILDER: RefCell<BlockBuilder> = RefCell::default();
}

/// Reads the inputs on a separate thread, decodes them on the pool, and passes every decoded chunk to `each` in the
/// order of the input. At most `chunks_in_flight` chunks are queued.
fn read_in_order<T: Send + 'static>(
    ingest: Ingest,
    pool: &Arc<ThreadPool>,
    (chunks_in_flight, rows): (usize, RowOptions),
    finish: fn(&mut BlockBuilder) -> T,
    each: &mut dyn FnMut(u32, T, ChunkCounts) -> Result<()>,
) -> Result<IngestTotals> {
    struct PendingChunk<T> {
        input: u32,
        bytes: usize,
        decoded: Receiver<Result<(T, usize)>>,
    }
    let (queue, queued): (SyncSender<PendingChunk<T>>, _) = sync_channel(chunks_in_flight);
    let workers = pool.clone();
    let read = move || {
        ingest.run(&mut |work: DecodeTask, bytes| {
            let input = work.input;
            let (sender, decoded) = sync_channel(1);
            let RowOptions { zeros, unlabelled } = rows.clone();
            workers.spawn(move || {
                let decode = |builder: &mut BlockBuilder| -> Result<(T, usize)> {
                    work.decode(builder)?;
                    if !zeros.is_empty() {
                        builder.zeros_to_missing(|feature| zeros.contains(feature));
                    }
                    let unlabelled = unlabelled.apply(builder);
                    Ok((finish(builder), unlabelled))
                };
                let outcome = panics::guarded(|| BUILDER.with_borrow_mut(decode));
                let outcome = outcome.unwrap_or_else(|panic| Err(panic.into_error("convert")));
                let _ = sender.send(outcome); // fails if another error has already stopped the receiver
            });
            // If the receiver no longer exists, it has failed and reports its own error, and the error here is
            // discarded.
            queue.send(PendingChunk { input, bytes, decoded }).map_err(|_| Error::Interrupted)
        })
    };
    let reader = std::thread::Builder::new().name("planetree-reader".to_owned());
    let reader = reader.spawn(move || panics::guarded(read));
    let reader = reader.map_err(|error| Error::io("reader thread", "start", error))?;
    while let Some(pending) = next(&queued)? {
        let (chunk, unlabelled) = next(&pending.decoded)?.ok_or_else(|| thread_ended("decoding"))??;
        each(pending.input, chunk, ChunkCounts { bytes: pending.bytes, unlabelled })?;
    }
    let outcome = reader.join().map_err(|_| thread_ended("reading"))?;
    outcome.map_err(|panic| panic.into_error("convert"))?
}

/// Waits for a value and checks for interrupts in the meantime. Returns `None` if the sender no longer exists.
fn next<T>(receiver: &Receiver<T>) -> Result<Option<T>> {
    loop {
        interrupt::check()?;
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

fn thread_ended(doing: &str) -> Error {
    Error::bug("convert", format_args!("the {doing} thread ended early"))
}
