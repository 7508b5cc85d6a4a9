//! Trees of many leaves, from the root down: some rows take one step each, then the next, so that while
//! one waits for memory the others go on.

use super::layout::Place;
use super::planes::{BLOCK, Plane, Test};
use std::ops::Range;

/// Rows that walk together.
const TOGETHER: usize = 16;

/// Above this code there is none: whoever is tested stays.
const NEVER: i8 = i8::MAX;

#[derive(Debug)]
struct Step {
    test: Test,
    /// Where to go on after a test that fails; its own place for a leaf.
    low: u32,
}

/// A tree among [`WalkTrees`].
#[derive(Debug)]
pub struct WalkTree(Range<usize>);

/// Trees of any size, side by side.
#[derive(Debug, Default)]
pub struct WalkTrees {
    steps: Vec<Step>,
    /// The value of every place; of no meaning for forks.
    values: Vec<f64>,
}

impl WalkTrees {
    /// Whether there is no tree.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a tree.
    pub fn add(&mut self, places: &[Place]) -> WalkTree {
        let start = self.steps.len();
        for (place, what) in places.iter().enumerate() {
            let (step, value) = match *what {
                Place::Leaf(value) => {
                    (Step { test: Test { plane: 0, code: NEVER }, low: place as u32 }, value)
                }
                Place::Fork(test, low) => (Step { test, low }, 0.0),
            };
            self.steps.push(step);
            self.values.push(value);
        }
        WalkTree(start..self.steps.len())
    }

    /// Adds a tree's values to the sums of a block's rows.
    #[inline(always)]
    pub fn add_values(&self, tree: &WalkTree, planes: &[Plane], sums: &mut [f64; BLOCK]) {
        let (steps, values) = (&self.steps[tree.0.clone()], &self.values[tree.0.clone()]);
        for (group, sums) in sums.as_chunks_mut::<TOGETHER>().0.iter_mut().enumerate() {
            let mut places = [0; TOGETHER];
            let mut moved = steps.len() > 1;
            while moved {
                moved = false;
                for (lane, place) in places.iter_mut().enumerate() {
                    let Step { test, low } = &steps[*place as usize];
                    let row = (group * TOGETHER + lane) % BLOCK;
                    let to = low + u32::from(planes[test.plane as usize][row] > test.code);
                    moved |= to != *place;
                    *place = to;
                }
            }
            for (sum, place) in sums.iter_mut().zip(places) {
                *sum += values[place as usize];
            }
        }
    }
}
