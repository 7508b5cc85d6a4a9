//! Defines the jobs that a cluster runs for training, one per file. [`Survey`] summarises features for binning.
//! [`UpdateGradients`] and [`Level`] (or [`StreamLevel`] and [`SumParts`]) grow boosted trees; each executor works on
//! the rows of a [`BoostShare`]. [`GrowTrees`] grows whole trees of a forest. `cells.rs` defines the wire format of
//! histograms. The jobs of linear models are in `linear/`.

mod boost_share;
mod cells;
mod gradients;
mod level;
mod part_sums;
mod snapshot;
mod streaming;
mod survey;
mod trees;
mod worker_shares;

pub use boost_share::{BoostShare, Grown};
pub use cells::{CellBlock, NodeSums, WireCell, add_block, empty};
pub use gradients::{GradientParts, UpdateGradients};
pub use level::{Level, LevelBlock};
pub use part_sums::{PartSums, SumParts};
pub use snapshot::TrainingSnapshot;
pub use streaming::{StreamLevel, WorkerLevels};
pub use survey::Survey;
pub use trees::{ForestData, GrowTrees, GrownTrees};
pub use worker_shares::{WorkerShare, WorkerShares};

use crate::config::Parameters;
use planetree_base::error::Result;
use planetree_data::source::{LabelledData, LabelledRows};

/// Replaces labels according to the parameters. Executors open datasets without parameters, so labels are not mapped
/// yet.
fn map_labels(rows: &mut [LabelledRows], parameters: &Parameters, source: &LabelledData) -> Result<()> {
    let Some(map) = &parameters.label_map else { return Ok(()) };
    rows.iter_mut().try_for_each(|rows| rows.map_labels(map, &source.place()))
}

#[cfg(test)]
mod tests;
