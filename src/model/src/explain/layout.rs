//! A tree made ready to explain rows: all that does not depend on the row is computed here.
//!
//! The worth of a coalition is a sum over the leaves; so are Shapley values, and a leaf may be looked at
//! by itself. Let its path have the features 1 ... m; for each, let `o` be 1 if the row follows all of
//! the feature's edges on the path and else 0, and `z` the product of their shares. The leaf's worth is
//! its value times a product over the features, `o` for known and `z` for unknown ones. The Shapley value
//! of such a game is the integral of Owen ("Multilinear extensions of games", 1972):
//!
//! ```text
//! value * (o_i - z_i) * integral from 0 to 1 of the product over j != i of (z_j + t (o_j - z_j)) dt
//! ```
//!
//! The integrand is a polynomial in `t` of degree m - 1, so that m / 2 points give the integral exactly,
//! and at one point the product over a path is a number, which grows by a factor from edge to edge. So a
//! row takes one pass down the tree, in which products are made, and one pass up, in which leaves add up
//! and every edge hands its feature what is due: for every edge a few multiplications a point. The
//! algorithm of the paper takes m times as many for every leaf. All factors are positive, so
//! nothing is lost by rounding, however deep the tree is.
//!
//! Where a feature occurs again on a path, its later edge replaces the earlier one's factor. A row can be
//! in three *states* at an edge: it did not follow the earlier one; it did, but not this one; it follows
//! both. Everything is a table by that state.
//!
//! A leaf below many features needs many points. Leaves of a tree that need equally many are a *part*:
//! the tree without all others, so that only these pay for it.

use super::quadrature::{Point, points};
use crate::model::{Branch, Tree};
use std::collections::BTreeMap;

/// Points that are worked on at a time: as many as fit a register of most machines.
pub const LANES: usize = 4;
/// A number for each point.
pub type Lanes = [f64; LANES];
/// States of a row at an edge.
const STATES: usize = 3;

/// A split of a part.
#[derive(Debug)]
pub struct Fork {
    /// Which of the explained features.
    pub slot: u32,
    /// A row goes left when its value is at most this.
    pub threshold: f32,
    /// Where a row goes whose value is missing.
    pub missing: u8,
    /// The place of the split itself.
    pub place: u32,
    /// The nearest place above, or this one, to which an edge of the same feature leads; the root without one.
    pub above: u32,
    /// The place of the first child; the others follow.
    pub first: u32,
    /// The branches that lead to the children.
    pub branches: [u8; 3],
    /// How many children there are.
    pub children: u8,
}

/// What depends on the points, at the edge to a place.
#[derive(Debug, Clone)]
pub struct Edge {
    /// By what the product grows, by the row's state.
    pub factors: [Lanes; STATES],
    /// What the feature is due of the sum of the leaves below, likewise.
    pub dues: [Lanes; STATES],
}

/// Some points of a part.
#[derive(Debug)]
pub struct Pass {
    /// The weights of the points: the products at the root.
    pub weights: Lanes,
    /// The edges to all places but the root, from place 1 on.
    pub edges: Vec<Edge>,
}

/// Leaves of a tree that need equally many points, and the way to them. Places are in the order of their
/// depth, children side by side.
#[derive(Debug)]
pub struct Part {
    /// How many places there are.
    pub places: usize,
    /// All splits, parents first.
    pub forks: Vec<Fork>,
    /// The places and values of the leaves.
    pub leaves: Vec<(u32, f64)>,
    /// All points.
    pub passes: Vec<Pass>,
}

/// A branch by its number.
pub fn number_of(branch: Branch) -> u8 {
    match branch {
        Branch::Left => 0,
        Branch::Right => 1,
        Branch::Middle => 2,
    }
}

/// What is known of a node of the tree.
#[derive(Debug, Clone, Copy)]
struct Way {
    parent: usize,
    /// The feature that led here.
    feature: Option<u32>,
    /// The nearest node above, where an edge of the same feature ended; 0 without one.
    above: usize,
    /// The product of the shares of that feature's edges down to here.
    merged: f64,
    /// The share of all edges down to here.
    reach: f64,
    /// Different features on the way.
    features: usize,
    /// How many points a leaf needs, divided by [`LANES`]; the largest of the leaves below.
    needs: usize,
}

/// A tree as parts, and the mean of its leaves' values by the rows that reached them.
pub fn lay_out(tree: &Tree, slot_of: &BTreeMap<u32, u32>) -> (Vec<Part>, f64) {
    let ways = ways(tree);
    let leaves = || (0..tree.nodes.len()).filter(|node| tree.nodes[*node].split.is_none());
    let expected = leaves().map(|leaf| ways[leaf].reach * tree.nodes[leaf].value).sum();
    let mut by_need: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // A leaf that is the root explains nothing.
    for leaf in leaves().filter(|leaf| *leaf > 0) {
        by_need.entry(ways[leaf].needs).or_default().push(leaf);
    }
    let parts = by_need.into_iter().map(|(needs, leaves)| part(tree, &ways, needs, &leaves, slot_of));
    (parts.collect(), expected)
}

/// Goes down the tree once; parents come before their children.
fn ways(tree: &Tree) -> Vec<Way> {
    let root = Way { parent: 0, feature: None, above: 0, merged: 1.0, reach: 1.0, features: 0, needs: 0 };
    let mut ways = vec![root; tree.nodes.len()];
    for (node, split) in
        tree.nodes.iter().enumerate().filter_map(|(node, it)| Some((node, it.split.as_ref()?)))
    {
        let mut above = node;
        while above > 0 && ways[above].feature != Some(split.feature) {
            above = ways[above].parent;
        }
        let total: f64 = split.children().map(|child| tree.nodes[child as usize].cover).sum();
        let count = split.children().count() as f64;
        for child in split.children() {
            // No row has been there: nothing speaks for either side.
            let share = if total > 0.0 { tree.nodes[child as usize].cover / total } else { 1.0 / count };
            let features = ways[node].features + usize::from(above == 0);
            ways[child as usize] = Way {
                parent: node,
                feature: Some(split.feature),
                above,
                merged: share * if above == 0 { 1.0 } else { ways[above].merged },
                reach: share * ways[node].reach,
                features,
                needs: features.div_ceil(2 * LANES),
            };
        }
    }
    ways
}

/// The tree with some of its leaves only.
fn part(tree: &Tree, ways: &[Way], needs: usize, leaves: &[usize], slot_of: &BTreeMap<u32, u32>) -> Part {
    let mut is_kept = vec![false; tree.nodes.len()];
    is_kept[0] = true;
    for leaf in leaves {
        let mut node = *leaf;
        while !is_kept[node] {
            is_kept[node] = true;
            node = ways[node].parent;
        }
    }
    // The nodes in the order of their places, and the place of each.
    let mut order = vec![0];
    let mut place_of = vec![0u32; tree.nodes.len()];
    let (mut forks, mut ends) = (Vec::new(), Vec::new());
    let mut place = 0;
    while place < order.len() {
        let node: usize = order[place];
        let Some(split) = &tree.nodes[node].split else {
            ends.push((place as u32, tree.nodes[node].value));
            place += 1;
            continue;
        };
        let all = [(0, Some(split.left)), (1, Some(split.right)), (2, split.middle)];
        let mut fork = Fork {
            slot: slot_of[&split.feature],
            threshold: split.threshold,
            missing: number_of(split.missing),
            place: place as u32,
            above: 0,
            first: order.len() as u32,
            branches: [0; 3],
            children: 0,
        };
        for (branch, child) in all {
            let Some(child) = child.map(|child| child as usize).filter(|child| is_kept[*child]) else {
                continue;
            };
            fork.branches[usize::from(fork.children)] = branch;
            fork.children += 1;
            fork.above = place_of[ways[child].above];
            place_of[child] = order.len() as u32;
            order.push(child);
        }
        forks.push(fork);
        place += 1;
    }
    let points = points(needs * LANES);
    let pass = |points: &[Point]| Pass {
        weights: std::array::from_fn(|lane| points[lane].weight),
        edges: order[1..].iter().map(|node| edge(ways, *node, points)).collect(),
    };
    Part { places: order.len(), forks, leaves: ends, passes: points.chunks(LANES).map(pass).collect() }
}

/// The tables of an edge. `t` is a point; the factor of a feature is `z + t (1 - z)` for a row that follows its
/// edges, and `z (1 - t)` for any other; its due is `(o - z)` divided by that.
fn edge(ways: &[Way], node: usize, points: &[Point]) -> Edge {
    let z = ways[node].merged;
    let before = if ways[node].above == 0 { 1.0 } else { ways[ways[node].above].merged };
    let lanes = |of: &dyn Fn(f64) -> f64| -> Lanes { std::array::from_fn(|lane| of(points[lane].at)) };
    let follows = |z: f64, t: f64| z + t * (1.0 - z);
    let due = |z: f64, t: f64| (1.0 - z) / follows(z, t);
    let share = if before > 0.0 { z / before } else { 0.0 };
    Edge {
        factors: [
            lanes(&|_| share),
            lanes(&|t| z * (1.0 - t) / follows(before, t)),
            lanes(&|t| follows(z, t) / follows(before, t)),
        ],
        dues: [
            lanes(&|_| 0.0),
            lanes(&|t| -1.0 / (1.0 - t) - due(before, t)),
            lanes(&|t| due(z, t) - due(before, t)),
        ],
    }
}
