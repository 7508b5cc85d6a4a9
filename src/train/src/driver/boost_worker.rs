//! The interface between the boosting loop and the workers that hold rows, scores and gradients. There is one worker in
//! this process, or many on a cluster. In each round, the gradients are updated, then a tree is started, grown and
//! added to the scores.

use super::gradient_summary::GradientSummary;
use super::scores::Scores;
use crate::tree::{Cell, CodedTree, RowStore, Scale};
use planetree_base::error::Result;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};

/// A boosting worker, which holds rows with their scores and gradients.
pub trait BoostWorker<C: Cell>: RowStore<C> + Send {
    /// Computes the gradients that the tree of a round is fitted to, and returns their summary.
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary>;

    /// Sets the scores that gradients are computed from in place of the current scores: log odds against the classes that
    /// the part is coupled with.
    fn set_odds(&mut self, _odds: Scores) {}

    /// Brings the scores of all rows up to date, so that coupled parts can use them. Workers in this process always are.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Starts a tree whose root holds all rows, or the rows sampled for this tree.
    fn start_tree(&mut self, start: &TreeStart) -> Result<()>;

    /// Returns whether the next tree will have the same rows as the current tree, and the current tree will change
    /// the gradient of each row by exactly the value of the row's leaf. It is assumed that leaf values are whole
    /// units of the current scale. Valid only after a tree was started.
    fn moves_by_leaves(&mut self) -> bool {
        false
    }

    /// Adds the tree that was just grown to the scores of all rows.
    fn add_grown(&mut self, tree: &CodedTree) -> Result<()>;

    /// Adds the tree of an earlier round to the scores of all rows.
    fn add_earlier(&mut self, round: u32, tree: &CodedTree) -> Result<()>;

    /// Returns the current scores of the training rows. `None` if other processes hold them.
    fn scores(&self) -> Option<&Scores> {
        None
    }

    /// Returns the metrics of the training rows with their current scores. The result is empty for squared error,
    /// whose metric follows from the gradients.
    fn metrics(&mut self) -> Result<Vec<Mean>>;
}

/// The inputs of a new tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeStart {
    /// The tree number, starting at 1, which seeds the random numbers of the tree.
    pub tree: u64,
    /// Quantisation scale of gradients.
    pub scale: Scale,
    /// The groups of features that the tree may use.
    pub groups: Vec<usize>,
    /// Rows or queries are sampled if their random key is at most this limit. `None` if the worker holds all rows and
    /// can compute the limit itself.
    pub limit: Option<u64>,
}
