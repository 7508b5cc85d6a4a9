//! Samples the features of each tree and of each node. Samples depend only on the seed, the tree and the node.

use super::rows::NodeId;
use crate::bins::BinLayout;
use crate::config::{FeatureCount, TreeParameters};
use planetree_base::random::Stream;

/// Features sampled for one tree.
pub struct FeatureChoice {
    /// Features of the tree, in ascending order.
    of_tree: Vec<u32>,
    per_node: FeatureCount,
    features: usize,
    key: [u64; 2],
}

const OF_TREE: u64 = 0x7265_6554;
const OF_NODE: u64 = 0x6564_6F4E;

impl FeatureChoice {
    /// Samples the features of a tree.
    pub fn draw(parameters: &TreeParameters, seed: u64, layout: &BinLayout, tree: u64) -> Self {
        let all: Vec<u32> =
            layout.places.iter().enumerate().filter(|(_, p)| p.is_some()).map(|(f, _)| f as u32).collect();
        let mut stream = Stream::new(&[seed, OF_TREE, tree]);
        let count = FeatureCount::Fraction(parameters.feature_fraction).of(all.len());
        FeatureChoice {
            of_tree: draw(all, count, &mut stream),
            per_node: parameters.features_per_node,
            features: layout.places.len(),
            key: [seed, tree],
        }
    }

    /// Returns, for every feature, whether the node may split on it.
    pub fn of_node(&self, node: NodeId) -> Vec<bool> {
        let mut allowed = vec![false; self.features];
        let count = self.per_node.of(self.features).min(self.of_tree.len());
        if count >= self.of_tree.len() {
            self.of_tree.iter().for_each(|feature| allowed[*feature as usize] = true);
        } else {
            let mut stream = Stream::new(&[self.key[0], OF_NODE, self.key[1], node as u64]);
            let drawn = draw(self.of_tree.clone(), count, &mut stream);
            drawn.iter().for_each(|feature| allowed[*feature as usize] = true);
        }
        allowed
    }

    /// Returns the groups that contain features of the tree.
    pub fn groups(&self, layout: &BinLayout) -> Vec<usize> {
        let mut groups: Vec<usize> = self
            .of_tree
            .iter()
            .filter_map(|feature| layout.places[*feature as usize])
            .map(|p| p.group)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Samples `count` features without replacement. Returns them in ascending order.
fn draw(mut features: Vec<u32>, count: usize, stream: &mut Stream) -> Vec<u32> {
    if count >= features.len() {
        return features;
    }
    for place in 0..count {
        let other = place + (stream.uniform() * (features.len() - place) as f64) as usize;
        features.swap(place, other);
    }
    features.truncate(count);
    features.sort_unstable();
    features
}
