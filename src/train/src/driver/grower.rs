//! The interface between a forest and the growers of its trees, on this machine or on a cluster.

use super::forest_tree::ForestTree;
use planetree_base::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// Samples the rows of the tree with this number: ascending row numbers, repeated if sampled more than once.
pub type Draw<'a> = dyn Fn(u32) -> Vec<u32> + Sync + 'a;

/// Grows trees. A tree depends only on the data, the parameters, its number (which keys random numbers) and its rows.
pub trait TreeGrower: Sync {
    /// Grows one tree on the calling thread.
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<ForestTree>;

    /// The preferred number of trees to grow at a time, if the grower has one.
    fn batch_size(&self) -> Option<u32> {
        None
    }

    /// Grows trees on all threads; the result is in the order of their numbers.
    fn grow_batch(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        trees.into_par_iter().with_max_len(1).map(|tree| self.grow(tree, draw(tree))).collect()
    }
}
