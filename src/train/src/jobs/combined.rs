//! Job that evaluates the combined scores of all parts of a stage on the training rows.

use super::boost_share::BoostShare;
use super::learned_labels;
use super::means::SharedMeans;
use super::snapshot::TrainingSnapshot;
use crate::config::Parameters;
use crate::driver::{Metrics, Scores, SoftmaxGroup, expected_values};
use planetree_base::error::Result;
use planetree_base::job::{Job, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use serde::{Deserialize, Serialize};

/// Computes the metrics of the weighted sum of the scores of all parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CombinedMetrics {
    /// Parameters as TOML, with the metrics and their convention.
    pub parameters: String,
    /// The grade up to which labels become 1, if labels are those of `target=at_most`.
    pub at_most: Option<i32>,
    /// The constant to which the weighted scores are added.
    pub intercept: f64,
    /// The weight of each part, and the number of trees that its scores must include.
    pub members: Vec<(f64, usize)>,
    /// The parts that are coupled by a softmax.
    pub groups: Vec<SoftmaxGroup>,
}

impl Job for CombinedMetrics {
    const NAME: &'static str = "combined";
    type Data = LabelledData;
    type State = BoostShare;
    type Snapshot = TrainingSnapshot;
    type Partial = SharedMeans;

    fn prepare(
        &self,
        snapshot: Option<TrainingSnapshot>,
        shard: &Shard<'_, LabelledData>,
    ) -> Result<Option<BoostShare>> {
        snapshot.map(|snapshot| BoostShare::prepare(&snapshot, shard)).transpose()
    }

    fn state_bytes(state: &BoostShare) -> u64 {
        state.bytes()
    }

    fn map(&self, state: &BoostShare, _: &Shard<'_, LabelledData>) -> Result<Option<SharedMeans>> {
        if state.members() != self.members.len() {
            return Err(malformed());
        }
        let (data, partitions) = state.data();
        let data = learned_labels(data, self.at_most);
        let rows = &data.rows[..partitions];
        let mut members = Vec::with_capacity(self.members.len());
        for number in 0..self.members.len() {
            let Some(share) = state.member(number) else { return Ok(None) };
            members.push(share);
        }
        let terms = self.members.iter().zip(&members);
        let terms = terms.map(|((weight, trees), share)| Some((*weight, share.scores(*trees)?)));
        let Some(terms) = terms.collect::<Option<Vec<_>>>() else { return Ok(None) };
        if self.groups.iter().any(|group| group.members.end > terms.len()) {
            return Err(malformed());
        }
        let sum = match self.groups.as_slice() {
            [] => Scores::combined(&data.rows, self.intercept, &terms),
            groups => expected_values(&data.rows, self.intercept, &terms, groups),
        };
        let metrics = Metrics::new(&Parameters::from_toml(&self.parameters)?, rows)?;
        Ok(Some(SharedMeans::of(&metrics.evaluate(rows, &sum))))
    }
}
