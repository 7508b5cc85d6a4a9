//! Imports models of RankLib.

use super::parse::{RanklibModel, RanklibNode, WeightedTree, parse, ranker};
use crate::exchange::assemble::{ForeignNode, ForeignSplit, assemble};
use crate::exchange::names::{NameSource, check_feature_count};
use crate::exchange::{ImportError, ImportedModel, imported_part};
use crate::model::{Combine, FeatureNormalisation, LinearFunction, LinearTerm, Part, Tree, TreeEnsemble};
use std::collections::BTreeMap;

/// Returns whether a file looks like RankLib's text format.
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    bytes.starts_with(b"## ")
}

/// Reads a model.
pub(crate) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the file is not UTF-8 text"))?;
    let parsed = parse(text).map_err(|problem| match problem.contains("ends within") {
        true => ImportError::truncated(problem),
        false => invalid(&problem),
    })?;
    let count = feature_count(&parsed, names)?;
    let mut features = names.features(count, None)?;
    // An absent feature is 0.
    features.iter_mut().for_each(|feature| feature.fill = Some(0.0));
    let (part, rounds) = match parsed {
        RanklibModel::Trees(bags) => trees_part(bags)?,
        RanklibModel::Linear(constant, weights) => (linear_part(constant, weights), 1),
        RanklibModel::Stumps(stumps) => {
            let rounds = stumps.len();
            let trees = stumps.into_iter().map(stump).collect::<Result<_, _>>()?;
            (trees_of(Combine::Sum, trees), rounds)
        }
    };
    let configuration = format!("# imported from RankLib ({})\n", ranker(text).unwrap_or_default());
    let model = imported_part(part, features, rounds as u32, &configuration);
    Ok(ImportedModel { model, notes: Vec::new(), losses: Vec::new(), frame: None })
}

/// Returns the number of features: the names that are given, or the largest number of a feature.
fn feature_count(model: &RanklibModel, names: &NameSource) -> Result<usize, ImportError> {
    let largest = match model {
        RanklibModel::Trees(bags) => {
            let nodes = bags.iter().flatten().flat_map(|tree| &tree.nodes);
            let feature = |node: &RanklibNode| match node {
                RanklibNode::Split { feature, .. } => Some(*feature),
                RanklibNode::Leaf(_) => None,
            };
            nodes.filter_map(feature).max()
        }
        RanklibModel::Linear(_, weights) => weights.iter().map(|(feature, _)| *feature).max(),
        RanklibModel::Stumps(stumps) => stumps.iter().map(|(feature, ..)| *feature).max(),
    };
    let largest = largest.unwrap_or(0) as usize;
    match names {
        // A file does not tell how many features there are, only which ones it uses.
        NameSource::Given(given) if given.len() >= largest => Ok(given.len()),
        _ => check_feature_count(largest).map_err(|problem| invalid(&problem)).map(|()| largest),
    }
}

fn trees_part(bags: Vec<Vec<WeightedTree>>) -> Result<(Part, usize), ImportError> {
    let is_mean = bags.len() > 1 && bags.iter().all(|bag| bag.len() == 1);
    let scale = if is_mean { 1.0 } else { 1.0 / bags.len() as f64 };
    let mut trees = Vec::new();
    for tree in bags.into_iter().flatten() {
        let number = trees.len();
        let tree = tree_of(&tree, scale).map_err(|problem| invalid(&problem).in_tree(number))?;
        trees.push(tree);
    }
    let rounds = trees.len();
    Ok((trees_of(if is_mean { Combine::Mean } else { Combine::Sum }, trees), rounds))
}

fn trees_of(combine: Combine, trees: Vec<Tree>) -> Part {
    Part::trees(TreeEnsemble::new(combine, 0.0, None, trees))
}

fn tree_of(tree: &WeightedTree, scale: f64) -> Result<Tree, String> {
    let find = |number: i64| {
        let node = match tree.nodes.get(number as usize) {
            None => return Err(format!("node {number} does not exist")),
            Some(RanklibNode::Leaf(value)) => {
                let value = Some(f64::from(*value) * tree.weight * scale);
                return Ok(ForeignNode { split: None, value, cover: 0.0 });
            }
            Some(RanklibNode::Split { feature, threshold, left, right }) => ForeignSplit {
                feature: *feature - 1,
                threshold: *threshold,
                missing_left: 0.0 <= *threshold,
                left: *left as i64,
                right: *right as i64,
                gain: 0.0,
            },
        };
        Ok(ForeignNode { split: Some(node), value: None, cover: 0.0 })
    };
    assemble(0, tree.nodes.len(), &find)
}

/// Turns a weak ranker of RankBoost into a tree: the weight is added if the value is above the threshold.
fn stump((feature, threshold, weight): (u32, f32, f64)) -> Result<Tree, ImportError> {
    let find = |number: i64| {
        let split = ForeignSplit {
            feature: feature - 1,
            threshold,
            missing_left: 0.0 <= threshold,
            left: 1,
            right: 2,
            gain: 0.0,
        };
        Ok(match number {
            0 => ForeignNode { split: Some(split), value: None, cover: 0.0 },
            1 => ForeignNode { split: None, value: Some(0.0), cover: 0.0 },
            _ => ForeignNode { split: None, value: Some(weight), cover: 0.0 },
        })
    };
    assemble(0, 3, &find).map_err(|problem| invalid(&problem))
}

fn linear_part(constant: f64, weights: Vec<(u32, f64)>) -> Part {
    // AdaRank may choose a feature several times.
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    weights.into_iter().for_each(|(feature, weight)| *sums.entry(feature - 1).or_default() += weight);
    let term = |(feature, weight): (u32, f64)| LinearTerm {
        feature,
        weight,
        centre: 0.0,
        spread: 1.0,
        mean: 0.0,
        gain: weight.abs(),
        cover: 0.0,
    };
    let terms = sums.into_iter().map(term).collect();
    Part::linear(LinearFunction::new(constant, FeatureNormalisation::None, terms))
}

fn invalid(problem: &str) -> ImportError {
    ImportError::new(
        format!("not a RankLib model: {problem}"),
        "use a file written by RankLib's -save with trees or weights, or pass another --format",
    )
}
