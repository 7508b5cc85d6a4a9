//! Where splits send missing values.

use crate::config::MissingPolicy;
use planetree_model::model::{Branch, Split};
use serde::{Deserialize, Serialize};

/// The sides of a split that missing values may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingSides {
    /// Both sides are tried. A node without missing values sends those of other rows right.
    Either,
    /// Missing values count as smaller than all others.
    Left,
    /// Missing values count as larger than all others.
    Right,
    /// Missing values have a child of their own: a split has three children (Mohan 2010, eq. 2.1).
    Own,
}

/// Where a split sends missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MissingBranch {
    /// To the left child.
    Left,
    /// To the right child.
    Right,
    /// To a third child, which follows the right child.
    Middle,
    /// To no child: missing values have children of their own, but no row of the node has a missing value. Other rows
    /// take the value of the node.
    Unseen,
}

impl MissingSides {
    /// Returns the sides for a policy. Policies that replace missing values leave none, except those of words.
    pub fn of(policy: MissingPolicy) -> Self {
        match policy {
            MissingPolicy::Low => MissingSides::Left,
            MissingPolicy::High => MissingSides::Right,
            MissingPolicy::Branch => MissingSides::Own,
            MissingPolicy::Zero
            | MissingPolicy::One
            | MissingPolicy::Mean
            | MissingPolicy::Median
            | MissingPolicy::Learned => MissingSides::Either,
        }
    }

    /// Returns the branches that missing values may take at a cut, in the order in which they are tried. `some` says
    /// whether the node has missing values, and `apart` whether all other values are on the left. Such a cut separates
    /// missing values from all others; it has them on the right even if they count as smaller, because no code is below
    /// all others.
    pub fn branches(self, some: bool, apart: bool) -> &'static [MissingBranch] {
        use MissingBranch::{Left, Middle, Right, Unseen};
        match self {
            MissingSides::Either if some => &[Right, Left],
            MissingSides::Left if some && apart => &[Right, Left],
            MissingSides::Left => &[Left],
            MissingSides::Either | MissingSides::Right => &[Right],
            MissingSides::Own if some && apart => &[Right],
            MissingSides::Own if some => &[Middle],
            MissingSides::Own => &[Unseen],
        }
    }

    /// Returns whether missing values may take the left branch, or the right branch, at a cut; see
    /// [`MissingSides::branches`].
    pub fn allow(self, missing_left: bool, some: bool, apart: bool) -> bool {
        self.branches(some, apart).contains(&MissingBranch::of_side(missing_left))
    }

    /// Returns the maximum number of children of a node.
    pub fn most_children(self) -> usize {
        if self == MissingSides::Own { 3 } else { 2 }
    }
}

impl MissingBranch {
    /// Returns the left or the right branch.
    pub fn of_side(is_left: bool) -> Self {
        if is_left { MissingBranch::Left } else { MissingBranch::Right }
    }

    /// Returns the number of children of a split.
    pub fn children(self) -> usize {
        if self == MissingBranch::Middle { 3 } else { 2 }
    }

    /// Returns the branch of a model's split and the index of the third child, if there is one. `left` is the index of
    /// the left child, which the others follow.
    pub fn to_model(self, left: u32) -> (Branch, Option<u32>) {
        match self {
            MissingBranch::Left => (Branch::Left, None),
            MissingBranch::Right => (Branch::Right, None),
            MissingBranch::Middle => (Branch::Middle, Some(left + 2)),
            MissingBranch::Unseen => (Branch::Middle, None),
        }
    }

    /// Converts the branch of a model's split. Returns `None` if its children do not follow each other.
    pub fn of_model(split: &Split) -> Option<Self> {
        let branch = match (split.missing, split.middle) {
            (Branch::Left, None) => MissingBranch::Left,
            (Branch::Right, None) => MissingBranch::Right,
            (Branch::Middle, Some(middle)) if middle == split.left + 2 => MissingBranch::Middle,
            (Branch::Middle, None) => MissingBranch::Unseen,
            _ => return None,
        };
        Some(branch).filter(|_| split.right == split.left + 1)
    }
}
