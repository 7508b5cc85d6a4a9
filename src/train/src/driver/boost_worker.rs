//! The interface between the boosting loop and the workers that hold rows, scores and gradients: one in this process,
//! or many in a cluster. In each round the gradients are updated, then a tree is started, grown and added.

use super::gradient_summary::GradientSummary;
use crate::tree::{Cell, CodedTree, RowStore, Scale};
use planetree_base::error::Result;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};

/// A boosting worker: rows with their scores and gradients.
pub trait BoostWorker<C: Cell>: RowStore<C> {
    /// Computes the gradients for the tree of a round.
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary>;

    /// Starts a tree: the root holds all rows, or the sample for this tree.
    fn start_tree(&mut self, start: &TreeStart) -> Result<()>;

    /// Whether a tree with values in whole units moves the gradient of every row by exactly the value of its leaf, on
    /// this scale, and the next tree has the same rows. Valid only after a tree was started.
    fn moves_by_leaves(&mut self) -> bool {
        false
    }

    /// Adds the tree just grown to all scores.
    fn add_grown(&mut self, tree: &CodedTree) -> Result<()>;

    /// Adds a tree of an earlier round to all scores.
    fn add_earlier(&mut self, round: u32, tree: &CodedTree) -> Result<()>;

    /// The metrics of the training rows by their current scores; empty for squared error, which follows from the
    /// gradients.
    fn metrics(&mut self) -> Result<Vec<Mean>>;
}

/// The inputs of a new tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeStart {
    /// Its number, from 1, which keys random numbers.
    pub tree: u64,
    /// Quantisation scale of gradients.
    pub scale: Scale,
    /// The groups of features that the tree may use.
    pub groups: Vec<usize>,
    /// The maximum random key of sampled rows or queries; `None` if the worker holds all rows and can derive it.
    pub limit: Option<u64>,
}
