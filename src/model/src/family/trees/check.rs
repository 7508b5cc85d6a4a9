//! Validates trees: every node but the root has one parent, which precedes it, so prediction always terminates.

use super::tree::{Branch, Split, Tree};

impl Tree {
    /// Returns the first invalid node and a description of its problem, or `None` if the tree is valid.
    pub(crate) fn fault(&self, features: usize) -> Option<(usize, String)> {
        if self.nodes.is_empty() {
            return Some((0, "the tree has no nodes".to_owned()));
        }
        // The depth of each node, derived from the depth of its parent.
        let mut depths: Vec<Option<u32>> = vec![None; self.nodes.len()];
        depths[0] = Some(0);
        for (number, node) in self.nodes.iter().enumerate() {
            let values = [("value", node.value), ("cover", node.cover)];
            if let Some((name, value)) = values.iter().find(|(_, value)| !value.is_finite()) {
                return Some((number, format!("the {name} is {value}, but it must be finite")));
            }
            // Parents come before their children, so the depth is known by now.
            match depths[number] {
                None => return Some((number, "the node has no parent".to_owned())),
                Some(depth) if depth != node.depth => {
                    return Some((number, format!("the depth is {}, expected {depth}", node.depth)));
                }
                Some(_) => {}
            }
            let Some(split) = &node.split else { continue };
            if let Some(problem) = split.fault(features) {
                return Some((number, problem));
            }
            for child in split.children() {
                if child as usize <= number {
                    let problem = format!("invalid child: {child} does not come after its parent (a cycle)");
                    return Some((number, problem));
                }
                match depths.get_mut(child as usize) {
                    None => return Some((number, format!("invalid child: {child} does not exist"))),
                    Some(Some(_)) => return Some((number, format!("child {child} has two parents"))),
                    Some(depth) => *depth = Some(node.depth + 1),
                }
            }
        }
        None
    }
}

impl Split {
    /// Returns the indices of the child nodes: left, right and, if present, middle.
    pub fn children(&self) -> impl Iterator<Item = u32> {
        [Some(self.left), Some(self.right), self.middle].into_iter().flatten()
    }

    fn fault(&self, features: usize) -> Option<String> {
        if self.feature as usize >= features {
            return Some(format!("unknown feature {}: there are {features} features", self.feature));
        }
        if !self.threshold.is_finite() {
            return Some(format!("the threshold is {}, but it must be finite", self.threshold));
        }
        if !self.gain.is_finite() {
            return Some(format!("the gain is {}, but it must be finite", self.gain));
        }
        if self.middle.is_some() && self.missing != Branch::Middle {
            return Some("a middle child is not allowed unless missing values go there".to_owned());
        }
        None
    }
}
