//! Computes the predictions of a grown tree for binned rows. Rows are copied in batches and traverse the tree in
//! lockstep, so that memory latencies overlap.

use super::view::{CodeLanes, PartitionView};
use crate::bins::{Binning, MissingBranch};
use crate::driver::ForestTree;

/// Number of rows copied at a time.
const AT_A_TIME: usize = 256;
/// Number of rows that traverse the tree in lockstep.
const TOGETHER: usize = 16;

#[derive(Debug, Clone, Copy)]
struct RouteStep {
    lane: u32,
    /// Rows with at most this code go left.
    code: u32,
    /// Rows with this code go left too: the code of missing values if these go left, otherwise `u32::MAX`.
    missing: u32,
    /// Index of the left child; the index of the right child is one higher. A leaf refers to itself.
    low: u32,
    /// The code of missing values if they go neither left nor right, otherwise `u32::MAX`.
    apart: u32,
    /// Where rows with the code `apart` go: the third child, or the node itself if it has none.
    middle: u32,
}

/// Routes rows of the training data, or of other data with the same bins, through a tree.
pub(super) struct ForestRouter<'a> {
    steps: Vec<RouteStep>,
    /// Whether missing values always go left or right.
    is_binary: bool,
    tree: &'a ForestTree,
    lanes: &'a CodeLanes,
}

impl<'a> ForestRouter<'a> {
    /// Prepares the routing of rows through a tree.
    pub(super) fn new(tree: &'a ForestTree, binning: &Binning, lanes: &'a CodeLanes) -> Self {
        let step = |(place, node): (u32, &crate::driver::ForestNode)| match &node.split {
            // A row that has reached a leaf stays there, whatever its codes are.
            None => RouteStep {
                lane: 0,
                code: u32::MAX,
                missing: u32::MAX,
                low: place,
                apart: u32::MAX,
                middle: place,
            },
            Some(split) => {
                let bins = &binning.features[split.feature as usize];
                let code_if = |is: bool| bins.missing_code.filter(|_| is).unwrap_or(u32::MAX);
                let missing = code_if(split.missing == MissingBranch::Left);
                let (low, is_middle) = (split.left, split.missing == MissingBranch::Middle);
                let apart = code_if(is_middle || split.missing == MissingBranch::Unseen);
                let middle = if is_middle { low + 2 } else { place };
                match lanes.has(split.feature) {
                    true => {
                        let lane = lanes.of_feature(split.feature) as u32;
                        RouteStep { lane, code: split.code, missing, low, apart, middle }
                    }
                    // The feature is constant, so all rows have code 0 and go left.
                    false => RouteStep { lane: 0, code: u32::MAX, missing, low, apart: u32::MAX, middle },
                }
            }
        };
        let steps: Vec<RouteStep> = (0..).zip(&tree.nodes).map(step).collect();
        let is_binary = steps.iter().all(|step| step.apart == u32::MAX);
        ForestRouter { steps, is_binary, tree, lanes }
    }

    /// Calls `each` with every row and its prediction, in order. All rows must be in one partition.
    pub(super) fn each_value(&self, view: &PartitionView<'_>, rows: &[u32], mut each: impl FnMut(u32, f64)) {
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
        match self.is_binary {
            true => self.walk_by::<T, true>(codes, places),
            false => self.walk_by::<T, false>(codes, places),
        }
    }

    /// Moves rows from the root to where they end. `BINARY` says whether missing values always go left or right.
    fn walk_by<T: Copy + Into<u32>, const BINARY: bool>(&self, codes: &[T], places: &mut [u32]) {
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
                    let to = if !BINARY && code == step.apart { step.middle } else { to };
                    moved |= to != *place;
                    *place = to;
                }
            }
        }
    }
}
