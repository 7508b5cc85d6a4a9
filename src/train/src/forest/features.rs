//! Which features a node looks at: drawn one after the other without replacement, by seed, tree and the node's
//! path from the root. No order of growing nodes and no numbering changes a draw.

use crate::bins::Layout;
use crate::config::{Candidates, FeatureCount, Parameters};
use planetree_base::random::{Stream, mix};

const OF_TREE: u64 = 0x7365_7254;
const OF_NODE: u64 = 0x7364_6F4E;

/// A node by the way that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path(u64);

impl Path {
    /// The root.
    pub const ROOT: Path = Path(1);

    /// The left child.
    pub fn left(self) -> Path {
        Path(mix(self.0 << 1))
    }

    /// The right child.
    pub fn right(self) -> Path {
        Path(mix(self.0 << 1 | 1))
    }
}

/// A feature that a node looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// Which one.
    pub feature: u32,
    /// Where a random cut is, from 0 at the least value up to 1 at the greatest.
    pub cut: f64,
    /// Whether a random cut sends missing values to the left.
    pub missing_left: bool,
}

/// The features of one tree, from which its nodes draw, one node at a time.
#[derive(Debug, Clone)]
pub struct TreeFeatures {
    /// Those that the tree may use, always in this order between two nodes.
    order: Vec<u32>,
    /// How many a node looks at.
    pub per_node: usize,
    /// Whether cuts are drawn, too.
    random_cuts: bool,
    key: [u64; 2],
    /// The node that draws.
    stream: Stream,
    swaps: Vec<u32>,
}

impl TreeFeatures {
    /// Draws the features of a tree.
    pub fn draw(parameters: &Parameters, layout: &Layout, tree: u64) -> Self {
        let varying = layout.places.iter().enumerate().filter(|(_, place)| place.is_some());
        let mut order: Vec<u32> = varying.map(|(feature, _)| feature as u32).collect();
        let count = FeatureCount::Fraction(parameters.feature_fraction).of(order.len());
        let mut stream = Stream::new(&[parameters.seed, OF_TREE, tree]);
        if count < order.len() {
            for place in 0..count {
                let other = draw_from(&mut stream, place, order.len());
                order.swap(place, other);
            }
            order.truncate(count);
            order.sort_unstable();
        }
        TreeFeatures {
            per_node: parameters.features_per_node.of(layout.places.len()).min(order.len()),
            random_cuts: parameters.candidates == Candidates::Random,
            key: [parameters.seed, tree],
            order,
            stream,
            swaps: Vec::new(),
        }
    }

    /// Starts the draws of a node; they are the same each time.
    pub fn start(&mut self, path: Path) {
        while let Some(other) = self.swaps.pop() {
            self.order.swap(self.swaps.len(), other as usize);
        }
        self.stream = Stream::new(&[self.key[0], OF_NODE, self.key[1], path.0]);
    }

    /// How many features the node has drawn.
    pub fn drawn(&self) -> usize {
        self.swaps.len()
    }

    /// The next feature of the node; `None` after the last one.
    #[inline]
    pub fn next(&mut self) -> Option<Drawn> {
        let place = self.swaps.len();
        if place == self.order.len() {
            return None;
        }
        let other = draw_from(&mut self.stream, place, self.order.len());
        self.order.swap(place, other);
        self.swaps.push(other as u32);
        let (cut, missing_left) = match self.random_cuts {
            true => (self.stream.uniform(), self.stream.bits() & 1 == 1),
            false => (0.0, false),
        };
        Some(Drawn { feature: self.order[place], cut, missing_left })
    }
}

#[inline]
fn draw_from(stream: &mut Stream, place: usize, count: usize) -> usize {
    place + (stream.uniform() * (count - place) as f64) as usize
}
