//! The seam to a cluster: rows that are in other processes, which bin them, follow the trees and add them up.

use super::TrainRequest;
use super::crew::Crew;
use super::grower::TreeGrower;
use crate::bins::{BinOptions, BinnedData};
use crate::config::Parameters;
use crate::tree::Cell;
use planetree_base::error::Result;
use planetree_data::source::Source;
use std::sync::Arc;

/// Processes that hold the rows of a training.
pub trait Fleet: Send + Sync {
    /// Refuses what cannot be trained there.
    fn check(&self, request: &TrainRequest) -> Result<()>;

    /// Bins a dataset there; what comes back has no codes.
    fn bin(&self, request: &TrainRequest, source: &Source, options: &BinOptions) -> Result<BinnedData>;

    /// Whoever grows the trees of a forest.
    fn grower(&self, parameters: &Parameters, data: &BinnedData) -> Result<Box<dyn TreeGrower>>;

    /// Whoever boosts rows without weights and hessians.
    fn plain_crew(
        &self,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<i64>>;

    /// Whoever boosts rows with weights or hessians.
    fn weighted_crew(
        &self,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<[i64; 2]>>;
}

/// A cell that a fleet can add up.
pub trait FleetCell: Cell {
    /// The crew for this cell.
    fn crew(
        fleet: &dyn Fleet,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<Self>>;
}

impl FleetCell for i64 {
    fn crew(
        fleet: &dyn Fleet,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<Self>> {
        fleet.plain_crew(parameters, data, base_score)
    }
}

impl FleetCell for [i64; 2] {
    fn crew(
        fleet: &dyn Fleet,
        parameters: &Parameters,
        data: &Arc<BinnedData>,
        base_score: f64,
    ) -> Box<dyn Crew<Self>> {
        fleet.weighted_crew(parameters, data, base_score)
    }
}
