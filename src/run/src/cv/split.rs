//! Splits a dataset into parts of whole queries. Queries are sorted by a seeded hash of their ids and assigned to the
//! parts in turn, so the sizes of the parts differ by at most one query. The part of a query depends only on the seed
//! and the ids of all queries, and not on the order of the rows or on the files that contain them.

use super::queries::{first_rows, hash_of, hashes, invalid_columns};
use arrow::array::{Array, AsArray, Float32Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{Float32Type, Int32Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of, interrupt};
use planetree_data::dataset::{
    DatasetReader, DatasetWriter, FeatureNames, GroupId, Grouper, Layout, Manifest, ManifestSource, RowGroup,
    WriteOptions, encode_group,
};
use planetree_data::rows::Block;
use planetree_data::rows::BlockBuilder;
use planetree_data::table::write_failure;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// How to split a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuerySplit {
    /// Number of parts.
    pub parts: usize,
    /// Seed for the hash of query ids.
    pub seed: u64,
}

/// Writes the parts to directories below `directory`. Parts that an earlier run wrote with the same data and split
/// are kept.
pub fn split_dataset(
    reader: &DatasetReader,
    split: QuerySplit,
    directory: &Location,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<DatasetReader>> {
    let targets: Vec<Location> = (1..=split.parts).map(|part| directory.join(&part.to_string())).collect();
    let data = reader.fingerprint()?;
    let wanted = |part: usize| fingerprint(data, split, part);
    let is_complete = |part: usize| {
        Manifest::read(&targets[part]).is_ok_and(|manifest| manifest.source.fingerprint == wanted(part))
    };
    if !(0..split.parts).all(is_complete) {
        let queries = reader.manifest().queries;
        note(&format!("splitting {queries} queries into {} parts in {directory}", split.parts));
        let part_of = assign_parts(hashes(reader, split.seed)?, split.parts);
        for part in (0..split.parts).filter(|part| !is_complete(*part)) {
            let is_selected = |query: &str| part_of.get(&hash_of(query, split.seed)) == Some(&part);
            write_part(reader, &is_selected, &targets[part], wanted(part))?;
        }
    }
    targets.iter().map(DatasetReader::open).collect()
}

/// Returns a hash that identifies a part by the rows of the dataset and the split.
fn fingerprint(data: Digest, split: QuerySplit, part: usize) -> Digest {
    let QuerySplit { parts, seed } = split;
    digest_of(format!("{data} part {part} of {parts} by {seed}").as_bytes())
}

/// Assigns each query, given by its hash, to a part.
fn assign_parts(mut hashes: Vec<u128>, parts: usize) -> HashMap<u128, usize> {
    hashes.sort_unstable();
    hashes.into_iter().zip((0..parts).cycle()).collect()
}

fn write_part(
    reader: &DatasetReader,
    is_selected: &(dyn Fn(&str) -> bool + Sync),
    target: &Location,
    fingerprint: Digest,
) -> Result<()> {
    let from = reader.manifest();
    let layout = Layout {
        features: FeatureNames::Given(from.features.clone()),
        weight: from.weight,
        position: from.position,
    };
    let source_format = format_name(&from.source.format);
    let options = WriteOptions { partition_rows: None, overwrite: true, source_format };
    let mut writer = DatasetWriter::begin(target, layout.clone(), options)?;
    let mut append = |group: RowGroup| {
        let encoded = encode_group(&group, &layout).map_err(|error| write_failure(target, error))?;
        writer.append(encoded)
    };
    let mut grouper = Grouper::new(usize::MAX, usize::MAX);
    let groups = reader.groups();
    for chunk in groups.chunks(rayon::current_num_threads()) {
        interrupt::check()?;
        let blocks = chunk.par_iter().map(|id| selected_rows(reader, *id, is_selected));
        for block in blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            grouper.push(Arc::new(block), &mut |_, _| Ok(true), &mut append)?;
        }
    }
    grouper.finish().map_or(Ok(()), &mut append)?;
    let source = ManifestSource { fingerprint, ..from.source.clone() };
    let categories = from.categories.clone();
    writer.commit(Manifest { categories, ..Manifest::new(source) }).map(drop)
}

/// Converts the name of an input format to a static string.
fn format_name(name: &str) -> &'static str {
    ["letor", "csv", "parquet"].into_iter().find(|known| *known == name).unwrap_or("dataset")
}

/// Returns those rows of a row group that belong to selected queries.
fn selected_rows(
    reader: &DatasetReader,
    id: GroupId,
    is_selected: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Block>> {
    /// Maximum number of values (rows times columns) to decode at a time.
    const VALUES: usize = 1 << 21;
    let group = reader.open_group(id)?;
    let columns: Vec<usize> = (0..group.columns()).collect();
    let batch_rows = (VALUES / columns.len().max(1)).max(64);
    let mut blocks = Vec::new();
    let mut builder = BlockBuilder::default();
    group.read_batches(&columns, batch_rows, &mut |batch| {
        add_rows(&TypedColumns::of(&batch, reader)?, is_selected, &mut builder);
        blocks.push(builder.finish());
        Ok(())
    })?;
    Ok(blocks)
}

/// The columns of a batch of a dataset, as typed arrays.
struct TypedColumns<'a> {
    queries: &'a StringArray,
    documents: &'a StringArray,
    labels: &'a Float32Array,
    weights: Option<&'a Float32Array>,
    positions: Option<&'a Int32Array>,
    features: Vec<&'a Float32Array>,
}

impl<'a> TypedColumns<'a> {
    fn of(batch: &'a RecordBatch, reader: &DatasetReader) -> Result<Self> {
        let manifest = reader.manifest();
        let invalid = || invalid_columns(reader);
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>();
        let number = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Float32Type>();
        let position = || batch.column_by_name("position")?.as_primitive_opt::<Int32Type>();
        let first = batch.num_columns().checked_sub(manifest.features.len()).ok_or_else(invalid)?;
        let feature =
            |index: usize| batch.column(index).as_primitive_opt::<Float32Type>().ok_or_else(invalid);
        let check = |expected: bool, found: bool| if expected && !found { Err(invalid()) } else { Ok(()) };
        let weights = number("weight").filter(|_| manifest.weight);
        let positions = position().filter(|_| manifest.position);
        check(manifest.weight, weights.is_some())?;
        check(manifest.position, positions.is_some())?;
        Ok(TypedColumns {
            queries: text("query_id").ok_or_else(invalid)?,
            documents: text("doc_id").ok_or_else(invalid)?,
            labels: number("label").ok_or_else(invalid)?,
            weights,
            positions,
            features: (first..batch.num_columns()).map(feature).collect::<Result<_>>()?,
        })
    }
}

fn add_rows(columns: &TypedColumns<'_>, is_selected: &dyn Fn(&str) -> bool, builder: &mut BlockBuilder) {
    let mut starts: Vec<usize> = first_rows(columns.queries).collect();
    starts.push(columns.queries.len());
    for bounds in starts.windows(2) {
        let query = columns.queries.value(bounds[0]);
        if !is_selected(query) {
            continue;
        }
        for row in bounds[0]..bounds[1] {
            builder.query(query.as_bytes(), 0);
            for (feature, values) in columns.features.iter().enumerate() {
                if values.is_valid(row) {
                    builder.push_entry(feature as u32, values.value(row));
                }
            }
            let document = columns.documents.is_valid(row).then(|| columns.documents.value(row).as_bytes());
            builder.finish_row(value_or_nan(columns.labels, row), document);
            if let Some(weights) = columns.weights {
                builder.weight(value_or_nan(weights, row));
            }
            if let Some(positions) = columns.positions {
                builder.position(positions.is_valid(row).then(|| positions.value(row)));
            }
        }
    }
}

fn value_or_nan(values: &Float32Array, row: usize) -> f32 {
    if values.is_valid(row) { values.value(row) } else { f32::NAN }
}

/// Checks that there are at least as many queries as parts.
pub fn check_count(reader: &DatasetReader, parts: usize) -> Result<()> {
    let queries = reader.manifest().queries;
    if (parts as u64) > queries {
        return Err(Error::usage(
            format_args!("{parts} folds, but {} has only {queries} queries", reader.location()),
            "lower --folds, or use more data",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_balanced_and_independent_of_row_order() {
        let hashes: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 7)).collect();
        let part_of = assign_parts(hashes.clone(), 5);
        let mut sizes = [0; 5];
        part_of.values().for_each(|part| sizes[*part] += 1);
        sizes.sort_unstable();
        assert_eq!(sizes, [20, 20, 21, 21, 21]);
        let mut backwards = hashes;
        backwards.reverse();
        assert_eq!(assign_parts(backwards, 5), part_of);
        let other: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 8)).collect();
        let moved = (0..103).filter(|query| {
            let name = format!("q{query}");
            assign_parts(other.clone(), 5)[&hash_of(&name, 8)] != part_of[&hash_of(&name, 7)]
        });
        assert!(moved.count() > 40, "another seed gives another split");
    }
}
