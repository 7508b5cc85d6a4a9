//! Converts ranking data of any supported format to a dataset. The stages run concurrently. One thread reads and
//! decompresses the input and splits it into chunks. A thread pool decodes each chunk to a block of rows and encodes
//! the row groups. The calling thread restores the order of the blocks, checks the queries and writes the files.
//!
//! ```text
//! inputs ─read─► chunks ─decode (pool)─► blocks ─in order─► row groups ─encode (pool)─► files
//! ```

mod categories;
mod identifiers;
mod query_sample;
mod query_sorter;
mod query_tracker;
#[cfg(test)]
mod tests;
mod unlabelled;
mod zeros;

pub use query_sample::QuerySample;
pub use unlabelled::Unlabelled;
pub use zeros::ZeroAsMissing;

use crate::dataset::{
    DatasetWriter, EncodedGroup, FeatureNames, Grouper, InputLine, Layout, Manifest, ManifestSource,
    RowGroup, WriteOptions, encode_group,
};
use crate::ingest::{DecodeTask, Ingest, IngestTotals, InputFormat, SideReader};
use crate::rows::BlockBuilder;
use crate::rows::fault::RepairCounts;
use crate::rows::{Block, RowMajorBlock};
use categories::CategoryCodes;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use query_sorter::QuerySorter;
use query_tracker::QueryTracker;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::collections::VecDeque;
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
}

/// Reads all inputs, writes the dataset and returns its manifest.
pub fn convert(
    ingest: Ingest,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(ConvertProgress),
) -> Result<Manifest> {
    if options.memory_limit < MIN_MEMORY {
        return Err(Error::usage(
            format_args!("--memory-limit {} MiB is too small", options.memory_limit >> 20),
            format_args!("raise it to at least {} MiB", MIN_MEMORY >> 20),
        ));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .thread_name(|number| format!("planetree-{number}"))
        .panic_handler(|_| {}) // the thread that waits for the result reports the panic
        .build()
        .map_err(|error| Error::usage(format_args!("cannot start threads: {error}"), "lower --threads"))?;
    let pool = Arc::new(pool);
    let layout = ingest.layout().clone();
    let format = ingest.format();
    let names = ingest.names();
    let write_options = WriteOptions {
        partition_rows: options.partition_rows,
        overwrite: options.overwrite,
        source_format: format.name(),
    };
    let zeros = Arc::new(options.zero_as_missing.find(&layout.features, &options.categories)?);
    options.unlabelled.check_side_files(&ingest)?;
    let rows = RowOptions { zeros: zeros.clone(), unlabelled: options.unlabelled };
    let writer = DatasetWriter::begin(&options.output, layout.clone(), write_options)?;
    let mut sequencer = Sequencer {
        sides: CurrentSideFiles {
            all: ingest.sides().to_vec(),
            names: names.clone(),
            open: None,
            query: 0,
            named: None,
        },
        categories: CategoryCodes::new(&layout.features, &options.categories),
        repairs: RepairCounts::default(),
        max_errors: options.max_errors,
        grouper: Grouper::new(
            options.partition_rows.unwrap_or(usize::MAX),
            (options.memory_limit / 2) as usize,
        ),
        tracker: QueryTracker::new(names.clone()),
        names,
        features: layout.features.clone(),
        checked_identifiers: false,
        query_sample: options.query_sample,
        zero_as_missing: options.zero_as_missing.clone(),
        zeros,
        unlabelled: options.unlabelled,
        width: 0,
        encoder: GroupEncoder {
            pool: pool.clone(),
            layout: layout.clone(),
            pending: VecDeque::new(),
            writer,
        },
    };
    // A chunk is 1 MiB of text, and its decoded form needs about another 1 MiB.
    let queue = (4 + 4 * options.threads).min((options.memory_limit >> 24) as usize);
    let totals = if options.sort_queries {
        let mut sorter = QuerySorter::new(layout, options.memory_limit / 4);
        let totals = read_in_order(
            ingest,
            &pool,
            (queue, rows),
            BlockBuilder::finish_rows,
            &mut |input, mut rows, bytes| {
                sequencer.prepare_rows(input, &mut rows)?;
                progress(ConvertProgress { bytes, rows: rows.block.rows(), gathered: 0 });
                sorter.add(&rows)
            },
        )?;
        sequencer.sides.finish()?;
        sorter.finish(&mut |block| {
            progress(ConvertProgress { bytes: 0, rows: 0, gathered: block.rows() });
            sequencer.group(0, block)
        })?;
        totals
    } else {
        let totals = read_in_order(
            ingest,
            &pool,
            (queue, rows),
            BlockBuilder::finish,
            &mut |input, mut block, bytes| {
                sequencer.prepare(input, &mut block)?;
                progress(ConvertProgress { bytes, rows: block.rows(), gathered: 0 });
                sequencer.group(input, block)
            },
        )?;
        sequencer.sides.finish()?;
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
    each: &mut dyn FnMut(u32, T, usize) -> Result<()>,
) -> Result<IngestTotals> {
    struct PendingChunk<T> {
        input: u32,
        bytes: usize,
        decoded: Receiver<Result<T>>,
    }
    let (queue, queued): (SyncSender<PendingChunk<T>>, _) = sync_channel(chunks_in_flight);
    let workers = pool.clone();
    let reader = std::thread::Builder::new().name("planetree-reader".to_owned()).spawn(move || {
        ingest.run(&mut |work: DecodeTask, bytes| {
            let input = work.input;
            let (sender, decoded) = sync_channel(1);
            let RowOptions { zeros, unlabelled } = rows.clone();
            workers.spawn(move || {
                let outcome = BUILDER.with_borrow_mut(|builder| {
                    work.decode(builder)?;
                    if !zeros.is_empty() {
                        builder.zeros_to_missing(|feature| zeros.contains(feature));
                    }
                    unlabelled.apply(builder);
                    Ok(finish(builder))
                });
                let _ = sender.send(outcome); // fails if another error has already stopped the receiver
            });
            // If the receiver no longer exists, it has failed and reports its own error, and the error here is
            // discarded.
            queue.send(PendingChunk { input, bytes, decoded }).map_err(|_| Error::Interrupted)
        })
    });
    let reader = reader.map_err(|error| Error::io("reader thread", "start", error))?;
    while let Some(pending) = next(&queued)? {
        let chunk = next(&pending.decoded)?.ok_or_else(|| thread_ended("decoding"))??;
        each(pending.input, chunk, pending.bytes)?;
    }
    reader.join().map_err(|_| thread_ended("reading"))?
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

/// Processes decoded chunks in the order of the input.
struct Sequencer {
    sides: CurrentSideFiles,
    categories: CategoryCodes,
    repairs: RepairCounts,
    max_errors: Option<u64>,
    grouper: Grouper,
    tracker: QueryTracker,
    /// Names of the inputs.
    names: Vec<String>,
    features: FeatureNames,
    checked_identifiers: bool,
    query_sample: QuerySample,
    zero_as_missing: ZeroAsMissing,
    zeros: Arc<ZeroFeatures>,
    unlabelled: Unlabelled,
    /// Number of features that occur in the rows so far.
    width: usize,
    encoder: GroupEncoder,
}

impl Sequencer {
    /// Performs the steps that must happen in the order of the input: adds the data of side files, assigns category
    /// codes, and counts repairs.
    fn prepare(&mut self, input: u32, block: &mut Block) -> Result<()> {
        self.sides.add_to(input, block)?;
        self.zeros.check_categories(&block.categories, &self.features)?;
        for (feature, words) in std::mem::take(&mut block.categories) {
            block.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&block.repairs)
    }

    fn prepare_rows(&mut self, input: u32, rows: &mut RowMajorBlock) -> Result<()> {
        self.sides.add_to(input, &mut rows.block)?;
        self.zeros.check_categories(&rows.block.categories, &self.features)?;
        for (feature, words) in std::mem::take(&mut rows.block.categories) {
            rows.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&rows.block.repairs)
    }

    fn count_repairs(&mut self, repairs: &RepairCounts) -> Result<()> {
        self.repairs.merge(repairs);
        match self.max_errors {
            Some(most) if self.repairs.total() > most => {
                let kinds: Vec<String> = self
                    .repairs
                    .by_kind()
                    .map(|(entry, count)| format!("{} {}", count, entry.name))
                    .collect();
                Err(Error::place(
                    "input",
                    format_args!("more than {most} faults: {}", kinds.join(", ")),
                    "correct the input, or raise --max-errors",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Adds a block to the row groups and encodes the full ones.
    fn group(&mut self, input: u32, block: Block) -> Result<()> {
        if !std::mem::replace(&mut self.checked_identifiers, true) {
            self.warn_of_identifiers(&block);
        }
        self.unlabelled.check(&block, &self.names[input as usize])?;
        self.width = self.width.max(block.features.width());
        let (tracker, query_sample, encoder) = (&mut self.tracker, self.query_sample, &mut self.encoder);
        self.grouper.push(
            Arc::new(block),
            &mut |name, line| {
                tracker.begin(name, InputLine { input, line })?;
                Ok(query_sample.contains(name))
            },
            &mut |group| encoder.encode(group),
        )
    }

    /// Warns about features that look like identifiers. Only the first block of rows is examined, which is fast and
    /// sufficient.
    fn warn_of_identifiers(&self, block: &Block) {
        let found = identifiers::identifiers(block, &self.features);
        let (names, list) = (found.join(", "), found.join(","));
        match found.len() {
            0 => {}
            1 => tracing::warn!(
                "{names} looks like an identifier, which a model can memorise; skip it with --ignore-columns {list}"
            ),
            _ => tracing::warn!(
                "{names} look like identifiers, which a model can memorise; skip them with --ignore-columns {list}"
            ),
        }
    }

    /// Writes the last row group, performs the final checks and commits the dataset.
    fn finish(mut self, format: InputFormat, totals: IngestTotals) -> Result<Manifest> {
        match self.grouper.finish() {
            Some(group) => self.encoder.encode(group)?,
            None if self.tracker.is_empty() && self.unlabelled == Unlabelled::Drop => {
                return Err(self.unlabelled.nothing_left(self.tracker.first_input()));
            }
            None if self.tracker.is_empty() => {
                return Err(Error::place(
                    self.tracker.first_input(),
                    "there are no rows",
                    "pass an input with at least one line of data",
                ));
            }
            None => return Err(self.query_sample.empty_sample_error()),
        }
        self.tracker.finish()?;
        self.zeros.check_width(self.features.given().unwrap_or(self.width), &self.features)?;
        let writer = self.encoder.finish()?;
        interrupt::check()?;
        let fingerprint = self.query_sample.fingerprint(totals.fingerprint);
        let fingerprint = self.zero_as_missing.fingerprint(fingerprint);
        let fingerprint = self.unlabelled.fingerprint(fingerprint);
        let source = ManifestSource { format: format.name().to_owned(), bytes: totals.bytes, fingerprint };
        let mut manifest = Manifest::new(source);
        manifest.repairs = self
            .repairs
            .by_kind()
            .map(|(entry, count)| crate::dataset::RepairCount { kind: entry.name.to_owned(), count })
            .collect();
        manifest.categories = self.categories.finish();
        writer.commit(manifest)
    }
}

/// Reads the side files of the current input, such as weights and query sizes.
struct CurrentSideFiles {
    all: Vec<crate::ingest::SideFiles>,
    names: Vec<String>,
    open: Option<(u32, SideReader)>,
    /// Number of queries so far whose sizes come from a side file.
    query: u64,
    /// Whether the inputs have query ids; `None` until the first row is read.
    named: Option<bool>,
}

impl CurrentSideFiles {
    fn add_to(&mut self, input: u32, block: &mut Block) -> Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != input) {
            self.finish()?;
            let reader = self.all[input as usize].open(&self.names[input as usize])?;
            self.open = Some((input, reader));
        }
        let named = !block.runs.is_empty();
        if block.rows() > 0 && *self.named.get_or_insert(named) != named {
            return Err(Error::place(
                &self.names[input as usize],
                "this input has query sizes in a .query file, but another one has query ids",
                "convert the inputs separately, or add query ids to all of them",
            ));
        }
        match &mut self.open {
            Some((_, reader)) => reader.add_to(block, &mut self.query),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |(_, reader)| reader.finish())
    }
}

/// Encodes row groups on the thread pool and appends them to the dataset in order.
struct GroupEncoder {
    pool: Arc<ThreadPool>,
    layout: Layout,
    pending: VecDeque<Receiver<parquet::errors::Result<EncodedGroup>>>,
    writer: DatasetWriter,
}

impl GroupEncoder {
    /// Maximum number of row groups in the encoder: one group is encoded while the next one is collected.
    const MAX_PENDING: usize = 1;

    fn encode(&mut self, group: RowGroup) -> Result<()> {
        while self.pending.len() >= Self::MAX_PENDING {
            self.write_next()?;
        }
        let (sender, encoded) = sync_channel(1);
        let layout = self.layout.clone();
        self.pool.spawn(move || {
            let _ = sender.send(encode_group(&group, &layout)); // fails if an error has stopped the receiver
        });
        self.pending.push_back(encoded);
        Ok(())
    }

    fn write_next(&mut self) -> Result<()> {
        if let Some(encoded) = self.pending.pop_front() {
            let group = next(&encoded)?.ok_or_else(|| thread_ended("encoding"))?.map_err(|error| {
                Error::bug("convert", format_args!("failed to encode a row group: {error}")).caused_by(error)
            })?;
            tracing::debug!("writing a row group: {} rows, {} queries", group.rows, group.queries);
            self.writer.append(group)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<DatasetWriter> {
        while !self.pending.is_empty() {
            self.write_next()?;
        }
        Ok(self.writer)
    }
}
