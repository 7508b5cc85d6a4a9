//! The state of an executor for a stage of boosting: the rows of some row groups, and every part of the stage that is
//! trained on them. The parts share the codes of the rows. The state is only a cache: if it is lost, it is rebuilt from
//! the dataset and the trees grown so far.

use super::member_share::MemberShare;
use super::snapshot::{MemberSnapshot, TrainingSnapshot};
use super::worker_shares::OwnWorkers;
use super::{learned_labels, map_labels};
use crate::bins::BinnedData;
use crate::boost::{LocalWorker, RowGradients, WorkerState};
use crate::config::Parameters;
use crate::driver::{Metrics, Scores, odds_of_classes};
use crate::objective::{objective, softmax_class};
use planetree_base::error::Result;
use planetree_base::job::Shard;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The rows that one executor works on, with the state of every part of a stage.
pub struct BoostShare {
    /// The rows with the labels of the dataset.
    data: Arc<BinnedData>,
    /// Number of partitions whose results the share reports. Those of other shares follow them.
    partitions: usize,
    members: Vec<Mutex<MemberShare>>,
    /// The parts that each part is coupled with by a softmax, itself included.
    coupled: Vec<Option<Range<usize>>>,
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
            if member.coupled.is_none() {
                share.add_earlier(&member.trees)?;
            }
            Ok(Mutex::new(share))
        };
        let members = snapshot.members.iter().map(member).collect::<Result<_>>()?;
        let coupled = snapshot.members.iter().map(|member| Some(member.coupled.as_ref()?.members.clone()));
        let share = BoostShare { data, partitions, members, coupled: coupled.collect(), bytes };
        share.restore_coupling(&snapshot.members)?;
        Ok(share)
    }

    /// Returns the approximate memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the state of a part. `None` if there is no such part, or an earlier request panicked.
    pub(super) fn member(&self, number: usize) -> Option<MutexGuard<'_, MemberShare>> {
        self.members.get(number)?.lock().ok()
    }

    /// Computes the log odds of a part whose scores include `trees` trees, if it is coupled with others. Returns `false` if
    /// the scores of another part do not include as many.
    pub(super) fn couple(&self, number: usize, trees: usize) -> Result<bool> {
        let Some(Some(peers)) = self.coupled.get(number) else { return Ok(true) };
        let mut scores = Vec::with_capacity(peers.len());
        for peer in peers.clone() {
            // One lock at a time, so that requests for two parts do not wait for each other.
            let Some(peer) = self.member(peer) else { return Ok(false) };
            let Some(of_peer) = peer.scores(trees) else { return Ok(false) };
            scores.push(of_peer.clone());
        }
        let mut odds = odds_of_classes(&self.data.rows, &scores);
        let Some(mut share) = self.member(number) else { return Ok(false) };
        share.couple(odds.swap_remove(number - peers.start), trees);
        Ok(true)
    }

    /// Adds the trees of coupled parts. Some parts may have a tree more than others, which was grown from the same
    /// gradients as the next trees of the others.
    fn restore_coupling(&self, snapshots: &[MemberSnapshot]) -> Result<()> {
        for (number, peers) in self.coupled.iter().enumerate() {
            let Some(peers) = peers.as_ref().filter(|peers| peers.start == number) else { continue };
            let of_peers = snapshots.get(peers.clone()).ok_or_else(malformed)?;
            let common = of_peers.iter().map(|member| member.trees.len()).min().unwrap_or(0);
            let add = |range: fn(usize, usize) -> Range<usize>| -> Result<()> {
                for (number, snapshot) in peers.clone().zip(of_peers) {
                    let mut share = self.member(number).ok_or_else(malformed)?;
                    share.add_earlier(&snapshot.trees[range(common, snapshot.trees.len())])?;
                }
                Ok(())
            };
            add(|common, _| 0..common)?;
            for number in peers.clone() {
                self.couple(number, common)?;
            }
            add(|common, all| common..all)?;
        }
        Ok(())
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
    let data = match &member.coupled {
        Some(class) => Arc::new(data.with_labels(|label| class.label(label))),
        None => learned_labels(data, member.at_most),
    };
    let settings = parameters.with(parameters.boost().ok_or_else(malformed)?.clone());
    let objective = match &member.coupled {
        Some(class) => Some(softmax_class(class.members.len())),
        None => objective(&settings.learner.objective, settings.seed),
    };
    let state = WorkerState {
        scores: match &member.start {
            None => Scores::constant(&data.rows, member.base_score),
            Some(start) => Scores::of_partitions(start.scores(shard)?),
        },
        odds: None,
        metrics: match objective {
            Some(_) if member.coupled.is_some() => None, // metrics are those of all classes together
            None => None,
            Some(_) => Some(Metrics::new(&settings, &data.rows)?),
        },
        gradients: RowGradients::new(objective, &data.rows),
    };
    let mut share = match member.weighted {
        false => MemberShare::plain(LocalWorker::new(&settings, data, state)),
        true => MemberShare::weighted(LocalWorker::new(&settings, data, state)),
    };
    share.is_coupled = member.coupled.is_some();
    Ok(share)
}
