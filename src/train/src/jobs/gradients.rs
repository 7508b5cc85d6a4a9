//! Job that computes the gradients of a round.

use super::boost_share::{BoostShare, Grown};
use super::snapshot::TrainingSnapshot;
use crate::driver::GradientSummary;
use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Adds the last tree to the scores and computes the gradients for the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateGradients {
    /// The round whose gradients are computed.
    pub round: u32,
    /// Number of trees that the scores must include, counting the last one.
    pub trees: usize,
    /// The last tree, or `None` if no tree was just grown.
    pub last: Option<Grown>,
}

/// Summaries of the gradients, and the metrics of the scores that the gradients are based on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientParts {
    /// The summaries, in order. There is one per partition or, depending on the objective, one per share (the rows
    /// that one executor works on).
    pub parts: Vec<GradientSummary>,
    /// Serialised means of the metrics, by share.
    means: Vec<Vec<Bytes>>,
}

impl GradientParts {
    /// Adds the metrics of all shares to `sums`, which has the same metrics.
    pub fn add_means(&self, sums: &mut [Mean]) -> Result<()> {
        for means in self.means.iter().filter(|means| !means.is_empty()) {
            if means.len() != sums.len() {
                return Err(malformed());
            }
            for (sum, bytes) in sums.iter_mut().zip(means) {
                sum.merge(&Mean::from_bytes(sum.metric(), &bytes.0).ok_or_else(malformed)?);
            }
        }
        Ok(())
    }
}

impl Job for UpdateGradients {
    const NAME: &'static str = "gradients";
    type Data = LabelledData;
    type State = Mutex<BoostShare>;
    type Snapshot = TrainingSnapshot;
    type Partial = GradientParts;

    fn prepare(
        &self,
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<Mutex<BoostShare>>> {
        BoostShare::prepare(snapshot, shard)
    }

    fn state_bytes(state: &Mutex<BoostShare>) -> u64 {
        BoostShare::bytes_of(state)
    }

    fn map(&self, state: &Mutex<BoostShare>, _: &Shard<'_, LabelledData>) -> Result<Option<GradientParts>> {
        let Ok(mut share) = state.lock() else { return Ok(None) }; // an earlier request panicked
        if !share.catch_up(self.trees, self.last.as_ref())? {
            return Ok(None);
        }
        let (parts, means) = share.gradients(self.round)?;
        let means = means.iter().map(|mean| Bytes(mean.to_bytes())).collect();
        Ok(Some(GradientParts { parts, means: vec![means] }))
    }
}

impl Partial for GradientParts {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.parts.extend(other.parts);
        self.means.extend(other.means);
        Ok(())
    }
}
