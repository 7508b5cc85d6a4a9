//! Selects trees for the tree browser of the page, as many as fit within the size limit, and stores their nodes as
//! columns.

use super::chart::rounded;
use super::html::shortened;
use planetree_model::model::{Branch, Combine, FeatureNormalisation, Model, Tree, TreeEnsemble};
use serde::Serialize;

/// The trees of a model that the page contains. A model may be a sum of several parts. Then these are the trees of
/// one part.
#[derive(Debug, Serialize)]
pub(crate) struct ModelTrees {
    /// The name of the model, and of the part if the model has several.
    pub name: String,
    /// Total number of trees in the part.
    pub all: usize,
    /// The names of the features that splits use. Nodes refer to them by index.
    features: Vec<String>,
    /// The selected trees.
    pub trees: Vec<ShownTree>,
    /// Index of the model.
    pub model: usize,
    /// Factor of each tree's value if the selected trees are the whole model, so that a script can compute scores.
    weight: Option<f64>,
    /// The values that replace missing values of the features.
    fill: Vec<Option<f32>>,
    /// Whether thresholds apply to features that are normalised over the documents of a query.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    normalised: bool,
}

/// The nodes of one tree as columns. Children are given by the indices of their nodes, or -1 if a node has no such
/// child.
#[derive(Debug, Serialize)]
pub(crate) struct ShownTree {
    /// The index of the tree in the part, starting at 0.
    pub number: usize,
    feature: Vec<i64>,
    threshold: Vec<f32>,
    /// The branch that missing values take: 0 for left, 1 for right, 2 for middle.
    missing: Vec<u8>,
    left: Vec<i64>,
    right: Vec<i64>,
    middle: Vec<i64>,
    value: Vec<f64>,
    gain: Vec<f64>,
    cover: Vec<f64>,
}

impl ModelTrees {
    /// Selects trees with at most `nodes` nodes in total: the first tree, the last tree and trees at regular
    /// intervals between them. If only one tree fits, it is the first. If not even the first tree fits, no tree is
    /// selected.
    pub(crate) fn of(name: &str, model: &Model, ensemble: &TreeEnsemble, nodes: usize) -> Self {
        let trees = &ensemble.trees;
        let mut asked: Vec<u32> = ensemble.splits().map(|split| split.feature).collect();
        asked.sort_unstable();
        asked.dedup();
        let chosen = chosen(trees, nodes);
        let normalised = ensemble.normalisation != FeatureNormalisation::None;
        let is_whole = chosen.len() == trees.len()
            && model.start_scores.is_none()
            && model.only_trees().is_some_and(|only| only.base_feature.is_none())
            && ensemble.combine != Combine::Wins
            && !normalised;
        ModelTrees {
            model: 0,
            weight: is_whole.then(|| ensemble.tree_weight()),
            fill: asked.iter().map(|place| model.features[*place as usize].fill).collect(),
            normalised,
            name: shortened(name),
            all: trees.len(),
            trees: chosen.iter().map(|number| shown(*number, &trees[*number], &asked)).collect(),
            features: asked.iter().map(|place| shortened(&model.features[*place as usize].name)).collect(),
        }
    }
}

/// Returns the indices of as many trees as fit within `nodes` nodes, at regular intervals.
fn chosen(trees: &[Tree], nodes: usize) -> Vec<usize> {
    let evenly = |count: usize| -> Vec<usize> {
        let last = trees.len().saturating_sub(1);
        (0..count).map(|place| if count == 1 { 0 } else { place * last / (count - 1) }).collect()
    };
    let fits =
        |places: &[usize]| places.iter().map(|place| trees[*place].nodes.len()).sum::<usize>() <= nodes;
    let mut count = trees.len();
    while count > 0 && !fits(&evenly(count)) {
        count = if count > 64 { count * 9 / 10 } else { count - 1 };
    }
    evenly(count)
}

fn shown(number: usize, tree: &Tree, asked: &[u32]) -> ShownTree {
    let splits = || tree.nodes.iter().map(|node| node.split.as_ref());
    let child = |of: fn(&planetree_model::model::Split) -> Option<u32>| {
        splits().map(|split| split.and_then(of).map_or(-1, i64::from)).collect()
    };
    ShownTree {
        number,
        feature: splits()
            .map(|split| {
                split.map_or(-1, |split| asked.partition_point(|place| *place < split.feature) as i64)
            })
            .collect(),
        threshold: splits().map(|split| split.map_or(0.0, |split| split.threshold)).collect(),
        missing: splits()
            .map(|split| match split.map_or(Branch::Right, |split| split.missing) {
                Branch::Left => 0,
                Branch::Right => 1,
                Branch::Middle => 2,
            })
            .collect(),
        left: child(|split| Some(split.left)),
        right: child(|split| Some(split.right)),
        middle: child(|split| split.middle),
        value: tree.nodes.iter().map(|node| rounded(node.value)).collect(),
        gain: splits().map(|split| split.map_or(0.0, |split| rounded(split.gain))).collect(),
        cover: tree.nodes.iter().map(|node| rounded(node.cover)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_model::model::example;

    #[test]
    fn nodes_keep_their_questions() {
        let model = example();
        let forest = ModelTrees::of("m", &model, model.only_trees().unwrap(), 1000);
        assert_eq!((forest.trees.len(), forest.all), (3, 3));
        for (shown, tree) in forest.trees.iter().zip(model.trees()) {
            for (node, real) in tree.nodes.iter().enumerate() {
                match &real.split {
                    None => assert_eq!((shown.feature[node], shown.left[node]), (-1, -1)),
                    Some(split) => {
                        let name = &forest.features[shown.feature[node] as usize];
                        assert_eq!(*name, model.features[split.feature as usize].name);
                        assert_eq!(shown.threshold[node], split.threshold);
                        assert_eq!(shown.right[node], i64::from(split.right));
                    }
                }
            }
        }
    }

    #[test]
    fn as_many_trees_as_there_is_room_for() {
        let mut model = example();
        let trees = &mut model.only_trees_mut().unwrap().trees;
        *trees = vec![trees[0].clone(); 500];
        let nodes = trees[0].nodes.len();
        let numbers = |room: usize| -> Vec<usize> {
            let ensemble = model.only_trees().unwrap();
            ModelTrees::of("m", &model, ensemble, room).trees.iter().map(|tree| tree.number).collect()
        };
        assert_eq!(numbers(nodes * 500).len(), 500);
        let some = numbers(nodes * 100);
        assert!((90..=100).contains(&some.len()), "{}", some.len());
        assert_eq!((some[0], some[some.len() - 1]), (0, 499));
        assert_eq!(numbers(nodes), [0]);
        assert!(numbers(0).is_empty());
    }
}
