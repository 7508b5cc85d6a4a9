//! Samples the features that are considered for splitting a node, one at a time and without replacement. The random
//! numbers depend only on the seed, the tree and the node's path from the root, so the order in which nodes are grown
//! does not matter.

use crate::bins::BinLayout;
use crate::config::{FeatureCount, ForestCandidates, ForestSettings};
use planetree_base::random::{Stream, mix};
use std::sync::Arc;

const OF_TREE: u64 = 0x7365_7254;
const OF_NODE: u64 = 0x7364_6F4E;
const OF_MIDDLE: u64 = 0x656C_6464_696D_0000;

/// Hash of the path from the root to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path(u64);

impl Path {
    /// Path of the root.
    pub(super) const ROOT: Path = Path(1);

    /// Returns the hash as a key of random numbers.
    pub(super) fn key(self) -> u64 {
        self.0
    }

    /// Returns the path of the left child.
    pub(super) fn left(self) -> Path {
        Path(mix(self.0 << 1))
    }

    /// Returns the path of the right child.
    pub(super) fn right(self) -> Path {
        Path(mix(self.0 << 1 | 1))
    }

    /// Returns the path of the child for missing values.
    pub(super) fn middle(self) -> Path {
        Path(mix(self.0 << 1 ^ OF_MIDDLE))
    }
}

/// A feature sampled for a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drawn {
    /// Index of the feature.
    pub feature: u32,
    /// Relative position of a random cut: 0 is the minimum of the node's values, 1 the maximum.
    pub cut: f64,
    /// Whether a random cut sends missing values left.
    pub missing_left: bool,
    /// How much higher the score of a cut must be than that of a free feature.
    pub penalty: f64,
}

/// The features of one tree, from which the features of each node are sampled. Features are sampled for one node at a
/// time.
#[derive(Debug, Clone)]
pub(super) struct TreeFeatures {
    /// Features of the tree. Sampling permutes them, and the order is restored between nodes.
    order: Vec<u32>,
    /// Number of features per node.
    pub per_node: usize,
    /// Whether more features are sampled if all features of a node are constant in it.
    pub redraws: bool,
    /// Whether the positions of cuts are also random.
    random_cuts: bool,
    /// Penalty of every feature; `None` if all are free.
    penalties: Option<Arc<[f64]>>,
    key: [u64; 2],
    /// Random numbers for the current node.
    stream: Stream,
    swaps: Vec<u32>,
}

impl TreeFeatures {
    /// Samples the features of a tree.
    pub(super) fn draw(parameters: &ForestSettings, layout: &BinLayout, tree: u64) -> Self {
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
            redraws: parameters.learner.redraw_features,
            random_cuts: matches!(parameters.learner.candidates, ForestCandidates::Random { .. }),
            penalties: None,
            key: [parameters.seed, tree],
            order,
            stream,
            swaps: Vec::new(),
        }
    }

    /// Sets the penalties of all features, in units of the criterion's scores.
    pub(super) fn with_penalties(self, penalties: Option<Arc<[f64]>>) -> Self {
        TreeFeatures { penalties, ..self }
    }

    /// Starts sampling for a node. The same node always gets the same features.
    pub(super) fn start(&mut self, path: Path) {
        while let Some(other) = self.swaps.pop() {
            self.order.swap(self.swaps.len(), other as usize);
        }
        self.stream = Stream::new(&[self.key[0], OF_NODE, self.key[1], path.0]);
    }

    /// Returns how many features have been sampled for the node so far.
    pub(super) fn drawn(&self) -> usize {
        self.swaps.len()
    }

    /// Returns the next feature of the node; `None` if there are no more.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Drawn> {
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
        let feature = self.order[place];
        let penalty = self.penalties.as_ref().map_or(0.0, |penalties| penalties[feature as usize]);
        Some(Drawn { feature, cut, missing_left, penalty })
    }
}

#[inline]
fn draw_from(stream: &mut Stream, place: usize, count: usize) -> usize {
    place + (stream.uniform() * (count - place) as f64) as usize
}
