//! The seam between a forest and how one of its trees is grown. A forest draws the rows of every tree, asks a
//! grower for the tree, and never looks at labels itself; a criterion that has other sums than class counts or
//! moments is another grower. `grower()` is the table of them.

use super::features::Path;
use super::tree::GrownTree;
use super::{listwise, point};
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

    /// How many trees should grow at a time, if the grower knows better than the forest.
    fn together(&self) -> Option<u32> {
        None
    }

    /// Grows some trees on all threads, in the order of their numbers.
    fn grow_together(&self, trees: Range<u32>, draw: &Draw<'_>) -> Result<Vec<GrownTree>> {
        trees.into_par_iter().with_max_len(1).map(|tree| self.grow(tree, draw(tree))).collect()
    }
}

/// The top of a tree, whose open leaves are to be grown further.
#[derive(Debug, Clone)]
pub struct Top {
    /// Its nodes.
    pub tree: GrownTree,
    /// The rows of the open leaves, leaf by leaf, each ascending.
    pub rows: Vec<u32>,
    /// The open leaves.
    pub open: Vec<OpenLeaf>,
}

/// A leaf that is to be grown further.
#[derive(Debug, Clone)]
pub struct OpenLeaf {
    /// Its place in the tree.
    pub node: u32,
    /// Its way from the root.
    pub path: Path,
    /// Its rows, by place in the list.
    pub rows: Range<usize>,
}

/// Grows trees from a top that another grower made, leaf by leaf.
pub trait GrowBelow: TreeGrower {
    /// Grows everything below the open leaves of a tree, on the thread that asks.
    fn grow_below(&self, tree: u32, top: Top) -> Result<GrownTree>;
}

/// The grower that the parameters ask for; `room` is bytes that sums and copies of rows may take.
pub fn grower<'a>(
    parameters: &'a Parameters,
    data: &'a BinnedData,
    room: usize,
) -> Result<Box<dyn TreeGrower + 'a>> {
    if parameters.forest.criterion == CriterionName::Ndcg {
        return listwise::grower(parameters, data, None);
    }
    let pointwise = point::grower(parameters, data, room)?;
    match parameters.forest.listwise.levels {
        None => Ok(pointwise),
        Some(_) => listwise::grower(parameters, data, Some(pointwise)),
    }
}
