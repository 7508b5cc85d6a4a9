//! Jobs that train linear models. All of them work on [`LinearRows`]: the rows of the row groups of one executor with
//! the values of their features. The rows do not change from round to round, so a lost state is rebuilt from the dataset
//! and the start of the training run.

use super::plan::{LinearPoint, PlannedFeature, StandardPlan};
use super::rows::{FeatureRange, LinearRows};
use super::sums::FixedSums;
use super::weights::RowWeights;
use crate::config::{LinearLoss, Parameters, Target};
use crate::jobs::{SharedMeans, StartSnapshot};
use planetree_base::error::Result;
use planetree_base::job::{Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};

/// Finds the ranges of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearRanges {
    /// The features.
    pub features: Vec<PlannedFeature>,
}

/// The ranges of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureRanges(pub Vec<FeatureRange>);

/// Sums the values of features and their squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearMoments {
    /// The features and their ranges.
    pub plan: StandardPlan,
}

/// Sums the losses, gradients and hessians of all rows at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearSums {
    /// The features with their means and deviations.
    pub plan: StandardPlan,
    /// The loss.
    pub loss: LinearLoss,
    /// The point.
    pub point: LinearPoint,
}

/// The result of [`LinearSums`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearTotals {
    /// The sums, in the order of [`StandardPlan::scales`].
    pub sums: FixedSums,
    /// The metrics.
    pub means: SharedMeans,
}

/// What executors read their rows by, besides the dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearSnapshot {
    /// The parameters as TOML.
    pub parameters: String,
    /// The weights that rows have.
    pub weights: RowWeights,
    /// The grade up to which labels become 1 and above which they become 0. `None` if the labels are learned.
    pub at_most: Option<i32>,
    /// What the scores that training starts from are computed from. `None` if it starts without scores.
    pub start: Option<StartSnapshot>,
    /// Memory per row besides the values of the features, in bytes: the label, the score, and what jobs keep.
    pub row_bytes: u64,
}

/// Finds the largest absolute score that training starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearOffset;

/// Finds the largest difference between two documents of a query in a normalised feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearDifference {
    /// The features.
    pub plan: StandardPlan,
}

/// The largest absolute value of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Largest(pub f64);

/// Reads the rows of a shard. Executors open datasets without parameters, so labels are not mapped yet.
pub(crate) fn read_rows(
    snapshot: Option<LinearSnapshot>,
    shard: &Shard<'_, LabelledData>,
) -> Result<Option<LinearRows>> {
    let Some(LinearSnapshot { parameters, weights, at_most, start, row_bytes }) = snapshot else {
        return Ok(None);
    };
    let parameters = Parameters::from_toml(&parameters)?;
    let mut rows = LinearRows::read(shard.data, shard.parts, &parameters, parameters.label_map.as_ref())?;
    rows.row_bytes = row_bytes;
    let offsets = start.map(|start| start.scores(shard)).transpose()?;
    let target = at_most.map_or(Target::Labels, Target::AtMost);
    rows.learning((&target, &weights), offsets, &parameters).map(Some)
}

/// Implements a job on [`LinearRows`].
macro_rules! linear_job {
    ($job:ident, $name:literal, $partial:ident, |$this:ident, $rows:ident| $map:expr) => {
        impl planetree_base::job::Job for $job {
            const NAME: &'static str = $name;
            type Data = planetree_data::source::LabelledData;
            type State = $crate::linear::LinearRows;
            type Snapshot = $crate::linear::LinearSnapshot;
            type Partial = $partial;

            fn prepare(
                &self,
                snapshot: Option<Self::Snapshot>,
                shard: &planetree_base::job::Shard<'_, Self::Data>,
            ) -> planetree_base::error::Result<Option<Self::State>> {
                $crate::linear::read_rows(snapshot, shard)
            }

            fn state_bytes(state: &Self::State) -> u64 {
                state.bytes()
            }

            fn map(
                &self,
                $rows: &Self::State,
                _: &planetree_base::job::Shard<'_, Self::Data>,
            ) -> planetree_base::error::Result<Option<$partial>> {
                let $this = self;
                Ok(Some($map))
            }
        }
    };
}
pub(crate) use linear_job;

linear_job!(LinearRanges, "linear_ranges", FeatureRanges, |job, rows| FeatureRanges(
    rows.ranges(&job.features)
));
linear_job!(LinearMoments, "linear_moments", FixedSums, |job, rows| rows.moments(&job.plan));
linear_job!(LinearSums, "linear_sums", LinearTotals, |job, rows| {
    let totals = rows.sums(&job.plan, &job.loss, &job.point);
    LinearTotals { sums: totals.sums, means: SharedMeans::of(&totals.means) }
});
linear_job!(LinearOffset, "linear_offset", Largest, |_job, rows| Largest(rows.largest_offset()));
linear_job!(LinearDifference, "linear_difference", Largest, |job, rows| Largest(
    rows.largest_difference(&job.plan)
));

impl Partial for Largest {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0 = self.0.max(other.0);
        Ok(())
    }
}

impl Partial for FeatureRanges {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.0.len() != other.0.len() {
            return Err(malformed());
        }
        self.0.iter_mut().zip(other.0).for_each(|(range, other)| *range = range.merged(other));
        Ok(())
    }
}

impl Partial for FixedSums {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.add_all(&other) { Ok(()) } else { Err(malformed()) }
    }

    fn is_valid(&self) -> bool {
        FixedSums::is_valid(self)
    }
}

impl Partial for LinearTotals {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.means.merge(other.means)?;
        Partial::merge(&mut self.sums, other.sums)
    }

    fn is_valid(&self) -> bool {
        FixedSums::is_valid(&self.sums)
    }
}
