//! Writes splits on sets of categories as splits on codes.
//!
//! LightGBM and XGBoost can send any set of categories to one side. planetree's splits compare with a threshold. A set
//! of codes is a list of ranges, so a split on a set becomes a small balanced tree of thresholds, with one copy of a
//! child for every range:
//!
//! ```text
//! colour in {1, 2, 5}         colour < 5
//!    yes      no      =>    colour < 3     colour < 6
//!                         colour < 1  no   yes      no
//!                          no   yes
//! ```
//!
//! Every value, also a missing one, reaches the leaf that it reaches in the other program. A path remembers the range
//! of codes that it is in, so a second split on the same feature has only the ranges that a row can still be in. What
//! grows too large nevertheless is refused.

use super::ImportError;
use crate::model::{Branch, Node, Split, Tree};
use serde_json::Value;
use std::collections::VecDeque;

/// Codes from this number on are not separate 32-bit floats.
const MAX_CODE: u32 = 1 << 24;
/// The largest number of nodes of a tree whose sets were expanded.
const MAX_TREE_NODES: usize = 1 << 16;
/// The largest number of nodes that the expansion adds to a model.
const MAX_ADDED_NODES: usize = 1 << 22;

/// A test whether a category is in a set, as ranges of codes in ascending order. Neighbours have different sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CategorySplit {
    ranges: Vec<CodeRange>,
    missing_left: bool,
}

/// All values above the range before, up to and including a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CodeRange {
    upto: f32,
    is_left: bool,
}

/// The sides of a test on a set of categories.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetSides {
    /// Whether the categories in the set go left, and all other values right.
    pub set_left: bool,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// The largest value that is below code 0.
    pub below_zero: f32,
}

impl CategorySplit {
    /// Creates a split from the codes in the set, in ascending order. A value has the code that is left when its
    /// fraction is cut off.
    pub(super) fn new(codes: impl Iterator<Item = u32>, sides: SetSides) -> Result<Self, ImportError> {
        let mut ranges: Vec<CodeRange> = Vec::new();
        let mut push = |upto: f32, is_left: bool| match ranges.last_mut() {
            Some(last) if last.is_left == is_left => last.upto = upto,
            _ => ranges.push(CodeRange { upto, is_left }),
        };
        let mut next = None;
        for code in codes {
            if code >= MAX_CODE {
                return Err(ImportError::new(
                    format!("a split on a set of categories has the code {code}"),
                    format!("encode categories as codes from 0 to {}", MAX_CODE - 1),
                ));
            }
            if next != Some(code) {
                let below = if code == 0 { sides.below_zero } else { (code as f32).next_down() };
                push(below, !sides.set_left);
            }
            push((code as f32 + 1.0).next_down(), sides.set_left);
            next = Some(code + 1);
        }
        push(f32::INFINITY, !sides.set_left);
        Ok(CategorySplit { ranges, missing_left: sides.missing_left })
    }

    /// Returns the ranges that a row can still be in.
    fn within(&self, known: &Known) -> Vec<CodeRange> {
        let first = self.ranges.partition_point(|range| range.upto <= known.above);
        let mut within = Vec::new();
        for range in &self.ranges[first..] {
            within.push(CodeRange { upto: range.upto.min(known.upto), ..*range });
            if range.upto >= known.upto {
                break;
            }
        }
        within
    }
}

/// Returns an error if the expansion of sets adds too many nodes to a model.
pub(super) fn check_added_nodes(added: usize) -> Result<(), ImportError> {
    if added > MAX_ADDED_NODES { Err(too_large(MAX_ADDED_NODES)) } else { Ok(()) }
}

fn too_large(nodes: usize) -> ImportError {
    ImportError::new(
        format!("splits on sets of categories would become more than {nodes} splits on codes"),
        "train with smaller sets of categories (max_cat_threshold), or encode categories as numbers, as `planetree \
         convert` does",
    )
}

/// Returns the categories of a data frame, in the order of their codes, as texts. Empty if the codes are the categories
/// themselves, so that none need to be mapped. `None` if they are neither texts nor whole numbers.
pub(super) fn words_of(categories: &[Value]) -> Option<Vec<String>> {
    if let Some(texts) = categories.iter().map(|one| one.as_str().map(str::to_owned)).collect() {
        return Some(texts);
    }
    let numbers: Vec<i64> = categories.iter().map(Value::as_i64).collect::<Option<_>>()?;
    let are_codes = numbers.iter().enumerate().all(|(code, number)| code as i64 == *number);
    Some(if are_codes { Vec::new() } else { numbers.iter().map(i64::to_string).collect() })
}

/// What a path says about the value of a feature: it is above one bound and at most another, or missing.
#[derive(Debug, Clone, Copy)]
struct Known {
    feature: u32,
    above: f32,
    upto: f32,
    may_be_missing: bool,
}

/// A node of the new tree that is still to be written.
#[derive(Debug, Clone)]
struct PendingNode {
    /// Index in the given tree.
    node: usize,
    depth: u32,
    cover: f64,
    known: Vec<Known>,
    /// What is left to decide between; `None` before the first split of a set.
    pieces: Option<Pieces>,
}

/// The ranges that a row can still be in, and their covers.
#[derive(Debug, Clone)]
struct Pieces {
    ranges: Vec<(CodeRange, f64)>,
    /// Cover of missing values if no range goes to their side.
    missing_cover: f64,
}

impl Pieces {
    fn cover(&self) -> f64 {
        self.ranges.iter().map(|(_, cover)| cover).sum()
    }
}

impl PendingNode {
    fn known(&self, feature: u32) -> Known {
        let unknown = Known { feature, above: f32::NEG_INFINITY, upto: f32::INFINITY, may_be_missing: true };
        self.known.iter().find(|known| known.feature == feature).copied().unwrap_or(unknown)
    }

    /// Returns a node further down this path.
    fn below(&self, node: usize, cover: f64, known: Known, pieces: Option<Pieces>) -> Self {
        let others = self.known.iter().filter(|other| other.feature != known.feature).copied();
        PendingNode { node, depth: self.depth + 1, cover, known: others.chain([known]).collect(), pieces }
    }
}

/// Replaces splits on sets by splits on codes. `sets` has the set of each node of the tree. The thresholds of these nodes
/// and their branches for missing values are ignored.
pub(super) fn expand_sets(tree: Tree, sets: &[Option<CategorySplit>]) -> Result<Tree, ImportError> {
    if sets.iter().all(Option::is_none) {
        return Ok(tree);
    }
    let root = PendingNode { node: 0, depth: 0, cover: tree.nodes[0].cover, known: Vec::new(), pieces: None };
    let mut pending = VecDeque::from([root]);
    let mut nodes = Vec::new();
    let mut count = 1;
    while let Some(next) = pending.pop_front() {
        let (node, children) = Expander { given: &tree.nodes, sets, next: count }.write(next);
        count += children.len();
        if count > MAX_TREE_NODES {
            return Err(too_large(MAX_TREE_NODES));
        }
        nodes.push(node);
        pending.extend(children);
    }
    Ok(Tree { nodes })
}

/// Writes one node of the new tree.
struct Expander<'a> {
    given: &'a [Node],
    sets: &'a [Option<CategorySplit>],
    /// Index of the first child in the new tree.
    next: usize,
}

impl Expander<'_> {
    /// Returns a node and its children.
    fn write(&self, mut pending: PendingNode) -> (Node, Vec<PendingNode>) {
        loop {
            let (Some(split), Some(set)) = (&self.given[pending.node].split, &self.sets[pending.node]) else {
                return self.copy(&pending);
            };
            let known = pending.known(split.feature);
            let is_first = pending.pieces.is_none();
            let pieces = pending.pieces.take().unwrap_or_else(|| self.pieces(split, set, &pending, &known));
            // A set that cannot separate the rows of this path needs no split.
            let side = match pieces.ranges.as_slice() {
                [] => set.missing_left,
                [(range, _)] if !known.may_be_missing || set.missing_left == range.is_left => range.is_left,
                _ => return self.split(&pending, set, split, pieces, is_first),
            };
            let child = if side { split.left } else { split.right };
            let depth = pending.depth;
            pending = PendingNode { depth, ..pending.below(child as usize, pending.cover, known, None) };
        }
    }

    /// Copies a leaf, or a split with a threshold.
    fn copy(&self, pending: &PendingNode) -> (Node, Vec<PendingNode>) {
        let given = &self.given[pending.node];
        let mut node = Node { depth: pending.depth, cover: pending.cover, ..given.clone() };
        let Some(split) = &mut node.split else { return (node, Vec::new()) };
        let children = [split.left, split.right].map(|child| {
            let cover = self.given[child as usize].cover * self.share(pending);
            let (node, depth) = (child as usize, pending.depth + 1);
            PendingNode { node, depth, cover, known: pending.known.clone(), pieces: None }
        });
        split.gain *= self.share(pending);
        (split.left, split.right) = (self.next as u32, self.next as u32 + 1);
        (node, children.into())
    }

    /// Returns how much of a given node's cover a copy of it has.
    fn share(&self, pending: &PendingNode) -> f64 {
        let given = self.given[pending.node].cover;
        if given > 0.0 { pending.cover / given } else { 1.0 }
    }

    /// Divides the cover of a split evenly between the ranges of a side. Covers affect explanations, not scores.
    fn pieces(&self, split: &Split, set: &CategorySplit, pending: &PendingNode, known: &Known) -> Pieces {
        let ranges = set.within(known);
        let count = |is_left| ranges.iter().filter(|range| range.is_left == is_left).count();
        let is_taken = |is_left| count(is_left) > 0 || (known.may_be_missing && set.missing_left == is_left);
        let [left, right] = [split.left, split.right].map(|child| self.given[child as usize].cover);
        let of_side = |is_left: bool| match is_taken(!is_left) {
            false => pending.cover,
            true if left + right > 0.0 => pending.cover * if is_left { left } else { right } / (left + right),
            true => pending.cover / 2.0,
        };
        let with_cover = |range: &CodeRange| (*range, of_side(range.is_left) / count(range.is_left) as f64);
        Pieces { ranges: ranges.iter().map(with_cover).collect(), missing_cover: of_side(set.missing_left) }
    }

    /// Splits the ranges in the middle, or a single range from missing values.
    fn split(
        &self,
        pending: &PendingNode,
        set: &CategorySplit,
        split: &Split,
        mut pieces: Pieces,
        is_first: bool,
    ) -> (Node, Vec<PendingNode>) {
        let known = pending.known(split.feature);
        let part =
            |pieces: Pieces, known: Known| pending.below(pending.node, pieces.cover(), known, Some(pieces));
        let (threshold, missing_left, children) = if let [(range, _)] = pieces.ranges.as_slice() {
            let none = Known { above: f32::INFINITY, upto: f32::INFINITY, ..known };
            let child = if set.missing_left { split.left } else { split.right };
            let missing = pending.below(child as usize, pieces.missing_cover, none, None);
            let upto = range.upto;
            let values = part(pieces, Known { may_be_missing: false, ..known });
            match (upto.is_finite(), known.above.is_finite()) {
                (true, _) => (upto, false, [values, missing]),
                (false, true) => (known.above, true, [missing, values]),
                (false, false) => (f32::MAX, false, [values, missing]),
            }
        } else {
            let upper = pieces.ranges.split_off(pieces.ranges.len() / 2);
            let lower = pieces.ranges;
            let threshold = lower[lower.len() - 1].0.upto;
            let has_side = lower.iter().any(|(range, _)| range.is_left == set.missing_left);
            let missing_left = has_side && known.may_be_missing;
            let part = |ranges, known| part(Pieces { ranges, missing_cover: pieces.missing_cover }, known);
            let below = Known { upto: threshold, may_be_missing: missing_left, ..known };
            let is_above = known.may_be_missing && !missing_left;
            let above = Known { above: threshold, may_be_missing: is_above, ..known };
            (threshold, missing_left, [part(lower, below), part(upper, above)])
        };
        let new = Split {
            feature: split.feature,
            threshold,
            missing: if missing_left { Branch::Left } else { Branch::Right },
            left: self.next as u32,
            right: self.next as u32 + 1,
            middle: None,
            gain: if is_first { split.gain * self.share(pending) } else { 0.0 },
        };
        let value = self.given[pending.node].value;
        (Node { depth: pending.depth, split: Some(new), value, cover: pending.cover }, children.into())
    }
}

#[cfg(test)]
mod tests;
