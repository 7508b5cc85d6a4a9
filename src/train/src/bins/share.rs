//! Some partitions of a dataset, as one of several processes sees them: surveyed for all, and coded by bins that are
//! known.

use super::load::{BinOptions, BinnedData, Binning, encode_partition};
use super::summary::Summary;
use planetree_base::error::Result;
use planetree_base::wire::{WireReader, WireWriter, malformed};
use planetree_data::source::{OpenPartition, Rows, Source};
use rayon::prelude::*;
use std::ops::Range;

/// What some partitions say of their rows and of some features.
#[derive(Debug, PartialEq)]
pub struct Surveyed {
    /// Labels and queries of each partition; none if they were not asked for.
    pub rows: Vec<Rows>,
    /// The distribution of each feature.
    pub summaries: Vec<Summary>,
}

/// Surveys some features of some partitions, and their rows if wanted.
pub fn survey(
    source: &Source,
    partitions: &[usize],
    features: Range<usize>,
    wants_rows: bool,
    options: &BinOptions,
) -> Result<Surveyed> {
    let keep = options.keep(source.row_count());
    let opened = partitions.par_iter().map(|partition| source.open_partition(*partition));
    let opened: Vec<OpenPartition> = opened.collect::<Result<_>>()?;
    let kept = partitions.par_iter().zip(&opened);
    let kept: Vec<Option<Vec<u32>>> =
        kept.map(|(partition, group)| keep.places(source.first_row(*partition), group.rows())).collect();
    let summaries = features.into_par_iter().map(|feature| {
        let of = |(group, kept): (&OpenPartition, &Option<Vec<u32>>)| {
            Ok(Summary::of(&source.values(group, feature)?, kept.as_deref()))
        };
        Ok(Summary::merge_all(opened.iter().zip(&kept).map(of).collect::<Result<_>>()?))
    });
    let summaries = summaries.collect::<Result<_>>()?;
    let rows = match wants_rows {
        true => rows_of(source, partitions, &opened)?,
        false => Vec::new(),
    };
    Ok(Surveyed { rows, summaries })
}

fn rows_of(source: &Source, partitions: &[usize], opened: &[OpenPartition]) -> Result<Vec<Rows>> {
    let rows = partitions.par_iter().zip(opened).map(|(partition, group)| {
        let first_query = source.first_query(*partition);
        Ok(Rows { first_query, ..source.rows(*partition, group)? })
    });
    rows.collect()
}

impl BinnedData {
    /// Some partitions of a dataset, coded by bins that are known.
    pub fn of_partitions(source: &Source, partitions: &[usize], binning: Binning) -> Result<Self> {
        let coded = partitions.par_iter().map(|partition| {
            let group = source.open_partition(*partition)?;
            let rows = rows_of(source, &[*partition], std::slice::from_ref(&group))?;
            Ok((rows, encode_partition(source, &group, &binning)?))
        });
        let (rows, codes): (Vec<Vec<Rows>>, Vec<_>) = coded.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(BinnedData::of_memory(binning, rows.into_iter().flatten().collect(), codes))
    }

    /// About how many bytes the codes take, with what a training keeps of each row.
    pub fn bytes(&self) -> Result<u64> {
        /// Score, gradient, hessian, label, place, target, and the copies of the last two while a node is divided.
        const BYTES_PER_ROW: u64 = 40;
        let codes = |partition| Ok(self.all_codes(partition)?.batch().get_array_memory_size() as u64);
        let codes: u64 = (0..self.partitions()).map(codes).sum::<Result<u64>>()?;
        Ok(codes + self.row_count() * BYTES_PER_ROW)
    }
}

impl Surveyed {
    /// Writes it, for whoever merges it elsewhere.
    pub fn write(&self, writer: &mut WireWriter) {
        writer.count(self.rows.len() as u64);
        for rows in &self.rows {
            writer.count(rows.first);
            writer.count(rows.first_query);
            writer.floats(&rows.labels);
            writer.count(u64::from(rows.weights.is_some()));
            rows.weights.iter().for_each(|weights| writer.floats(weights));
            writer.count(u64::from(rows.positions.is_some()));
            if let Some(positions) = &rows.positions {
                writer.count(positions.len() as u64);
                positions.iter().for_each(|position| writer.count(u64::from(*position)));
            }
            writer.ascending(rows.query_bounds.iter().copied());
        }
        writer.count(self.summaries.len() as u64);
        self.summaries.iter().for_each(|summary| summary.write(writer));
    }

    /// Reads what was written.
    pub fn read(reader: &mut WireReader<'_>) -> Result<Self> {
        let count = reader.length(1)?;
        let rows = (0..count).map(|_| read_rows(reader)).collect::<Result<_>>()?;
        let count = reader.length(1)?;
        let summaries = (0..count).map(|_| Summary::read(reader)).collect::<Result<_>>()?;
        Ok(Surveyed { rows, summaries })
    }
}

fn read_rows(reader: &mut WireReader<'_>) -> Result<Rows> {
    let (first, first_query) = (reader.count()?, reader.count()?);
    let labels = reader.floats()?;
    let weights: Option<Vec<f32>> = if reader.count()? == 1 { Some(reader.floats()?) } else { None };
    let positions: Option<Vec<u32>> = match reader.count()? {
        0 => None,
        _ => {
            let count = reader.length(1)?;
            Some((0..count).map(|_| Ok(reader.count()? as u32)).collect::<Result<_>>()?)
        }
    };
    let query_bounds = reader.ascending()?;
    let fits = |count: Option<usize>| count.is_none_or(|count| count == labels.len());
    let ascends = query_bounds.first() == Some(&0) && query_bounds.is_sorted();
    let all = query_bounds.last().copied() == u32::try_from(labels.len()).ok();
    if !ascends || !all || !fits(weights.as_ref().map(Vec::len)) || !fits(positions.as_ref().map(Vec::len)) {
        return Err(malformed());
    }
    Ok(Rows { first, first_query, labels, weights, positions, query_bounds })
}
