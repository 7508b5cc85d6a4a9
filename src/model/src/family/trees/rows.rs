//! Converts trees to rows of the model table, one per node, and back.

use super::tree::{Node, Split, Tree};
use crate::family::ModelRow;

/// Returns the rows of a tree. `number` is the number of the tree within its part.
pub(crate) fn tree_rows(number: u32, tree: &Tree) -> impl Iterator<Item = ModelRow> {
    (0..).zip(&tree.nodes).map(move |(index, node)| {
        let split = node.split.as_ref();
        ModelRow {
            tree: number,
            node: index,
            depth: node.depth,
            feature: split.map(|split| split.feature),
            threshold: split.map(|split| split.threshold),
            missing: split.map(|split| split.missing),
            left: split.map(|split| split.left),
            right: split.map(|split| split.right),
            middle: split.and_then(|split| split.middle),
            value: node.value,
            gain: split.map(|split| split.gain),
            cover: node.cover,
        }
    })
}

/// Appends a row to the trees: as the next node of the last tree, or as the root of a new one.
pub(super) fn append_row(trees: &mut Vec<Tree>, row: &ModelRow) -> Result<(), &'static str> {
    if row.node == 0 && row.tree as usize == trees.len() {
        trees.push(Tree { nodes: Vec::new() });
    }
    let last = trees.len().wrapping_sub(1);
    let Some(tree) = trees.last_mut().filter(|_| row.tree as usize == last) else {
        return Err("tree numbers are not in ascending order");
    };
    if row.node as usize != tree.nodes.len() {
        return Err("nodes are out of order");
    }
    tree.nodes.push(Node { depth: row.depth, split: split_of(row)?, value: row.value, cover: row.cover });
    Ok(())
}

fn split_of(row: &ModelRow) -> Result<Option<Split>, &'static str> {
    let children = (row.left, row.right, row.middle);
    let Some(feature) = row.feature else {
        return if children == (None, None, None) {
            Ok(None)
        } else {
            Err("the node has children, but no feature")
        };
    };
    let (Some(left), Some(right), middle) = children else {
        return Err("the node has a feature, but not two children");
    };
    let (Some(threshold), Some(gain)) = (row.threshold, row.gain) else {
        return Err("the node has a feature, but no threshold or no gain");
    };
    let missing = row.missing.ok_or("`missing` is not left, right or middle")?;
    Ok(Some(Split { feature, threshold, missing, left, right, middle, gain }))
}
