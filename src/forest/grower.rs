//! The seam between a forest and how one of its trees is grown. A forest draws the rows of every tree, asks a
//! grower for the tree, and never looks at labels itself; a criterion that has other sums than class counts or
//! moments is another grower. `grower()` is the table of them.

use super::point;
use super::tree::GrownTree;
use crate::bins::BinnedData;
use crate::config::{CriterionName, Parameters};
use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;

/// Draws the rows of a tree, given by its number: by their numbers in the dataset, ascending; one that was drawn
/// twice is there twice.
pub type Draw<'a> = dyn Fn(u32) -> Vec<u32> + Sync + 'a;

/// Grows trees. What comes out follows from the data, the parameters, the tree's number (the key of its random
/// draws) and its rows, and from nothing else.
pub trait TreeGrower: Sync {
    /// Grows one tree on the thread that asks.
    fn grow(&self, tree: u32, rows: Vec<u32>) -> Result<GrownTree>;

    /// Grows some trees on all threads, in the order of their numbers.
    fn grow_together(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<GrownTree>> {
        trees.into_par_iter().with_max_len(1).map(|tree| self.grow(tree, draw(tree))).collect()
    }
}

/// The grower that the parameters ask for; `room` is bytes that sums and copies of rows may take.
pub fn grower<'a>(
    parameters: &'a Parameters,
    data: &'a BinnedData,
    room: usize,
) -> Result<Box<dyn TreeGrower + 'a>> {
    match parameters.forest.criterion {
        CriterionName::Variance | CriterionName::Entropy | CriterionName::Gini => {
            point::grower(parameters, data, room)
        }
    }
}
