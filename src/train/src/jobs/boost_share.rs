//! The state of an executor for a stage of boosting: the rows of some row groups, and every part of the stage that is
//! trained on them. The parts share the codes of the rows. The state is only a cache: if it is lost, it is rebuilt from
//! the dataset and the trees grown so far.

use super::member_share::MemberShare;
use super::snapshot::{MemberSnapshot, TrainingSnapshot, start_scores};
use super::worker_shares::OwnWorkers;
use super::{learned_labels, map_labels};
use crate::bins::BinnedData;
use crate::boost::{LocalWorker, RowGradients, WorkerState};
use crate::config::Parameters;
use crate::driver::{Metrics, Scores};
use crate::objective::objective;
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use std::sync::{Arc, Mutex, MutexGuard};

/// The rows that one executor works on, with the state of every part of a stage.
pub struct BoostShare {
    /// The rows with the labels of the dataset.
    data: Arc<BinnedData>,
    /// Number of partitions whose results the share reports. Those of other shares follow them.
    partitions: usize,
    members: Vec<Mutex<MemberShare>>,
    bytes: u64,
}

impl BoostShare {
    /// Builds the share for a shard (some row groups of the dataset) from a snapshot.
    pub(super) fn prepare(snapshot: &TrainingSnapshot, shard: &Shard<'_, LabelledData>) -> Result<Self> {
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let mut data = BinnedData::of_partitions(shard.data, shard.parts, snapshot.binning(&parameters))?;
        map_labels(&mut data.rows, &parameters, shard.data)?;
        let workers = match &snapshot.workers {
            None => None,
            Some(shares) => Some(OwnWorkers::find(shares, shard.parts, &data.rows).ok_or_else(malformed)?),
        };
        let partitions = workers.as_ref().map_or(data.partitions(), |workers| workers.partitions);
        // Every part has labels, scores and gradients of its own; the first one is counted with the codes.
        let bytes = data.bytes()?
            + BinnedData::STATE_BYTES_PER_ROW
                * data.row_count()
                * (snapshot.members.len() as u64).saturating_sub(1);
        let data = Arc::new(data);
        let member = |member: &MemberSnapshot| {
            let mut share = new_member(member, &data, shard)?;
            share.workers = workers.clone();
            share.add_earlier(&member.trees)?;
            Ok(Mutex::new(share))
        };
        let members = snapshot.members.iter().map(member).collect::<Result<_>>()?;
        Ok(BoostShare { data, partitions, members, bytes })
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the state of a part. `None` if there is no such part, or an earlier request panicked.
    pub(super) fn member(&self, number: usize) -> Option<MutexGuard<'_, MemberShare>> {
        self.members.get(number)?.lock().ok()
    }

    /// Returns the number of parts.
    pub(super) fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns the rows with the labels of the dataset, and the number of partitions that the share reports.
    pub(super) fn data(&self) -> (&Arc<BinnedData>, usize) {
        (&self.data, self.partitions)
    }
}

/// Creates the state of a part before its first tree.
fn new_member(
    member: &MemberSnapshot,
    data: &Arc<BinnedData>,
    shard: &Shard<'_, LabelledData>,
) -> Result<MemberShare> {
    let parameters = Parameters::from_toml(&member.parameters)?;
    let data = learned_labels(data, member.at_most);
    let settings = parameters.with(parameters.boost().ok_or_else(malformed)?.clone());
    let objective = objective(&settings.learner.objective, settings.seed);
    let state = WorkerState {
        scores: match &member.start {
            None => Scores::constant(&data.rows, member.base_score),
            Some(model) => Scores::of_partitions(start_scores(model, shard)?),
        },
        metrics: match objective {
            None => None,
            Some(_) => Some(Metrics::new(&settings, &data.rows)?),
        },
        gradients: RowGradients::new(objective, &data.rows),
    };
    Ok(match member.weighted {
        false => MemberShare::plain(LocalWorker::new(&settings, data, state)),
        true => MemberShare::weighted(LocalWorker::new(&settings, data, state)),
    })
}
