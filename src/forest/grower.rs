//! The seam between a forest and how one of its trees is grown. A forest draws the rows of every tree, asks a
//! grower for the tree, and never looks at labels itself; a criterion that has other sums than class counts or
//! moments is another grower. `grower()` is the table of them.

use super::point;
use super::tree::GrownTree;
use crate::bins::BinnedData;
use crate::config::{CriterionName, Parameters};
use crate::error::Result;
use rayon::prelude::*;

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

/// The grower that the parameters ask for.
pub fn grower<'a>(parameters: &'a Parameters, data: &'a BinnedData) -> Result<Box<dyn TreeGrower + 'a>> {
    match parameters.forest.criterion {
        CriterionName::Variance | CriterionName::Entropy | CriterionName::Gini => {
            point::grower(parameters, data)
        }
    }
}
