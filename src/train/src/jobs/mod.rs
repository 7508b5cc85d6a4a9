//! Defines the jobs that a cluster runs for training, one per file. [`Survey`] summarises features for binning. The
//! steps [`UpdateGradients`] and [`Level`] (or [`StreamLevel`] and [`SumParts`], or [`ValueLevel`]) grow boosted trees. They are sent as
//! [`BoostJob`]s, and each executor works on the rows of a [`BoostShare`]. [`CombinedMetrics`] evaluates several parts
//! together, and [`Settle`] lets coupled parts use the scores of each other. [`GrowTrees`] grows whole trees of a forest.
//! `cells.rs` defines the wire format of histograms. The jobs of linear models are in `linear/`, those of RankSVM in
//! `ranksvm/` and those of nets in `net/`.

mod boost_job;
mod boost_share;
mod cells;
mod combined;
mod gradients;
mod level;
mod means;
mod member_share;
mod part_sums;
mod settle;
mod snapshot;
mod start;
mod streaming;
mod survey;
mod trees;
mod values;
mod worker_shares;

pub use boost_job::{BoostJob, BoostProgress, BoostStep, Grown};
pub use boost_share::BoostShare;
pub use cells::{CellBlock, NodeSums, WireCell, add_block, empty};
pub use combined::CombinedMetrics;
pub use gradients::GradientParts;
pub use gradients::UpdateGradients;
pub use level::{Level, LevelBlock};
pub use means::SharedMeans;
pub use part_sums::{PartSums, SumParts};
pub use settle::{Settle, SettledShares};
pub use snapshot::{MemberSnapshot, TrainingSnapshot};
pub use start::StartSnapshot;
pub use streaming::StreamLevel;
pub use streaming::WorkerLevels;
pub use survey::Survey;
pub use trees::ForestData;
pub use trees::{GrowTrees, GrownTrees};
pub use values::{ValueLevel, ValueLists};
pub use worker_shares::WorkerShare;
pub use worker_shares::WorkerShares;

use crate::bins::BinnedData;
use crate::config::{Parameters, Target};
use planetree_base::error::Result;
use planetree_data::source::{LabelledData, LabelledRows};
use std::sync::Arc;

/// Replaces labels according to the parameters. Executors open datasets without parameters, so labels are not mapped
/// yet.
fn map_labels(rows: &mut [LabelledRows], parameters: &Parameters, source: &LabelledData) -> Result<()> {
    let Some(map) = &parameters.label_map else { return Ok(()) };
    rows.iter_mut().try_for_each(|rows| rows.map_labels(map, &source.place()))
}

/// Divides the results of feature groups into at most `blocks` blocks of about equally many groups.
fn in_blocks<T>(groups: Vec<T>, blocks: usize) -> Vec<Vec<T>> {
    let (count, blocks) = (groups.len(), blocks.clamp(1, groups.len().max(1)));
    let mut groups = groups.into_iter();
    let own = |block: usize| count * (block + 1) / blocks - count * block / blocks;
    (0..blocks).map(|block| groups.by_ref().take(own(block)).collect()).collect()
}

/// Returns the rows with the labels that a part learns: 1 up to a grade and 0 above it, or the labels themselves.
fn learned_labels(data: &Arc<BinnedData>, at_most: Option<i32>) -> Arc<BinnedData> {
    match at_most {
        None => data.clone(),
        Some(grade) => Arc::new(data.with_labels(|label| Target::AtMost(grade).label(label))),
    }
}

#[cfg(test)]
mod tests;
