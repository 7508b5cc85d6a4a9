//! Rows on which an exported tree is most likely to decide differently. For every split, a row that reaches it has its
//! feature at the threshold, one 32-bit float below and above it, missing, 0 and -0, and infinite. For linear functions,
//! rows in which no term hides another.

use crate::exchange::binary::BinaryNode;
use planetree_base::random::Stream;

/// Number of rows for each split.
pub(super) const ROWS_PER_SPLIT: usize = 8;

/// Returns the values that are tried at a threshold.
pub(super) fn values_at(threshold: f32) -> [f32; ROWS_PER_SPLIT] {
    [
        threshold,
        threshold.next_down(),
        threshold.next_up(),
        f32::NAN,
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]
}

/// Calls `check` with the rows for every split of a tree. `row` is changed: features off the path keep the values that it
/// has, and features on the path are at the edges of the splits above.
pub(super) fn adversarial_rows(nodes: &[BinaryNode], row: &mut [f32], check: &mut dyn FnMut(&[f32])) {
    // The parent of each node, and whether the node is its left child.
    let mut parents: Vec<Option<(usize, bool)>> = vec![None; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if let Some(split) = &node.split {
            parents[split.left] = Some((index, true));
            parents[split.right] = Some((index, false));
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        let Some(split) = &node.split else { continue };
        // The interval (above, at most) of each feature on the path, and whether a missing value takes the path, too.
        let mut path: Vec<(u32, f32, f32)> = Vec::new();
        let mut place = index;
        while let Some((parent, is_left)) = parents[place] {
            let above = nodes[parent].split.as_ref().expect("a parent is a split");
            let at = match path.iter().position(|(feature, ..)| *feature == above.feature) {
                Some(at) => at,
                None => {
                    path.push((above.feature, f32::NEG_INFINITY, f32::INFINITY));
                    path.len() - 1
                }
            };
            let (_, least, most) = &mut path[at];
            match is_left {
                true => *most = most.min(above.threshold),
                false => *least = least.max(above.threshold),
            }
            place = parent;
        }
        for (feature, least, most) in &path {
            row[*feature as usize] = match () {
                // Only a missing value can take such a path: the second split of one with three branches.
                () if least >= most => f32::NAN,
                () if *most < f32::INFINITY => *most,
                () => least.next_up(),
            };
        }
        for value in values_at(split.threshold) {
            row[split.feature as usize] = value;
            check(row);
        }
    }
}

/// Returns a row of values near the thresholds of each feature, or random numbers for features without splits.
pub(super) fn background(thresholds: &[Vec<f32>], stream: &mut Stream) -> Vec<f32> {
    let value = |thresholds: &Vec<f32>| match (thresholds.len() as u64, stream.bits() % 5) {
        (0, _) => stream.normal() as f32,
        (_, 0) => f32::NAN,
        (count, near) => {
            let threshold = thresholds[(stream.bits() % count) as usize];
            [threshold, threshold.next_up(), threshold.next_down(), threshold + 0.5][near as usize - 1]
        }
    };
    thresholds.iter().map(value).collect()
}

/// Returns a row in which every term of a linear function has about the given size, whatever its weight. So no term hides
/// an error in another one.
pub(super) fn balanced(features: usize, weights: &[(u32, f64)], size: f64, stream: &mut Stream) -> Vec<f32> {
    let mut row: Vec<f32> = (0..features).map(|_| stream.normal() as f32).collect();
    for (feature, weight) in weights {
        let scaled = f64::from(row[*feature as usize]) * size / weight.abs();
        // A weight of 0 has no term, and the value of a tiny one would not be finite.
        if scaled.is_finite() && scaled.abs() < 1e30 {
            row[*feature as usize] = scaled as f32;
        }
    }
    row
}
