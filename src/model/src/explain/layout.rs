//! Prepares a tree for explaining rows: everything that does not depend on the row is computed here.
//!
//! The value of a coalition (`mod.rs` defines the terms) is a sum over the leaves of the tree. Shapley values are
//! linear, so they are also sums over the leaves, and each leaf can be treated separately. Let the path to a leaf
//! have the features 1 ... m. For each feature, let `o` be 1 if the row follows all of the feature's edges on the
//! path and 0 otherwise, and let `z` be the product of the shares of these edges. A leaf adds to the value of a
//! coalition the leaf value times a product over the features, in which the factor is `o` for a known feature and `z`
//! for an unknown one. The Shapley value of such a game is an integral (Owen, "Multilinear extensions of games",
//! 1972):
//!
//! ```text
//! value * (o_i - z_i) * integral from 0 to 1 of the product over j != i of (z_j + t (o_j - z_j)) dt
//! ```
//!
//! The integrand is a polynomial in `t` of degree m - 1, so a Gauss-Legendre quadrature with m / 2 points (rounded
//! up) computes the integral exactly. At each point, the product along a path is a single number, and every edge
//! multiplies it by one factor. So each row needs one pass down the tree, which computes the products, and one pass
//! up, which sums over the leaves and adds the contribution of every edge to the feature of the edge. This takes a
//! few multiplications per edge and point, whereas the algorithm of Lundberg et al. takes m times as many per leaf.
//! No factor is negative, so there is no cancellation, however deep the tree is.
//!
//! If a feature occurs several times on a path, the factor of the later edge replaces the factor of the earlier edge. A
//! row is in one of three *states* at an edge: it does not follow all earlier edges of the same feature (0), it follows
//! the earlier edges but not this one (1), or it follows the earlier edges and this one (2). The tables are indexed by
//! this state.
//!
//! A leaf with many features on its path needs many points. To spare the other leaves this cost, a tree is divided into
//! *subtrees*. Each subtree consists of the leaves that need the same number of points, and of their ancestors.

use super::quadrature::{QuadraturePoint, points};
use crate::model::{Branch, Tree};
use std::collections::BTreeMap;

/// Number of quadrature points that are processed at a time: as many as fit in a vector register of most machines.
pub(super) const LANES: usize = 4;
/// One number for each point of a batch.
pub(super) type Lanes = [f64; LANES];
/// Number of states of a row at an edge.
const STATES: usize = 3;

/// A split of a subtree.
#[derive(Debug)]
pub(super) struct SubtreeSplit {
    /// Slot of the feature: its index among the features that the model uses.
    pub slot: u32,
    /// Rows whose value is at most this go left.
    pub threshold: f32,
    /// The branch for missing values: 0 is left, 1 is right and 2 is middle.
    pub missing: u8,
    /// Index of the node that is split.
    pub node: u32,
    /// Index of the nearest node on the path from the root, including this node, whose incoming edge belongs to the
    /// same feature. 0, the root, if there is none.
    pub above: u32,
    /// Index of the first child. The other children have the next indices.
    pub first: u32,
    /// The branches that lead to the children, numbered like `missing`. Only the first `children` entries are used.
    pub branches: [u8; 3],
    /// Number of children.
    pub children: u8,
}

/// The tables of an edge for a batch of points, indexed by the state of the row.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    /// The factor by which the edge multiplies the product along the path.
    pub factors: [Lanes; STATES],
    /// The contribution of the edge to its feature, as a multiple of the sum over the leaves below the edge.
    pub contributions: [Lanes; STATES],
}

/// A batch of quadrature points, with the tables of a subtree at these points.
#[derive(Debug)]
pub(super) struct PointBatch {
    /// The quadrature weights of the points. The products along all paths start with these numbers.
    pub weights: Lanes,
    /// The edges to all nodes except the root. The edge to node `i` has index `i - 1`.
    pub edges: Vec<Edge>,
}

/// The leaves of a tree that need the same number of points, and their ancestors. Nodes are in breadth-first order.
#[derive(Debug)]
pub(super) struct Subtree {
    /// Number of nodes.
    pub nodes: usize,
    /// All splits, parents before their children.
    pub splits: Vec<SubtreeSplit>,
    /// Node indices and values of the leaves.
    pub leaves: Vec<(u32, f64)>,
    /// All quadrature points, in batches.
    pub batches: Vec<PointBatch>,
}

fn branch_number(branch: Branch) -> u8 {
    match branch {
        Branch::Left => 0,
        Branch::Right => 1,
        Branch::Middle => 2,
    }
}

/// The path from the root to a node.
#[derive(Debug, Clone, Copy)]
struct NodePath {
    parent: usize,
    /// The feature of the last edge, which leads to the node. `None` for the root.
    feature: Option<u32>,
    /// Index of the nearest ancestor whose incoming edge belongs to the same feature. 0 if there is none.
    above: usize,
    /// The product of the shares of all edges on the path that belong to `feature`.
    feature_share: f64,
    /// The product of the shares of all edges on the path.
    reach: f64,
    /// Number of distinct features on the path.
    features: usize,
    /// Number of batches of [`LANES`] points that a leaf at the end of this path needs.
    batches: usize,
}

/// Splits a tree into subtrees by the number of points that its leaves need. Also returns the mean of the leaf values,
/// weighted by the fraction of training rows that reached each leaf.
pub(super) fn split_by_points(tree: &Tree, slot_of: &BTreeMap<u32, u32>) -> (Vec<Subtree>, f64) {
    let taken = tree.nodes.len();
    let tree = &*tree.with_untaken_branches();
    let paths = paths(tree, taken);
    let leaves = || (0..tree.nodes.len()).filter(|node| tree.nodes[*node].split.is_none());
    let expected = leaves().map(|leaf| paths[leaf].reach * tree.nodes[leaf].value).sum();
    let mut by_batches: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    // If the root is a leaf, no feature contributes, and there are no subtrees.
    for leaf in leaves().filter(|leaf| *leaf > 0) {
        by_batches.entry(paths[leaf].batches).or_default().push(leaf);
    }
    let subtrees =
        by_batches.into_iter().map(|(batches, leaves)| subtree(tree, &paths, batches, &leaves, slot_of));
    (subtrees.collect(), expected)
}

/// Computes the paths from the root to all nodes. Training rows may have reached the first `taken` nodes, but not the
/// others, which are branches of missing values.
fn paths(tree: &Tree, taken: usize) -> Vec<NodePath> {
    let root = NodePath {
        parent: 0,
        feature: None,
        above: 0,
        feature_share: 1.0,
        reach: 1.0,
        features: 0,
        batches: 0,
    };
    let mut paths = vec![root; tree.nodes.len()];
    // Parents come before their children, so one loop is enough.
    for (node, split) in
        tree.nodes.iter().enumerate().filter_map(|(node, it)| Some((node, it.split.as_ref()?)))
    {
        let mut above = node;
        while above > 0 && paths[above].feature != Some(split.feature) {
            above = paths[above].parent;
        }
        let total: f64 = split.children().map(|child| tree.nodes[child as usize].cover).sum();
        let count = split.children().filter(|child| (*child as usize) < taken).count() as f64;
        for child in split.children() {
            // If no training row reached the split, all branches that rows can take have equal shares.
            let share = match total > 0.0 {
                true => tree.nodes[child as usize].cover / total,
                false if (child as usize) < taken => 1.0 / count,
                false => 0.0,
            };
            let features = paths[node].features + usize::from(above == 0);
            paths[child as usize] = NodePath {
                parent: node,
                feature: Some(split.feature),
                above,
                feature_share: share * if above == 0 { 1.0 } else { paths[above].feature_share },
                reach: share * paths[node].reach,
                features,
                batches: features.div_ceil(2 * LANES),
            };
        }
    }
    paths
}

/// Builds the subtree that consists of the given leaves and their ancestors.
fn subtree(
    tree: &Tree,
    paths: &[NodePath],
    batches: usize,
    leaves: &[usize],
    slot_of: &BTreeMap<u32, u32>,
) -> Subtree {
    let mut is_kept = vec![false; tree.nodes.len()];
    is_kept[0] = true;
    for leaf in leaves {
        let mut node = *leaf;
        while !is_kept[node] {
            is_kept[node] = true;
            node = paths[node].parent;
        }
    }
    // `order` lists the kept nodes of the tree in breadth-first order; `index_of` is its inverse.
    let mut order = vec![0];
    let mut index_of = vec![0u32; tree.nodes.len()];
    let (mut splits, mut kept_leaves) = (Vec::new(), Vec::new());
    let mut index = 0;
    while index < order.len() {
        let node: usize = order[index];
        let Some(split) = &tree.nodes[node].split else {
            kept_leaves.push((index as u32, tree.nodes[node].value));
            index += 1;
            continue;
        };
        let all = [(0, Some(split.left)), (1, Some(split.right)), (2, split.middle)];
        let mut kept = SubtreeSplit {
            slot: slot_of[&split.feature],
            threshold: split.threshold,
            missing: branch_number(split.missing),
            node: index as u32,
            above: 0,
            first: order.len() as u32,
            branches: [0; 3],
            children: 0,
        };
        for (branch, child) in all {
            let Some(child) = child.map(|child| child as usize).filter(|child| is_kept[*child]) else {
                continue;
            };
            kept.branches[usize::from(kept.children)] = branch;
            kept.children += 1;
            kept.above = index_of[paths[child].above];
            index_of[child] = order.len() as u32;
            order.push(child);
        }
        splits.push(kept);
        index += 1;
    }
    let points = points(batches * LANES);
    let batch = |points: &[QuadraturePoint]| PointBatch {
        weights: std::array::from_fn(|lane| points[lane].weight),
        edges: order[1..].iter().map(|node| edge(paths, *node, points)).collect(),
    };
    let batches = points.chunks(LANES).map(batch).collect();
    Subtree { nodes: order.len(), splits, leaves: kept_leaves, batches }
}

/// Computes the tables of the edge that leads to a node. At point `t`, the factor of a feature is `z + t (1 - z)` for
/// a row that follows all edges of the feature, and `z (1 - t)` for any other row. The contribution of the feature is
/// `o - z` divided by this factor. If the feature has an earlier edge on the path, the tables contain the quotient of
/// the new factor and the earlier factor, and the difference of the new contribution and the earlier contribution.
fn edge(paths: &[NodePath], node: usize, points: &[QuadraturePoint]) -> Edge {
    let z = paths[node].feature_share;
    let before = if paths[node].above == 0 { 1.0 } else { paths[paths[node].above].feature_share };
    let lanes = |of: &dyn Fn(f64) -> f64| -> Lanes { std::array::from_fn(|lane| of(points[lane].at)) };
    let follows = |z: f64, t: f64| z + t * (1.0 - z);
    let contribution = |z: f64, t: f64| (1.0 - z) / follows(z, t);
    let share = if before > 0.0 { z / before } else { 0.0 };
    Edge {
        factors: [
            lanes(&|_| share),
            lanes(&|t| z * (1.0 - t) / follows(before, t)),
            lanes(&|t| follows(z, t) / follows(before, t)),
        ],
        contributions: [
            lanes(&|_| 0.0),
            lanes(&|t| -1.0 / (1.0 - t) - contribution(before, t)),
            lanes(&|t| contribution(z, t) - contribution(before, t)),
        ],
    }
}
