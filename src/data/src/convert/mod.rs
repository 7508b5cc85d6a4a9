//! Ranking data of any kind to a dataset. The stages overlap: one thread reads, unpacks and cuts;
//! all cores decode and encode; this thread puts pieces back in order, checks the queries, and
//! writes.
//!
//! ```text
//! inputs ─read─► chunks ─decode (pool)─► blocks ─in order─► row groups ─encode (pool)─► files
//! ```

mod categories;
mod gather;
mod identifiers;
mod ledger;
mod share;
#[cfg(test)]
mod tests;

pub use share::QueryShare;

use crate::dataset::{
    DatasetWriter, EncodedGroup, FeatureNames, Grouper, Layout, Manifest, Place, RowGroup, Source,
    WriteOptions, encode_group,
};
use crate::ingest::{Format, Ingest, SideReader, Totals, Work};
use crate::rows::BlockBuilder;
use crate::rows::fault::Repairs;
use crate::rows::{Block, Rows};
use categories::CategoryCodes;
use gather::Gatherer;
use ledger::Ledger;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How a conversion goes.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// The dataset to write.
    pub output: Location,
    /// Whether an existing dataset may be replaced.
    pub overwrite: bool,
    /// Rows of a file, rounded up to whole queries.
    pub partition_rows: Option<usize>,
    /// Threads that decode and encode.
    pub threads: usize,
    /// Whether queries that are scattered shall be gathered.
    pub sort_queries: bool,
    /// How many faults may be repaired or left out.
    pub max_errors: Option<u64>,
    /// Which of the queries are kept.
    pub share: QueryShare,
    /// Bytes of memory to stay below.
    pub memory_limit: u64,
    /// Words whose codes are given, from another dataset.
    pub categories: Vec<crate::dataset::Categories>,
}

impl ConvertOptions {
    /// All queries, on all cores, with the memory limit of the command line.
    pub fn new(output: Location) -> Self {
        ConvertOptions {
            output,
            overwrite: false,
            partition_rows: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            sort_queries: false,
            max_errors: None,
            share: QueryShare::ALL,
            memory_limit: 512 << 20,
            categories: Vec::new(),
        }
    }
}

/// The least memory a conversion gets along with: three row groups, and chunks on their way.
pub const LEAST_MEMORY: u64 = 192 << 20;

/// What a conversion says while it runs.
pub struct Step {
    /// Bytes of input since the last step.
    pub bytes: usize,
    /// Rows since the last step.
    pub rows: usize,
    /// Rows that were gathered since the last step, after all have been read.
    pub gathered: usize,
}

/// Reads all inputs and writes the dataset.
pub fn convert(ingest: Ingest, options: &ConvertOptions, progress: &mut dyn FnMut(Step)) -> Result<Manifest> {
    if options.memory_limit < LEAST_MEMORY {
        return Err(Error::usage(
            format_args!("--memory-limit {} MiB is too small", options.memory_limit >> 20),
            format_args!("give it at least {} MiB", LEAST_MEMORY >> 20),
        ));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .thread_name(|number| format!("planetree-{number}"))
        .panic_handler(|_| {}) // the one who waits for the result reports it
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
    let writer = DatasetWriter::begin(&options.output, layout.clone(), write_options)?;
    let mut sequencer = Sequencer {
        sides: Sides {
            ingest_sides: ingest.sides().to_vec(),
            names: names.clone(),
            open: None,
            query: 0,
            named: None,
        },
        categories: CategoryCodes::new(&layout.features, &options.categories),
        repairs: Repairs::default(),
        max_errors: options.max_errors,
        grouper: Grouper::new(
            options.partition_rows.unwrap_or(usize::MAX),
            (options.memory_limit / 2) as usize,
        ),
        ledger: Ledger::new(names),
        features: layout.features.clone(),
        looked_for_identifiers: false,
        share: options.share,
        encoder: Encoder { pool: pool.clone(), layout: layout.clone(), pending: VecDeque::new(), writer },
    };
    // A piece is a mebibyte of text and about as much again when decoded.
    let queue = (4 + 4 * options.threads).min((options.memory_limit >> 24) as usize);
    let totals = if options.sort_queries {
        let mut gatherer = Gatherer::new(layout, options.memory_limit / 4);
        let totals =
            read_in_order(ingest, &pool, queue, BlockBuilder::finish_rows, &mut |input, mut rows, bytes| {
                sequencer.prepare_rows(input, &mut rows)?;
                progress(Step { bytes, rows: rows.block.rows(), gathered: 0 });
                gatherer.add(&rows)
            })?;
        sequencer.sides.finish()?;
        gatherer.finish(&mut |block| {
            progress(Step { bytes: 0, rows: 0, gathered: block.rows() });
            sequencer.group(0, block)
        })?;
        totals
    } else {
        let totals =
            read_in_order(ingest, &pool, queue, BlockBuilder::finish, &mut |input, mut block, bytes| {
                sequencer.prepare(input, &mut block)?;
                progress(Step { bytes, rows: block.rows(), gathered: 0 });
                sequencer.group(input, block)
            })?;
        sequencer.sides.finish()?;
        totals
    };
    sequencer.finish(format, totals)
}

thread_local! {
    static BUILDER: RefCell<BlockBuilder> = RefCell::default();
}

/// Reads on a thread of its own, decodes on the pool, and hands every piece to `each` in the order
/// of the input. At most a few pieces are on their way at a time.
fn read_in_order<T: Send + 'static>(
    ingest: Ingest,
    pool: &Arc<ThreadPool>,
    pieces_on_their_way: usize,
    finish: fn(&mut BlockBuilder) -> T,
    each: &mut dyn FnMut(u32, T, usize) -> Result<()>,
) -> Result<Totals> {
    struct Promise<T> {
        input: u32,
        bytes: usize,
        decoded: Receiver<Result<T>>,
    }
    let (queue, promises): (SyncSender<Promise<T>>, _) = sync_channel(pieces_on_their_way);
    let workers = pool.clone();
    let reader = std::thread::Builder::new().name("planetree-reader".to_owned()).spawn(move || {
        ingest.run(&mut |work: Work, bytes| {
            let input = work.input;
            let (sender, decoded) = sync_channel(1);
            workers.spawn(move || {
                let outcome =
                    BUILDER.with_borrow_mut(|builder| work.decode(builder).map(|()| finish(builder)));
                let _ = sender.send(outcome); // nobody waits for it after an error
            });
            // Nobody listens any more: the other side has an error to report.
            queue.send(Promise { input, bytes, decoded }).map_err(|_| Error::Interrupted)
        })
    });
    let reader = reader.map_err(|error| Error::io("reader thread", "start", &error))?;
    while let Some(promise) = next(&promises)? {
        let piece = next(&promise.decoded)?.ok_or_else(|| lost("decoding"))??;
        each(promise.input, piece, promise.bytes)?;
    }
    reader.join().map_err(|_| lost("reading"))?
}

/// Receives, and notices an interrupt meanwhile; `None` when there is nothing more to come.
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

fn lost(doing: &str) -> Error {
    Error::place(
        "planetree",
        format_args!("a thread that was {doing} ended early"),
        "please report this as a bug",
    )
}

/// What happens to pieces once they are in order.
struct Sequencer {
    sides: Sides,
    categories: CategoryCodes,
    repairs: Repairs,
    max_errors: Option<u64>,
    grouper: Grouper,
    ledger: Ledger,
    features: FeatureNames,
    looked_for_identifiers: bool,
    share: QueryShare,
    encoder: Encoder,
}

impl Sequencer {
    /// Completes a block with what is known only in order: side files, codes of words, repairs.
    fn prepare(&mut self, input: u32, block: &mut Block) -> Result<()> {
        self.sides.add_to(input, block)?;
        for (feature, words) in std::mem::take(&mut block.categories) {
            block.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&block.repairs)
    }

    fn prepare_rows(&mut self, input: u32, rows: &mut Rows) -> Result<()> {
        self.sides.add_to(input, &mut rows.block)?;
        for (feature, words) in std::mem::take(&mut rows.block.categories) {
            rows.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&rows.block.repairs)
    }

    fn count_repairs(&mut self, repairs: &Repairs) -> Result<()> {
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

    /// Adds a block to the row groups and passes on those that are full.
    fn group(&mut self, input: u32, block: Block) -> Result<()> {
        if !std::mem::replace(&mut self.looked_for_identifiers, true) {
            self.warn_of_identifiers(&block);
        }
        let (ledger, share, encoder) = (&mut self.ledger, self.share, &mut self.encoder);
        self.grouper.push(
            Arc::new(block),
            &mut |name, line| {
                ledger.begin(name, Place { input, line })?;
                Ok(share.keeps(name))
            },
            &mut |group| encoder.encode(group),
        )
    }

    /// The first block is enough, and costs nothing.
    fn warn_of_identifiers(&self, block: &Block) {
        let found = identifiers::identifiers(block, &self.features);
        let (names, list) = (found.join(", "), found.join(","));
        match found.len() {
            0 => {}
            1 => tracing::warn!(
                "{names} looks like an identifier, which a model can memorise; leave it out with --ignore-columns {list}"
            ),
            _ => tracing::warn!(
                "{names} look like identifiers, which a model can memorise; leave them out with --ignore-columns {list}"
            ),
        }
    }

    /// The last row group, the last checks, and the commit.
    fn finish(mut self, format: Format, totals: Totals) -> Result<Manifest> {
        match self.grouper.finish() {
            Some(group) => self.encoder.encode(group)?,
            None if self.ledger.is_empty() => {
                return Err(Error::place(
                    self.ledger.first_input(),
                    "there are no rows",
                    "name an input with at least one line of data",
                ));
            }
            None => return Err(self.share.keeps_nothing()),
        }
        self.ledger.finish()?;
        let writer = self.encoder.finish()?;
        interrupt::check()?;
        let fingerprint = self.share.fingerprint(totals.fingerprint);
        let source = Source { format: format.name().to_owned(), bytes: totals.bytes, fingerprint };
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

/// The side files of the input that is being read.
struct Sides {
    ingest_sides: Vec<crate::ingest::SideFiles>,
    names: Vec<String>,
    open: Option<(u32, SideReader)>,
    /// How many queries had no name so far.
    query: u64,
    /// Whether the inputs name their queries.
    named: Option<bool>,
}

impl Sides {
    fn add_to(&mut self, input: u32, block: &mut Block) -> Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != input) {
            self.finish()?;
            let reader = self.ingest_sides[input as usize].open(&self.names[input as usize])?;
            self.open = Some((input, reader));
        }
        let named = !block.runs.is_empty();
        if block.rows() > 0 && *self.named.get_or_insert(named) != named {
            return Err(Error::place(
                &self.names[input as usize],
                "this input counts its queries in a .query file and another one names them",
                "convert them one by one, or give all of them query ids",
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

/// Encodes row groups on the pool and appends them in order.
struct Encoder {
    pool: Arc<ThreadPool>,
    layout: Layout,
    pending: VecDeque<Receiver<parquet::errors::Result<EncodedGroup>>>,
    writer: DatasetWriter,
}

impl Encoder {
    /// One group is encoded while the next is collected.
    const MOST_PENDING: usize = 1;

    fn encode(&mut self, group: RowGroup) -> Result<()> {
        while self.pending.len() >= Self::MOST_PENDING {
            self.write_next()?;
        }
        let (sender, encoded) = sync_channel(1);
        let layout = self.layout.clone();
        self.pool.spawn(move || {
            let _ = sender.send(encode_group(&group, &layout)); // nobody waits for it after an error
        });
        self.pending.push_back(encoded);
        Ok(())
    }

    fn write_next(&mut self) -> Result<()> {
        if let Some(encoded) = self.pending.pop_front() {
            let group = next(&encoded)?.ok_or_else(|| lost("encoding"))?.map_err(|error| {
                Error::place(
                    "planetree",
                    format_args!("a row group cannot be encoded: {error}"),
                    "please report this as a bug",
                )
            })?;
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
