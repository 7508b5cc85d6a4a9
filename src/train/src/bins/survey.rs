//! Bins data on a cluster. An executor reads some of the partitions. It summarises their features for the driver, and
//! later encodes their values with the bins that the driver chose.

use super::binning::{BinOptions, Binning};
use super::load::{BinnedData, encode_partition};
use super::summary::ValueDistribution;
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use planetree_data::source::{LabelledData, LabelledRows, OpenPartition};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rows and feature summaries of some partitions.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Labels and queries of each partition; empty unless requested.
    pub rows: Vec<LabelledRows>,
    /// Value distribution of each requested feature.
    pub summaries: Vec<ValueDistribution>,
}

/// Summarises the given features over the given partitions. Also reads labels and queries if `wants_rows` is set.
pub(crate) fn survey(
    source: &LabelledData,
    partitions: &[usize],
    features: Range<usize>,
    wants_rows: bool,
    options: &BinOptions,
) -> Result<Surveyed> {
    let keep = options.keep(source.row_count());
    let opened = partitions.par_iter().map(|partition| source.open_partition_on_disk(*partition));
    let opened: Vec<OpenPartition> = opened.collect::<Result<_>>()?;
    let kept = partitions.par_iter().zip(&opened);
    let kept: Vec<Option<Vec<u32>>> =
        kept.map(|(partition, group)| keep.places(source.first_row(*partition), group.rows())).collect();
    let rows = match wants_rows || options.by_query {
        true => rows_of(source, partitions, &opened)?,
        false => Vec::new(),
    };
    let summaries = features.into_par_iter().map(|feature| {
        let options = options.of_feature(source, feature);
        let of = |(number, (group, kept)): (usize, (&OpenPartition, &Option<Vec<u32>>))| {
            let mut values = source.values(group, feature)?;
            if let Some(rows) = rows.get(number) {
                options.normalise(&mut values, rows);
            }
            Ok(ValueDistribution::of(&values, kept.as_deref()))
        };
        let summaries = opened.iter().zip(&kept).enumerate().map(of);
        Ok(ValueDistribution::merge_all(summaries.collect::<Result<_>>()?))
    });
    let summaries = summaries.collect::<Result<_>>()?;
    Ok(Surveyed { rows: if wants_rows { rows } else { Vec::new() }, summaries })
}

/// Returns the labels and queries of opened partitions.
pub(crate) fn rows_of(
    source: &LabelledData,
    partitions: &[usize],
    opened: &[OpenPartition],
) -> Result<Vec<LabelledRows>> {
    let rows = partitions.par_iter().zip(opened).map(|(partition, group)| {
        let first_query = source.first_query(*partition);
        Ok(LabelledRows { first_query, ..source.rows(*partition, group)? })
    });
    rows.collect()
}

impl BinnedData {
    /// Encodes the given partitions with bins that the driver has chosen.
    pub fn of_partitions(source: &LabelledData, partitions: &[usize], binning: Binning) -> Result<Self> {
        let coded = partitions.par_iter().map(|partition| {
            let group = source.open_partition(*partition)?;
            let rows = rows_of(source, &[*partition], std::slice::from_ref(&group))?;
            let [of_group] = rows.as_slice() else { return Err(malformed()) };
            let codes = encode_partition(source, &group, of_group, &binning)?;
            Ok((rows, codes))
        });
        let (rows, codes): (Vec<Vec<LabelledRows>>, Vec<_>) =
            coded.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(BinnedData::of_memory(binning, rows.into_iter().flatten().collect(), codes))
    }

    /// Training state of a row in bytes: score, gradient, hessian, label, row index and target, plus copies of the last
    /// two while a node is split.
    pub const STATE_BYTES_PER_ROW: u64 = 40;

    /// Estimates the memory needed for the codes and for the training state of all rows, in bytes.
    pub fn bytes(&self) -> Result<u64> {
        let codes = |partition| Ok(self.all_codes(partition)?.batch().get_array_memory_size() as u64);
        let codes: u64 = (0..self.partitions()).map(codes).sum::<Result<u64>>()?;
        Ok(codes + self.row_count() * Self::STATE_BYTES_PER_ROW)
    }
}
