//! Caches binned data on disk. A cache consists of two files: an Arrow IPC file, which has one record batch per
//! partition (row group of the dataset) and is memory-mapped in pieces, and a description file with the bins and a
//! checksum. File names are derived from the dataset's content and the binning options, so later runs can reuse the
//! files.

use super::binning::{BinOptions, Binning};
use super::cuts::FeatureBins;
use super::layout::BinLayout;
use super::partition::{Codes, schema};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::writer::FileWriter;
use arrow::ipc::{Block, MetadataVersion, root_as_footer};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, HashingWriter, Location, digest_of, map_stretch};
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Version of the cache format. Increase it whenever the same data would get other codes (bin numbers) or other
/// groups of features. Then also increase the build identifier of cluster executors.
const FORMAT: u32 = 5;

/// Identifies a cache by the dataset's content and the binning options.
#[derive(Debug, Clone)]
pub struct CacheKey {
    directory: PathBuf,
    name: String,
}

impl CacheKey {
    /// Creates the key for a dataset whose cache is in `directory`.
    pub fn new(directory: &Path, source: &LabelledData, options: &BinOptions) -> Self {
        let what = format!("{FORMAT} {options:?} {}", source.identity());
        CacheKey { directory: directory.to_owned(), name: digest_of(what.as_bytes()).to_string() }
    }

    fn codes(&self) -> PathBuf {
        self.directory.join(format!("{}.arrow", self.name))
    }

    fn description(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.name))
    }
}

#[derive(Serialize, Deserialize)]
struct CacheDescription {
    planetree_bins: u32,
    bytes: u64,
    xxh3: Digest,
    features: Vec<DescribedBins>,
    grouped: bool,
    sparse: bool,
    by_query: bool,
}

/// Bins of a feature in serialisable form. Floats are stored as bit patterns, so that they are restored exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DescribedBins {
    cuts: Vec<u32>,
    centres: Vec<u32>,
    fill: Option<u32>,
    missing_code: Option<u32>,
    missing_seen: bool,
    common_code: u32,
    common_share: u32,
}

impl DescribedBins {
    /// Converts bins to the serialisable form.
    pub(crate) fn of(bins: &FeatureBins) -> Self {
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect();
        DescribedBins {
            cuts: bits(&bins.cuts),
            centres: bits(&bins.centres),
            fill: bins.fill.map(f32::to_bits),
            missing_code: bins.missing_code,
            missing_seen: bins.missing_seen,
            common_code: bins.common_code,
            common_share: bins.common_share.to_bits(),
        }
    }

    /// Converts the serialisable form back to bins.
    pub(crate) fn bins(&self) -> FeatureBins {
        let values = |bits: &[u32]| bits.iter().map(|bits| f32::from_bits(*bits)).collect();
        FeatureBins {
            cuts: values(&self.cuts),
            centres: values(&self.centres),
            fill: self.fill.map(f32::from_bits),
            missing_code: self.missing_code,
            missing_seen: self.missing_seen,
            common_code: self.common_code,
            common_share: f32::from_bits(self.common_share),
        }
    }
}

/// Writes a cache, one partition at a time.
pub struct CacheWriter {
    key: CacheKey,
    grouped: bool,
    sparse: bool,
    by_query: bool,
    output: Option<FileOutput>,
    writer: Option<FileWriter<HashingWriter<FileOutput>>>,
    features: Vec<DescribedBins>,
}

impl CacheWriter {
    /// Starts a cache. Other runs see it only after [`CacheWriter::finish`].
    pub fn create(key: &CacheKey, options: &BinOptions) -> Result<Self> {
        let output = FileOutput::create(&Location::Local(key.codes()))?;
        let grouped = options.max_bin.is_some();
        Ok(CacheWriter {
            key: key.clone(),
            grouped,
            sparse: options.sparse,
            by_query: options.by_query,
            output: Some(output),
            writer: None,
            features: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self, binning: &Binning) -> Result<()> {
        let output = self.output.take().expect("a cache begins once");
        let writer = FileWriter::try_new(HashingWriter::new(output), &schema(&binning.layout));
        self.writer = Some(writer.map_err(|error| self.failed(error))?);
        self.features = binning.features.iter().map(DescribedBins::of).collect();
        Ok(())
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let writer = self.writer.as_mut().expect("a cache begins with its bins");
        writer.write(batch).map_err(|error| self.failed(error))
    }

    /// Completes the cache, so that other runs see it, and opens it.
    pub fn finish(mut self) -> Result<BinCache> {
        let mut writer = self.writer.take().expect("a cache begins with its bins");
        writer.finish().map_err(|error| self.failed(error))?;
        let mut output = writer.into_inner().map_err(|error| self.failed(error))?;
        let description = CacheDescription {
            planetree_bins: FORMAT,
            bytes: output.written(),
            xxh3: output.end_stretch(),
            features: std::mem::take(&mut self.features),
            grouped: self.grouped,
            sparse: self.sparse,
            by_query: self.by_query,
        };
        output.into_inner().commit()?;
        // The description is written last, because codes without a description are ignored.
        let mut text = serde_json::to_string(&description).expect("numbers and strings always serialise");
        text.push_str(&format!("\n{}\n", digest_of(text.as_bytes())));
        let mut output = FileOutput::create(&Location::Local(self.key.description()))?;
        output.write_all(text.as_bytes()).map_err(|error| self.io_error(error))?;
        output.commit()?;
        let file = File::open(self.key.codes()).map_err(|error| self.io_error(error))?;
        BinCache::open_file(&self.key, file).map_err(|error| self.io_error(error))
    }

    fn io_error(&self, error: io::Error) -> Error {
        Error::io(self.key.directory.display(), "write the cache of binned data", error)
    }

    fn failed(&self, error: arrow::error::ArrowError) -> Error {
        match error {
            arrow::error::ArrowError::IoError(_, error) => self.io_error(error),
            other => Error::place(self.key.directory.display(), other, "remove the cache and try again"),
        }
    }
}

/// A complete cache, opened for reading.
pub struct BinCache {
    path: PathBuf,
    file: File,
    schema: SchemaRef,
    version: MetadataVersion,
    blocks: Vec<Block>,
}

impl BinCache {
    /// Opens the cache for a key. Returns `None` if there is no cache or if it is damaged; the description of a damaged
    /// cache is removed.
    pub fn find(key: &CacheKey) -> Result<Option<(BinCache, Binning)>> {
        let Ok(text) = fs::read(key.description()) else { return Ok(None) };
        let found = Self::check(key, &text);
        if found.is_none() {
            tracing::warn!("{} is damaged and will be rebuilt", key.codes().display());
            let _ = fs::remove_file(key.description()); // a failure is harmless: the file will be replaced
        }
        Ok(found)
    }

    fn check(key: &CacheKey, text: &[u8]) -> Option<(BinCache, Binning)> {
        let (body, digest) = std::str::from_utf8(text).ok()?.split_once('\n')?;
        if digest.trim_end() != digest_of(body.as_bytes()).to_string() {
            return None;
        }
        let description: CacheDescription = serde_json::from_str(body).ok()?;
        if description.planetree_bins != FORMAT {
            return None;
        }
        let mut file = File::open(key.codes()).ok()?;
        let mut hasher = Xxh3::new();
        let mut buffer = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            let count = file.read(&mut buffer).ok()?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            bytes += count as u64;
        }
        if bytes != description.bytes || Digest(hasher.digest128()) != description.xxh3 {
            return None;
        }
        let features: Vec<FeatureBins> = description.features.iter().map(DescribedBins::bins).collect();
        let layout = BinLayout::of_kind(description.grouped, description.sparse, &features);
        let binning = Binning { features, layout, by_query: description.by_query };
        let cache = BinCache::open_file(key, file).ok()?;
        (cache.schema == schema(&binning.layout)).then_some((cache, binning))
    }

    fn open_file(key: &CacheKey, file: File) -> io::Result<Self> {
        let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
        let length = file.metadata()?.len();
        let start = length.checked_sub(10).ok_or_else(|| invalid("too short"))?;
        let trailer = map_stretch(&file, start, 10)?;
        let trailer: [u8; 10] = trailer[..].try_into().map_err(|_| invalid("too short"))?;
        let footer_length = read_footer_length(trailer).map_err(|error| invalid(&error.to_string()))?;
        let footer_start = start.checked_sub(footer_length as u64).ok_or_else(|| invalid("no footer"))?;
        let footer = map_stretch(&file, footer_start, footer_length)?;
        let footer = root_as_footer(&footer).map_err(|error| invalid(&error.to_string()))?;
        let schema = footer.schema().ok_or_else(|| invalid("no schema"))?;
        Ok(BinCache {
            path: key.codes(),
            schema: std::sync::Arc::new(fb_to_schema(schema)),
            version: footer.version(),
            blocks: footer.recordBatches().iter().flatten().copied().collect(),
            file,
        })
    }

    /// Memory-maps the given columns of a partition.
    pub fn codes(&self, partition: usize, columns: &[usize]) -> Result<Codes> {
        let mapped = || -> std::result::Result<Option<RecordBatch>, arrow::error::ArrowError> {
            let block = &self.blocks[partition];
            let length = block.bodyLength() as usize + block.metaDataLength() as usize;
            let bytes = map_stretch(&self.file, block.offset() as u64, length)?;
            FileDecoder::new(self.schema.clone(), self.version)
                .with_projection(columns.to_vec())
                .with_require_alignment(true)
                .read_record_batch(block, &Buffer::from(bytes))
        };
        match mapped() {
            Ok(Some(batch)) => Ok(Codes::some(batch, columns.to_vec())),
            Ok(None) => Err(self.damaged("missing partition")),
            Err(error) => Err(self.damaged(error)),
        }
    }

    fn damaged(&self, problem: impl std::fmt::Display) -> Error {
        Error::place(
            self.path.display(),
            format_args!("cannot read: {problem}"),
            "remove the file and run again",
        )
    }
}
