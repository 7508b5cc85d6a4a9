//! Feature sampling of nodes: one feature after the other without replacement, keyed by seed, tree and the path of the
//! node from the root, so that the order of growing nodes does not matter.

use crate::bins::BinLayout;
use crate::config::{FeatureCount, ForestCandidates, ForestSettings};
use planetree_base::random::{Stream, mix};

const OF_TREE: u64 = 0x7365_7254;
const OF_NODE: u64 = 0x7364_6F4E;

/// Hash of the path from the root to a node.
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

/// A feature sampled for a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// The feature.
    pub feature: u32,
    /// Position of a random cut, from 0 at the minimum to 1 at the maximum.
    pub cut: f64,
    /// Whether a random cut sends missing values left.
    pub missing_left: bool,
}

/// The features of one tree, from which its nodes sample, one node at a time.
#[derive(Debug, Clone)]
pub struct TreeFeatures {
    /// The features of the tree, in this order between nodes.
    order: Vec<u32>,
    /// Number of features per node.
    pub per_node: usize,
    /// Whether cuts are random, too.
    random_cuts: bool,
    key: [u64; 2],
    /// Random numbers of the current node.
    stream: Stream,
    swaps: Vec<u32>,
}

impl TreeFeatures {
    /// Samples the features of a tree.
    pub fn draw(parameters: &ForestSettings, layout: &BinLayout, tree: u64) -> Self {
        let varying = layout.places.iter().enumerate().filter(|(_, place)| place.is_some());
        let mut order: Vec<u32> = varying.map(|(feature, _)| feature as u32).collect();
        let count = FeatureCount::Fraction(parameters.learner.tree.feature_fraction).of(order.len());
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
            per_node: parameters.learner.tree.features_per_node.of(layout.places.len()).min(order.len()),
            random_cuts: matches!(parameters.learner.candidates, ForestCandidates::Random { .. }),
            key: [parameters.seed, tree],
            order,
            stream,
            swaps: Vec::new(),
        }
    }

    /// Starts the sample of a node, which is the same each time.
    pub fn start(&mut self, path: Path) {
        while let Some(other) = self.swaps.pop() {
            self.order.swap(self.swaps.len(), other as usize);
        }
        self.stream = Stream::new(&[self.key[0], OF_NODE, self.key[1], path.0]);
    }

    /// Number of features sampled for the node so far.
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
