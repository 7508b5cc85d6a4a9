//! What a grown tree says of rows that it was not grown from. Rows are copied side by side, some of them at a
//! time, and walk down together: while one waits for memory the others go on.

use super::view::{Lanes, View};
use crate::bins::Binning;
use crate::driver::ForestTree;

/// Rows that are copied together.
const AT_A_TIME: usize = 256;
/// Rows that walk together.
const TOGETHER: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Step {
    lane: u32,
    /// Codes up to this go left.
    code: u32,
    /// This code goes left, too.
    missing: u32,
    /// The left child, before the right one; its own place for a leaf.
    low: u32,
}

/// A tree made ready to route rows of the data it was trained on, or of others with the same bins.
pub struct Router<'a> {
    steps: Vec<Step>,
    tree: &'a ForestTree,
    lanes: &'a Lanes,
}

impl<'a> Router<'a> {
    /// Prepares a tree.
    pub fn new(tree: &'a ForestTree, binning: &Binning, lanes: &'a Lanes) -> Self {
        let step = |(place, node): (u32, &crate::driver::ForestNode)| match &node.split {
            // Whatever its code, a row stays.
            None => Step { lane: 0, code: u32::MAX, missing: u32::MAX, low: place },
            Some(split) => {
                let bins = &binning.features[split.feature as usize];
                let missing = bins.missing_code.filter(|_| split.missing_left).unwrap_or(u32::MAX);
                match lanes.has(split.feature) {
                    true => {
                        let lane = lanes.of_feature(split.feature) as u32;
                        Step { lane, code: split.code, missing, low: split.left }
                    }
                    // A feature that is constant in these bins: all rows have code 0.
                    false => Step { lane: 0, code: u32::MAX, missing, low: split.left },
                }
            }
        };
        Router { steps: (0..).zip(&tree.nodes).map(step).collect(), tree, lanes }
    }

    /// Hands over what the tree says of rows that lie in one partition, in their order.
    pub fn each_value(&self, view: &View<'_>, rows: &[u32], mut each: impl FnMut(u32, f64)) {
        let (mut bytes, mut codes) = (Vec::new(), Vec::new());
        for rows in rows.chunks(AT_A_TIME) {
            let mut places = [0u32; AT_A_TIME];
            if self.lanes.bytes {
                bytes.clear();
                view.append_bytes(rows, &mut bytes);
                self.walk(&bytes, &mut places[..rows.len()]);
            } else {
                codes.clear();
                view.append_codes(rows, &mut codes);
                self.walk(&codes, &mut places[..rows.len()]);
            }
            for (row, place) in rows.iter().zip(places) {
                each(*row, self.tree.nodes[place as usize].value);
            }
        }
    }

    fn walk<T: Copy + Into<u32>>(&self, codes: &[T], places: &mut [u32]) {
        let stride = self.lanes.stride;
        for (group, places) in places.chunks_mut(TOGETHER).enumerate() {
            let mut moved = true;
            while moved {
                moved = false;
                for (lane, place) in places.iter_mut().enumerate() {
                    let step = &self.steps[*place as usize];
                    let code: u32 = codes[(group * TOGETHER + lane) * stride + step.lane as usize].into();
                    let goes_left = (code <= step.code) | (code == step.missing);
                    let to = step.low + u32::from(!goes_left);
                    moved |= to != *place;
                    *place = to;
                }
            }
        }
    }
}
