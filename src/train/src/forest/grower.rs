//! Selects the tree grower. A forest samples the rows of every tree and delegates growing to a [`TreeGrower`]; the
//! forest itself does not use labels. A criterion that cannot be computed from class counts or from sums of labels
//! needs a grower of its own.

use super::features::Path;
use super::{listwise, point};
use crate::bins::BinnedData;
use crate::config::{ForestCriterion, ForestSettings};
use crate::driver::{ForestTree, TreeGrower};
use planetree_base::error::Result;
use std::ops::Range;

/// The upper levels of a tree, with open leaves that another grower splits further.
#[derive(Debug, Clone)]
pub(super) struct Top {
    /// The tree so far.
    pub tree: ForestTree,
    /// Rows of the open leaves, leaf by leaf, in ascending order within a leaf.
    pub rows: Vec<u32>,
    /// Leaves that are grown further.
    pub open: Vec<OpenLeaf>,
}

/// A leaf that is grown further.
#[derive(Debug, Clone)]
pub(super) struct OpenLeaf {
    /// Index of the leaf in the tree.
    pub node: u32,
    /// Path from the root to the leaf.
    pub path: Path,
    /// The leaf's range in [`Top::rows`].
    pub rows: Range<usize>,
}

/// A grower that can continue a tree whose upper levels another grower has made.
pub(super) trait GrowBelow: TreeGrower {
    /// Grows the subtrees below the open leaves of a tree, on the calling thread.
    fn grow_below(&self, tree: u32, top: Top) -> Result<ForestTree>;
}

/// Creates the grower for these parameters. `memory` is the memory limit for sums and copied rows, in bytes.
pub(super) fn grower<'a>(
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
