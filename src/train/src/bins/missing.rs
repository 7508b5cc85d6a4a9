//! Which sides of a split missing values may be on.

use crate::config::MissingPolicy;

/// The sides of a split that missing values may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingSides {
    /// Both sides are tried. A node without missing values sends those of other rows right.
    Either,
    /// Missing values count as smaller than all others.
    Left,
    /// Missing values count as larger than all others.
    Right,
}

impl MissingSides {
    /// Returns the sides for a policy. Policies that replace missing values leave none, except those of words.
    pub fn of(policy: MissingPolicy) -> Self {
        match policy {
            MissingPolicy::Low => MissingSides::Left,
            MissingPolicy::High => MissingSides::Right,
            MissingPolicy::Zero
            | MissingPolicy::One
            | MissingPolicy::Mean
            | MissingPolicy::Median
            | MissingPolicy::Learned => MissingSides::Either,
        }
    }

    /// Returns whether a cut with missing values on the given side is a candidate. `some` says whether the node has
    /// missing values, and `apart` whether all other values are on the left. Such a cut separates missing values from
    /// all others; it has them on the right even if they count as smaller, because no code is below all others.
    pub fn allow(self, missing_left: bool, some: bool, apart: bool) -> bool {
        match self {
            MissingSides::Either => !missing_left || some,
            MissingSides::Left => missing_left || (some && apart),
            MissingSides::Right => !missing_left,
        }
    }
}
