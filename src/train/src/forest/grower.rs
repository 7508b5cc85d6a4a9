//! Selection of the tree grower. A forest samples the rows of every tree and delegates growing to a [`TreeGrower`]; it does
//! not use labels itself. A criterion that needs other sums than class counts or moments is another grower.

use super::features::Path;
use super::{listwise, point};
use crate::bins::BinnedData;
use crate::config::{ForestCriterion, ForestSettings};
use crate::driver::{ForestTree, TreeGrower};
use planetree_base::error::Result;
use std::ops::Range;

/// The top of a tree, with open leaves to be grown further.
#[derive(Debug, Clone)]
pub struct Top {
    /// The tree so far.
    pub tree: ForestTree,
    /// The rows of the open leaves, leaf by leaf, each ascending.
    pub rows: Vec<u32>,
    /// The open leaves.
    pub open: Vec<OpenLeaf>,
}

/// A leaf to be grown further.
#[derive(Debug, Clone)]
pub struct OpenLeaf {
    /// Index in the tree.
    pub node: u32,
    /// Path from the root.
    pub path: Path,
    /// Range of its rows in the list.
    pub rows: Range<usize>,
}

/// Grows trees below a top that another grower made.
pub trait GrowBelow: TreeGrower {
    /// Grows the subtrees of the open leaves of a tree, on the calling thread.
    fn grow_below(&self, tree: u32, top: Top) -> Result<ForestTree>;
}

/// The grower for these parameters; `memory` is the memory limit of sums and copied rows, in bytes.
pub fn grower<'a>(
    parameters: &'a ForestSettings,
    data: &'a BinnedData,
    memory: usize,
) -> Result<Box<dyn TreeGrower + 'a>> {
    match &parameters.learner.criterion {
        ForestCriterion::Pointwise(criterion) => {
            let grower: Box<dyn TreeGrower + 'a> = point::grower(parameters, *criterion, data, memory)?;
            Ok(grower)
        }
        ForestCriterion::Listwise(splits) => listwise::grower(parameters, splits, data, None),
        ForestCriterion::Hybrid { levels, listwise: splits, below } => {
            let below = point::grower(parameters, *below, data, memory)?;
            listwise::grower(parameters, splits, data, Some((*levels, below)))
        }
    }
}
