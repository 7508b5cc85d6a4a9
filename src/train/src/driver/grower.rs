//! The interface between a forest and the growers of its trees, on this machine or on a cluster.

use super::forest_tree::ForestTree;
use planetree_base::error::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Samples the rows of the tree with the given number. Row numbers ascend, and a row that was sampled several times is
/// repeated.
pub type Draw<'a> = dyn Fn(u32) -> Vec<u32> + Sync + 'a;

/// Grows the trees of a forest. A tree depends only on the data, the parameters, its rows and its number, which seeds
/// its random numbers.
pub trait TreeGrower: Send + Sync {
    /// Grows one tree on the calling thread.
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<ForestTree>;

    /// Returns how many trees should be grown at a time, or `None` if the grower has no preference.
    fn batch_size(&self) -> Option<u32> {
        None
    }

    /// Sets how much a split on each feature must gain more than a split on a free feature, for the trees that are grown
    /// from now on. Only growers of pointwise trees can do so.
    fn set_penalties(&mut self, _penalties: Arc<[f64]>) -> Result<()> {
        Err(Error::usage(
            "--costs: forests use costs only with criterion=variance, entropy or gini",
            "set criterion=variance",
        ))
    }

    /// Grows trees on all threads and returns them in the order of their numbers.
    fn grow_batch(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        trees.into_par_iter().with_max_len(1).map(|tree| self.grow(tree, draw(tree))).collect()
    }
}
