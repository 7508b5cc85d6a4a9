//! The seam between a forest and how one of its trees is grown. A forest draws the rows of every tree, asks a
//! grower for the tree, and never looks at labels itself; a criterion that has other sums than class counts or
//! moments is another grower. `grower()` is the table of them.

use super::features::Path;
use super::{listwise, point};
use crate::bins::BinnedData;
use crate::config::{CriterionName, Parameters};
use crate::driver::{ForestTree, TreeGrower};
use planetree_base::error::Result;
use std::ops::Range;

/// The top of a tree, whose open leaves are to be grown further.
#[derive(Debug, Clone)]
pub struct Top {
    /// Its nodes.
    pub tree: ForestTree,
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
    fn grow_below(&self, tree: u32, top: Top) -> Result<ForestTree>;
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
