//! The seam between a forest and how its trees are grown: on this machine or on a cluster.

use super::forest_tree::ForestTree;
use planetree_base::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// Draws the rows of a tree, given by its number: by their numbers in the dataset, ascending; one that was drawn
/// twice is there twice.
pub type Draw<'a> = dyn Fn(u32) -> Vec<u32> + Sync + 'a;

/// Grows trees. What comes out follows from the data, the parameters, the tree's number (the key of its random
/// draws) and its rows, and from nothing else.
pub trait TreeGrower: Sync {
    /// Grows one tree on the thread that asks.
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<ForestTree>;

    /// How many trees should grow at a time, if the grower knows better than the forest.
    fn together(&self) -> Option<u32> {
        None
    }

    /// Grows some trees on all threads, in the order of their numbers.
    fn grow_together(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<ForestTree>> {
        trees.into_par_iter().with_max_len(1).map(|tree| self.grow(tree, draw(tree))).collect()
    }
}
