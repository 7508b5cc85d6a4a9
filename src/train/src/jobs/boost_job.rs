//! The jobs of boosting. All of them bring the state of a part up to date before they compute anything, so they differ
//! in a [`BoostStep`] only.

use super::boost_share::BoostShare;
use super::member_share::MemberShare;
use super::snapshot::TrainingSnapshot;
use crate::driver::TreeStart;
use crate::tree::{CodedTree, NodeSplit};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_data::source::LabelledData;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A job of boosting: a step for one part of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostJob<S> {
    /// The index of the part in its stage.
    pub member: usize,
    /// The progress that the step builds on.
    pub progress: BoostProgress,
    /// The step.
    pub step: S,
}

/// How far the training of a part has progressed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BoostProgress {
    /// Between two trees.
    Round {
        /// Number of trees that the scores must include, counting the last one.
        trees: usize,
        /// The last tree, or `None` if no tree was just grown.
        last: Option<Grown>,
    },
    /// While a tree is grown.
    Tree {
        /// Number of trees that the scores must include.
        trees: usize,
        /// The inputs that the tree was started with.
        start: TreeStart,
        /// All splits of the tree so far.
        splits: Vec<NodeSplit>,
    },
}

/// A finished tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// The inputs that the tree was started with.
    pub start: TreeStart,
    /// All splits of the tree, in the order in which they were applied.
    pub splits: Vec<NodeSplit>,
    /// The tree, whose splits compare bin numbers instead of feature values.
    pub tree: CodedTree,
}

/// What a job of boosting computes.
pub trait BoostStep: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the job in requests.
    const NAME: &'static str;

    /// The result for a share.
    type Partial: Partial;

    /// Whether the step computes gradients, for which coupled parts need the scores of each other.
    const COUPLES: bool = false;

    /// Computes the result for a share whose state is up to date, divided into at most `blocks` blocks.
    fn run(&self, share: &mut MemberShare, blocks: usize) -> Result<Vec<Self::Partial>>;
}

impl<S: BoostStep> Job for BoostJob<S> {
    const NAME: &'static str = S::NAME;
    type Data = LabelledData;
    type State = BoostShare;
    type Snapshot = TrainingSnapshot;
    type Partial = S::Partial;

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

    fn map(&self, state: &BoostShare, shard: &Shard<'_, LabelledData>) -> Result<Option<S::Partial>> {
        Ok(self.map_blocks(state, shard, 1)?.and_then(|mut blocks| blocks.pop()))
    }

    fn map_blocks(
        &self,
        state: &BoostShare,
        _: &Shard<'_, LabelledData>,
        blocks: usize,
    ) -> Result<Option<Vec<S::Partial>>> {
        let Some(mut share) = state.member(self.member) else { return Ok(None) };
        if !share.reach(&self.progress)? {
            return Ok(None);
        }
        if S::COUPLES {
            let trees = share.trees();
            drop(share); // coupling locks all parts, one after the other
            if !state.couple(self.member, trees)? {
                return Ok(None);
            }
            let Some(coupled) = state.member(self.member) else { return Ok(None) };
            share = coupled;
        }
        self.step.run(&mut share, blocks).map(Some)
    }
}
