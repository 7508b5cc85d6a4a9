//! The seam between the rounds and where rows, scores and gradients are: a share of the data in this process, or
//! many in a cluster. One round is: gradients, a scale, a tree that is started, grown and added.

use super::gradient_summary::GradientSummary;
use crate::tree::{Cell, CodedTree, Holder, Scale};
use planetree_base::error::Result;
use planetree_metric::Mean;
use serde::{Deserialize, Serialize};

/// Whoever holds the rows of a boosted training, with their scores and gradients.
pub trait Crew<C: Cell>: Holder<C> {
    /// Works out the gradients for the tree of a round.
    fn update_gradients(&mut self, round: u32) -> Result<GradientSummary>;

    /// Starts a tree: the root holds all rows, or those that are drawn for it.
    fn start_tree(&mut self, start: &TreeStart) -> Result<()>;

    /// Whether a tree whose values are whole units moves the gradient of every row by exactly its leaf's value, on
    /// this scale, and the next tree has the same rows. To be asked when a tree is started.
    fn moves_by_leaves(&mut self) -> bool {
        false
    }

    /// Adds the tree that was grown to all scores.
    fn add_grown(&mut self, tree: &CodedTree) -> Result<()>;

    /// Adds a tree of an earlier round to all scores.
    fn add_earlier(&mut self, round: u32, tree: &CodedTree) -> Result<()>;

    /// The metrics of the training rows by their scores so far; none for the squared error, which the gradients tell.
    fn metrics(&mut self) -> Result<Vec<Mean>>;
}

/// What a tree starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeStart {
    /// Its number, from 1, for random draws.
    pub tree: u64,
    /// How gradients become whole numbers.
    pub scale: Scale,
    /// The groups of features that the tree may use.
    pub groups: Vec<usize>,
    /// The lot up to which rows or queries are drawn; `None` where the rows at hand are all there are.
    pub limit: Option<u64>,
}
