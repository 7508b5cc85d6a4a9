//! Writes a dataset whose rows come from another dataset: some of its rows and columns, further rows and columns, other
//! labels and weights, or values in place of missing ones.
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
use std::ops::Range;
use std::sync::Arc;

/// A change of the rows of a dataset. Queries are changed independently, so that any number of threads and any
/// partitioning give the same rows.
pub trait RowChange: Sync {
    /// Returns the values of the rows of a group that differ from those of the dataset.
    fn values(&self, _group: &GroupReader) -> Result<RowValues> {
        Ok(RowValues::default())
    }

    /// Returns the queries to write in place of a query with this id, in order. `rows` are its rows in the dataset,
    /// counted from 0.
    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>>;
}

/// Values of the rows of a group, with one number per row in every list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowValues {
    /// The values of each new feature.
    pub new: Vec<Vec<f32>>,
    /// Features of the dataset, each with the values that replace those of its rows. NaN replaces nothing.
    pub replaced: Vec<(usize, Vec<f32>)>,
    /// Labels that replace those of the rows; NaN for no label.
    pub labels: Option<Vec<f32>>,
    /// Weights that replace those of the rows.
    pub weights: Option<Vec<f32>>,
}

/// A query of the new dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenQuery {
    /// The query id.
    pub id: String,
    /// The rows, as indices within the old query.
    pub rows: Vec<usize>,
}

impl RewrittenQuery {
    /// Creates a query with all of the old query's `rows`.
    pub fn all(id: String, rows: Range<u64>) -> Self {
        RewrittenQuery { id, rows: (0..(rows.end - rows.start) as usize).collect() }
    }
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
    /// The features of the old dataset to keep, as indices in ascending order; `None` for all.
    pub features: Option<&'a [usize]>,
    /// Names of the new features. They follow those of the old dataset.
    pub new_features: &'a [String],
    /// Whether rows have weights.
    pub weights: WeightColumn,
    /// Hash that identifies the origin of the new rows.
    pub origin: Digest,
}

/// Whether the rows of a new dataset have weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightColumn {
    /// If those of the old one have.
    AsBefore,
    /// Always; 1 unless the old dataset or the change has others.
    Always,
    /// Never.
    Never,
}

/// Writes the changed rows of a dataset, and returns the manifest of the new one.
pub fn rewrite(
    reader: &DatasetReader,
    request: &RewriteRequest<'_>,
    change: &dyn RowChange,
) -> Result<Manifest> {
    let from = reader.manifest();
    let plan = ColumnChange::new(request, from);
    let names: Vec<String> = plan.kept.iter().map(|feature| from.features[*feature].clone()).collect();
    let categories =
        from.categories.iter().filter(|column| names.contains(&column.feature)).cloned().collect();
    let layout = Layout {
        features: FeatureNames::Given(
            names.into_iter().chain(request.new_features.iter().cloned()).collect(),
        ),
        weight: plan.weight,
        position: from.position,
    };
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
        let blocks = chunk.par_iter().map(|id| changed_rows(reader, *id, &plan, change));
        for block in blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            grouper.push(Arc::new(block), &mut |_, _| Ok(true), &mut append)?;
        }
    }
    grouper.finish().map_or(Ok(()), &mut append)?;
    let source = ManifestSource { fingerprint: request.origin, ..from.source.clone() };
    writer.commit(Manifest { categories, ..Manifest::new(source) })
}

/// Converts the name of an input format to a static string.
fn format_name(name: &str) -> &'static str {
    ["letor", "csv", "parquet"].into_iter().find(|known| *known == name).unwrap_or("dataset")
}

/// Where the columns of the old dataset go.
struct ColumnChange {
    /// The features to keep.
    kept: Vec<usize>,
    /// The new index of each feature; `None` if it is not kept.
    places: Vec<Option<u32>>,
    /// Whether rows have weights.
    weight: bool,
}

impl ColumnChange {
    fn new(request: &RewriteRequest<'_>, from: &Manifest) -> Self {
        let kept = match request.features {
            Some(kept) => kept.to_vec(),
            None => (0..from.features.len()).collect(),
        };
        let mut places = vec![None; from.features.len()];
        for (place, feature) in (0..).zip(&kept) {
            places[*feature] = Some(place);
        }
        let weight = match request.weights {
            WeightColumn::AsBefore => from.weight,
            WeightColumn::Always => true,
            WeightColumn::Never => false,
        };
        ColumnChange { kept, places, weight }
    }
}

/// Returns the changed rows of a row group.
fn changed_rows(
    reader: &DatasetReader,
    id: GroupId,
    plan: &ColumnChange,
    change: &dyn RowChange,
) -> Result<Vec<Block>> {
    /// Maximum number of values (rows times columns) to decode at a time.
    const VALUES: usize = 1 << 21;
    let group = reader.open_group(id)?;
    let columns: Vec<usize> = (0..group.columns()).collect();
    let batch_rows = (VALUES / columns.len().max(1)).max(64);
    let mut rows = GroupRows {
        values: change.values(&group)?,
        plan,
        change,
        open: Vec::new(),
        first_row: group.first_row(),
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
    values: RowValues,
    plan: &'a ColumnChange,
    change: &'a dyn RowChange,
    /// The rows of the open query, in one or several pieces.
    open: Vec<TypedColumns>,
    /// Number of the group's first row in the dataset.
    first_row: u64,
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
        let count: usize = open.iter().map(TypedColumns::rows).sum();
        let begin = self.first_row + self.next_row as u64;
        for query in self.change.queries(first.query(0), begin..begin + count as u64)? {
            for row in &query.rows {
                let mut place = *row;
                let mut piece = 0;
                while place >= open[piece].rows() {
                    place -= open[piece].rows();
                    piece += 1;
                }
                self.builder.query(query.id.as_bytes(), 0);
                self.write_row(&open[piece], place, self.next_row + row);
            }
        }
        self.next_row += count;
        Ok(())
    }

    /// Adds a row to the builder: its index in the piece, and in the group.
    fn write_row(&mut self, piece: &TypedColumns, place: usize, row: usize) {
        let RowValues { new, replaced, labels, weights } = &self.values;
        let replacement = |feature: usize| {
            let values = replaced.iter().find(|(other, _)| *other == feature);
            values.map(|(_, values)| values[row]).filter(|value| !value.is_nan())
        };
        for (feature, value) in piece.present(place) {
            if let Some(new_place) = self.plan.places[feature as usize]
                && replacement(feature as usize).is_none()
            {
                self.builder.push_entry(new_place, value);
            }
        }
        for (feature, values) in replaced {
            if let Some(new_place) = self.plan.places[*feature]
                && !values[row].is_nan()
            {
                self.builder.push_entry(new_place, values[row]);
            }
        }
        for (feature, values) in (self.plan.kept.len() as u32..).zip(new) {
            self.builder.push_entry(feature, values[row]);
        }
        let label = labels.as_ref().map(|labels| labels[row]);
        let weight = weights.as_ref().map(|weights| weights[row]);
        piece.finish_row(place, label, self.plan.weight.then_some(weight), &mut self.builder);
    }
}

/// Creates the error for missing columns and for columns of the wrong type.
fn invalid_columns(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "malformed dataset: unexpected columns", "convert the data again")
}

#[cfg(test)]
mod tests;
