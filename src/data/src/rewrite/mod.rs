//! Writes a dataset whose rows come from another dataset: some of its queries, or its queries with further columns or
//! further rows.
//!
//! ```text
//! dataset ──row groups──► queries ──change──► rows ──► row groups ──► dataset
//!           all cores                                 one thread
//! ```

mod columns;

use crate::dataset::{
    DatasetReader, DatasetWriter, FeatureNames, GroupId, GroupReader, Grouper, Layout, Manifest,
    ManifestSource, RowGroup, WriteOptions, encode_group,
};
use crate::rows::{Block, BlockBuilder};
use crate::table::write_failure;
use columns::TypedColumns;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, interrupt};
use rayon::prelude::*;
use std::sync::Arc;

/// A change of the rows of a dataset. Queries are changed independently, so that any number of threads and any
/// partitioning give the same rows.
pub trait RowChange: Sync {
    /// Returns the values of the new features: for each of them, one value per row of the group.
    fn new_values(&self, group: &GroupReader) -> Result<Vec<Vec<f32>>>;

    /// Returns the queries to write in place of a query with this id and number of rows, in order.
    fn queries(&self, query: &str, rows: usize) -> Result<Vec<RewrittenQuery>>;
}

/// A query of the new dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenQuery {
    /// The query id.
    pub id: String,
    /// The rows, as indices within the old query.
    pub rows: Vec<usize>,
}

/// A dataset to write.
#[derive(Debug)]
pub struct RewriteRequest<'a> {
    /// The new dataset.
    pub target: &'a Location,
    /// Whether to replace an existing dataset.
    pub overwrite: bool,
    /// Number of rows per file; `None` for the default file size.
    pub partition_rows: Option<usize>,
    /// Names of the new features. They follow the features of the old dataset.
    pub new_features: &'a [String],
    /// Hash that identifies the origin of the new rows.
    pub origin: Digest,
}

/// Writes the changed rows of a dataset, and returns the manifest of the new one.
pub fn rewrite(
    reader: &DatasetReader,
    request: &RewriteRequest<'_>,
    change: &dyn RowChange,
) -> Result<Manifest> {
    let from = reader.manifest();
    let names = from.features.iter().chain(request.new_features).cloned().collect();
    let layout =
        Layout { features: FeatureNames::Given(names), weight: from.weight, position: from.position };
    let options = WriteOptions {
        partition_rows: request.partition_rows,
        overwrite: request.overwrite,
        source_format: format_name(&from.source.format),
    };
    let mut writer = DatasetWriter::begin(request.target, layout.clone(), options)?;
    let mut append = |group: RowGroup| {
        let encoded = encode_group(&group, &layout).map_err(|error| write_failure(request.target, error))?;
        writer.append(encoded)
    };
    let mut grouper = Grouper::new(request.partition_rows.unwrap_or(usize::MAX), usize::MAX);
    for chunk in reader.groups().chunks(rayon::current_num_threads()) {
        interrupt::check()?;
        let blocks = chunk.par_iter().map(|id| changed_rows(reader, *id, change));
        for block in blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            grouper.push(Arc::new(block), &mut |_, _| Ok(true), &mut append)?;
        }
    }
    grouper.finish().map_or(Ok(()), &mut append)?;
    let source = ManifestSource { fingerprint: request.origin, ..from.source.clone() };
    writer.commit(Manifest { categories: from.categories.clone(), ..Manifest::new(source) })
}

/// Converts the name of an input format to a static string.
fn format_name(name: &str) -> &'static str {
    ["letor", "csv", "parquet"].into_iter().find(|known| *known == name).unwrap_or("dataset")
}

/// Returns the changed rows of a row group.
fn changed_rows(reader: &DatasetReader, id: GroupId, change: &dyn RowChange) -> Result<Vec<Block>> {
    /// Maximum number of values (rows times columns) to decode at a time.
    const VALUES: usize = 1 << 21;
    let group = reader.open_group(id)?;
    let columns: Vec<usize> = (0..group.columns()).collect();
    let batch_rows = (VALUES / columns.len().max(1)).max(64);
    let mut rows = GroupRows {
        new_values: change.new_values(&group)?,
        features: reader.manifest().features.len(),
        change,
        open: Vec::new(),
        next_row: 0,
        builder: BlockBuilder::default(),
    };
    let mut blocks = Vec::new();
    group.read_batches(&columns, batch_rows, &mut |batch| {
        let batch = TypedColumns::of(&batch, reader)?;
        for query in batch.queries() {
            rows.add(batch.slice(query))?;
        }
        blocks.push(rows.builder.finish());
        Ok(())
    })?;
    rows.close_query()?;
    blocks.push(rows.builder.finish());
    Ok(blocks)
}

/// Collects the changed rows of a row group. A batch may end within a query, so the rows of the last query are kept
/// until the next query begins.
struct GroupRows<'a> {
    /// For each new feature, the values of all rows of the group.
    new_values: Vec<Vec<f32>>,
    /// Number of features of the old dataset.
    features: usize,
    change: &'a dyn RowChange,
    /// The rows of the open query, in one or several pieces.
    open: Vec<TypedColumns>,
    /// Index in the group of the first row after the closed queries.
    next_row: usize,
    builder: BlockBuilder,
}

impl GroupRows<'_> {
    /// Adds rows of one query.
    fn add(&mut self, rows: TypedColumns) -> Result<()> {
        if self.open.first().is_some_and(|open| open.query(0) != rows.query(0)) {
            self.close_query()?;
        }
        self.open.push(rows);
        Ok(())
    }

    /// Writes the rows in place of the open query.
    fn close_query(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        let Some(first) = open.first() else { return Ok(()) };
        let count = open.iter().map(TypedColumns::rows).sum();
        for query in self.change.queries(first.query(0), count)? {
            for row in &query.rows {
                let mut place = *row;
                let mut piece = 0;
                while place >= open[piece].rows() {
                    place -= open[piece].rows();
                    piece += 1;
                }
                self.builder.query(query.id.as_bytes(), 0);
                for (feature, value) in open[piece].present(place) {
                    self.builder.push_entry(feature, value);
                }
                for (feature, values) in (self.features as u32..).zip(&self.new_values) {
                    self.builder.push_entry(feature, values[self.next_row + row]);
                }
                open[piece].finish_row(place, &mut self.builder);
            }
        }
        self.next_row += count;
        Ok(())
    }
}

/// Creates the error for missing columns and for columns of the wrong type.
fn invalid_columns(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "malformed dataset: unexpected columns", "convert the data again")
}

#[cfg(test)]
mod tests;
