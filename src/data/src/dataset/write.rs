//! Writes row groups to the files of a dataset.

use super::encode::EncodedGroup;
use super::fingerprint::ColumnSums;
use super::layout::Layout;
use super::manifest::{MANIFEST, Manifest, PartEntry};
use super::part::PartFile;
use crate::table::{TableReader, write_failure};
use parquet::errors::ParquetError;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, Staging, refuse_dash, refuse_hidden};

/// Default number of row groups per file.
const PART_GROUPS: usize = 4;

/// Options for writing a dataset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    /// Number of rows per file, rounded up to whole queries; `None` for a fixed number of row groups per file.
    pub partition_rows: Option<usize>,
    /// Whether to replace an existing dataset.
    pub overwrite: bool,
    /// Name of the input format that the rows come from.
    pub source_format: &'static str,
}

/// A dataset that is being written. If it is dropped without [`DatasetWriter::commit`], it leaves nothing behind.
pub(crate) struct DatasetWriter {
    target: Location,
    layout: Layout,
    options: WriteOptions,
    staging: Staging,
    open: Option<PartFile>,
    /// The finished files, each with its number of feature columns.
    finished: Vec<(PartEntry, usize)>,
    width: usize,
    unlabelled: u64,
    sums: ColumnSums,
}

impl DatasetWriter {
    /// Prepares to write a dataset to `target`. Fails if `target` is hidden, or exists and must not be replaced.
    pub(crate) fn begin(target: &Location, layout: Layout, options: WriteOptions) -> Result<Self> {
        refuse_dash(target)?;
        refuse_hidden(target)?;
        let staging = Staging::begin(target, MANIFEST, options.overwrite)
            .map_err(|error| table_in_the_way(target).unwrap_or(error))?;
        Ok(DatasetWriter {
            target: target.clone(),
            width: layout.features.given().unwrap_or(0),
            layout,
            options,
            staging,
            open: None,
            finished: Vec::new(),
            unlabelled: 0,
            sums: ColumnSums::default(),
        })
    }

    /// Appends a row group.
    pub(crate) fn append(&mut self, group: EncodedGroup) -> Result<()> {
        self.width = self.width.max(group.width);
        self.unlabelled += group.unlabelled as u64;
        self.sums.add(&group.sums);
        self.widen_open_part()?;
        let mut part = match self.open.take() {
            Some(part) => part,
            None => self.new_part(self.finished.len())?,
        };
        part.append(group).map_err(|error| self.failed(error))?;
        let is_full = match self.options.partition_rows {
            Some(rows) => part.rows() >= rows,
            None => part.row_groups() >= PART_GROUPS,
        };
        self.open = Some(part);
        if is_full { self.finish_part() } else { Ok(()) }
    }

    /// Rewrites the open file with more feature columns, if it has fewer features than the data so far.
    fn widen_open_part(&mut self) -> Result<()> {
        if self.open.as_ref().is_none_or(|part| part.width() >= self.width) {
            return Ok(());
        }
        if let Some(narrow) = self.open.take() {
            let width = narrow.width();
            let (file, entry) = narrow.finish().map_err(|error| self.failed(error))?;
            let file = file.into_readable().map_err(|error| Error::io(&self.target, "read back", error))?;
            let mut wide = self.new_part(self.finished.len())?;
            wide.append_file(&file, &entry, width).map_err(|error| self.failed(error))?;
            self.open = Some(wide);
        }
        Ok(())
    }

    fn new_part(&mut self, number: usize) -> Result<PartFile> {
        let file = self.staging.create()?;
        PartFile::new(file, &self.layout, self.width, number, self.options.source_format)
            .map_err(|error| self.failed(error))
    }

    fn finish_part(&mut self) -> Result<()> {
        if let Some(part) = self.open.take() {
            let width = part.width();
            let (file, entry) = part.finish().map_err(|error| self.failed(error))?;
            self.staging.keep(file, &entry.name)?;
            self.finished.push((entry, width));
        }
        Ok(())
    }

    /// Adds the missing feature columns to files that were finished before these features first occurred.
    fn widen_finished(&mut self) -> Result<()> {
        for number in 0..self.finished.len() {
            let (narrow, width) = self.finished[number].clone();
            if width == self.width {
                continue;
            }
            let file = self.staging.reopen(&narrow.name)?;
            let mut wide = self.new_part(number)?;
            wide.append_file(&file, &narrow, width).map_err(|error| self.failed(error))?;
            let (file, entry) = wide.finish().map_err(|error| self.failed(error))?;
            self.staging.discard(&narrow.name)?;
            self.staging.keep(file, &entry.name)?;
            self.finished[number] = (entry, self.width);
        }
        Ok(())
    }

    /// Completes the manifest and publishes the dataset.
    pub(crate) fn commit(mut self, mut manifest: Manifest) -> Result<Manifest> {
        self.finish_part()?;
        self.widen_finished()?;
        manifest.files = self.finished.drain(..).map(|(entry, _)| entry).collect();
        manifest.rows = manifest.files.iter().map(|file| file.rows).sum();
        manifest.queries = manifest.files.iter().map(|file| file.queries).sum();
        manifest.unlabelled = self.unlabelled;
        manifest.weight = self.layout.weight;
        manifest.position = self.layout.position;
        manifest.features = (0..self.width).map(|feature| self.layout.features.name(feature)).collect();
        manifest.fingerprint = Some(self.sums.fingerprint(&manifest));
        self.staging.commit(&manifest.to_bytes())?;
        Ok(manifest)
    }

    fn failed(&self, error: ParquetError) -> Error {
        write_failure(&self.target, error)
    }
}

/// Returns the error for a target that is a table of planetree. Tables are files, so no dataset may replace them.
fn table_in_the_way(target: &Location) -> Option<Error> {
    let kind = target.size().ok()?.and_then(|_| TableReader::kind_of(target).ok()?)?;
    Some(Error::place(
        target,
        format_args!("refusing to overwrite: this is {}, not a dataset", kind.noun()),
        "choose another --output, or remove it first",
    ))
}
