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

/// A tree to be grown.
#[derive(Debug, Clone)]
pub struct Task {
    /// The tree's number, from 1: the key of its random draws.
    pub tree: u64,
    /// The rows it sees, by their numbers in the dataset, ascending; one that was drawn twice is there twice.
    pub rows: Vec<u32>,
}

/// Grows trees. What comes out follows from the data, the parameters and the task, and from nothing else.
pub trait TreeGrower: Sync {
    /// Grows one tree on the thread that asks.
    fn grow(&self, task: Task) -> Result<GrownTree>;

    /// Grows some trees on all threads, in the order of the tasks.
    fn grow_together(&self, tasks: Vec<Task>) -> Result<Vec<GrownTree>> {
        tasks.into_par_iter().with_max_len(1).map(|task| self.grow(task)).collect()
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
    fn grow_below(&self, tree: u64, top: Top) -> Result<GrownTree>;
}

/// The grower that the parameters ask for.
pub fn grower<'a>(parameters: &'a Parameters, data: &'a BinnedData) -> Result<Box<dyn TreeGrower + 'a>> {
    if parameters.forest.criterion == CriterionName::Ndcg {
        return listwise::grower(parameters, data, None);
    }
    let pointwise = point::grower(parameters, data)?;
    match parameters.forest.listwise.levels {
        None => Ok(pointwise),
        Some(_) => listwise::grower(parameters, data, Some(pointwise)),
    }
}
