//! One tree: a list of nodes, the root first, every parent before its children.

/// Where a row goes at a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// The value is at most the threshold.
    Left,
    /// The value is above the threshold.
    Right,
    /// Missing values have a branch of their own.
    Middle,
}

impl Branch {
    /// All branches.
    pub const ALL: [Branch; 3] = [Branch::Left, Branch::Right, Branch::Middle];

    /// The name that files have for it.
    pub fn name(self) -> &'static str {
        match self {
            Branch::Left => "left",
            Branch::Right => "right",
            Branch::Middle => "middle",
        }
    }
}

/// A decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Which feature, by its place in the model.
    pub feature: u32,
    /// A row goes left when its value is at most this.
    pub threshold: f32,
    /// Where a row goes whose value is missing.
    pub missing: Branch,
    /// The node for rows that go left.
    pub left: u32,
    /// The node for rows that go right.
    pub right: u32,
    /// The node for missing values, when they have one.
    pub middle: Option<u32>,
    /// How much the split reduced the loss of the training rows.
    pub gain: f64,
}

/// A node of a tree: a leaf, or a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// 0 for the root.
    pub depth: u32,
    /// `None` for a leaf.
    pub split: Option<Split>,
    /// What the rows that end here add to their score.
    pub value: f64,
    /// The weight of the training rows that came here; their number, when they have no weights.
    pub cover: f64,
}

/// One tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Which of several sub-models it belongs to.
    pub group: u32,
    /// Its nodes, the root first.
    pub nodes: Vec<Node>,
}
