//! One dataset dealt into parts of whole queries. Queries are put in the order of their hashes under a
//! seed and dealt one by one, so that parts differ by one query at most, and which part a query gets
//! into depends on the ids of all queries and the seed, not on the order or the files of the rows.

use super::queries::{first_rows, hash_of, hashes, odd_columns};
use arrow::array::{Array, AsArray, Float32Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{Float32Type, Int32Type};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of, interrupt};
use planetree_data::dataset::{
    DatasetReader, DatasetWriter, FeatureNames, GroupId, Grouper, Layout, Manifest, RowGroup, Source,
    WriteOptions, encode_group,
};
use planetree_data::rows::Block;
use planetree_data::rows::BlockBuilder;
use planetree_data::table::write_failure;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// How a dataset is dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealing {
    /// Into how many parts.
    pub parts: usize,
    /// By which key.
    pub seed: u64,
}

/// Writes the parts below a directory; those that are there from an earlier run stay as they are.
pub fn deal(
    reader: &DatasetReader,
    dealing: Dealing,
    directory: &Location,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<DatasetReader>> {
    let targets: Vec<Location> = (1..=dealing.parts).map(|part| directory.join(&part.to_string())).collect();
    let data = reader.fingerprint()?;
    let wanted = |part: usize| fingerprint(data, dealing, part);
    let is_there = |part: usize| {
        Manifest::read(&targets[part]).is_ok_and(|manifest| manifest.source.fingerprint == wanted(part))
    };
    if !(0..dealing.parts).all(is_there) {
        let queries = reader.manifest().queries;
        note(&format!("dealing {queries} queries to {} parts in {directory}", dealing.parts));
        let part_of = deal_queries(hashes(reader, dealing.seed)?, dealing.parts);
        for part in (0..dealing.parts).filter(|part| !is_there(*part)) {
            let picked = |query: &str| part_of.get(&hash_of(query, dealing.seed)) == Some(&part);
            write_part(reader, &picked, &targets[part], wanted(part))?;
        }
    }
    targets.iter().map(DatasetReader::open).collect()
}

/// What identifies a part: the rows it was dealt from, and how.
fn fingerprint(data: Digest, dealing: Dealing, part: usize) -> Digest {
    let Dealing { parts, seed } = dealing;
    digest_of(format!("{data} part {part} of {parts} by {seed}").as_bytes())
}

/// The part of each query.
fn deal_queries(mut hashes: Vec<u128>, parts: usize) -> HashMap<u128, usize> {
    hashes.sort_unstable();
    hashes.into_iter().zip((0..parts).cycle()).collect()
}

fn write_part(
    reader: &DatasetReader,
    picked: &(dyn Fn(&str) -> bool + Sync),
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
    for some in groups.chunks(rayon::current_num_threads()) {
        interrupt::check()?;
        let blocks = some.par_iter().map(|id| picked_rows(reader, *id, picked));
        for block in blocks.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            grouper.push(Arc::new(block), &mut |_, _| Ok(true), &mut append)?;
        }
    }
    grouper.finish().map_or(Ok(()), &mut append)?;
    let source = Source { fingerprint, ..from.source.clone() };
    let categories = from.categories.clone();
    writer.commit(Manifest { categories, ..Manifest::new(source) }).map(drop)
}

/// The name that lives as long as the program.
fn format_name(name: &str) -> &'static str {
    ["letor", "csv", "parquet"].into_iter().find(|known| *known == name).unwrap_or("dataset")
}

/// The rows of a row group whose queries are picked.
fn picked_rows(
    reader: &DatasetReader,
    id: GroupId,
    picked: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Block>> {
    /// Values that are decoded at a time.
    const VALUES: usize = 1 << 21;
    let group = reader.open_group(id)?;
    let columns: Vec<usize> = (0..group.columns()).collect();
    let batch_rows = (VALUES / columns.len().max(1)).max(64);
    let mut blocks = Vec::new();
    let mut builder = BlockBuilder::default();
    group.read_batches(&columns, batch_rows, &mut |batch| {
        add_rows(&DatasetColumns::of(&batch, reader)?, picked, &mut builder);
        blocks.push(builder.finish());
        Ok(())
    })?;
    Ok(blocks)
}

/// The columns of a dataset in their types.
struct DatasetColumns<'a> {
    queries: &'a StringArray,
    documents: &'a StringArray,
    labels: &'a Float32Array,
    weights: Option<&'a Float32Array>,
    positions: Option<&'a Int32Array>,
    features: Vec<&'a Float32Array>,
}

impl<'a> DatasetColumns<'a> {
    fn of(batch: &'a RecordBatch, reader: &DatasetReader) -> Result<Self> {
        let manifest = reader.manifest();
        let odd = || odd_columns(reader);
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>();
        let number = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Float32Type>();
        let position = || batch.column_by_name("position")?.as_primitive_opt::<Int32Type>();
        let first = batch.num_columns().checked_sub(manifest.features.len()).ok_or_else(odd)?;
        let feature = |place: usize| batch.column(place).as_primitive_opt::<Float32Type>().ok_or_else(odd);
        let required = |there: bool, found: bool| if there && !found { Err(odd()) } else { Ok(()) };
        let weights = number("weight").filter(|_| manifest.weight);
        let positions = position().filter(|_| manifest.position);
        required(manifest.weight, weights.is_some())?;
        required(manifest.position, positions.is_some())?;
        Ok(DatasetColumns {
            queries: text("query_id").ok_or_else(odd)?,
            documents: text("doc_id").ok_or_else(odd)?,
            labels: number("label").ok_or_else(odd)?,
            weights,
            positions,
            features: (first..batch.num_columns()).map(feature).collect::<Result<_>>()?,
        })
    }
}

fn add_rows(columns: &DatasetColumns<'_>, picked: &dyn Fn(&str) -> bool, builder: &mut BlockBuilder) {
    let mut starts: Vec<usize> = first_rows(columns.queries).collect();
    starts.push(columns.queries.len());
    for bounds in starts.windows(2) {
        let query = columns.queries.value(bounds[0]);
        if !picked(query) {
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

/// Refuses more parts than there are queries.
pub fn check_count(reader: &DatasetReader, parts: usize) -> Result<()> {
    let queries = reader.manifest().queries;
    if (parts as u64) > queries {
        return Err(Error::usage(
            format_args!("{parts} folds are more than {} has queries ({queries})", reader.location()),
            "use fewer --folds, or more data",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_differ_by_one_query_at_most_whatever_the_order() {
        let hashes: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 7)).collect();
        let part_of = deal_queries(hashes.clone(), 5);
        let mut sizes = [0; 5];
        part_of.values().for_each(|part| sizes[*part] += 1);
        sizes.sort_unstable();
        assert_eq!(sizes, [20, 20, 21, 21, 21]);
        let mut backwards = hashes;
        backwards.reverse();
        assert_eq!(deal_queries(backwards, 5), part_of);
        let other: Vec<u128> = (0..103).map(|query| hash_of(&format!("q{query}"), 8)).collect();
        let moved = (0..103).filter(|query| {
            let name = format!("q{query}");
            deal_queries(other.clone(), 5)[&hash_of(&name, 8)] != part_of[&hash_of(&name, 7)]
        });
        assert!(moved.count() > 40, "another seed deals otherwise");
    }
}
