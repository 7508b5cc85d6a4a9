//! Parses RankLib's text format into its own terms, for imports and for checks of exports.

use super::{ASCENT, FORESTS, LAMBDAMART, REGRESSION};
use crate::exchange::json_text::MOST_LEVELS;
use crate::exchange::markup::{Markup, attribute, markup};

/// A model in RankLib's terms. Features are numbered from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RanklibModel {
    /// Trees: the mean of ensembles, each a weighted sum.
    Trees(Vec<Vec<WeightedTree>>),
    /// A constant and the weights of features. Features may repeat.
    Linear(f64, Vec<(u32, f64)>),
    /// Weights of tests: a feature, a threshold and the weight that is added if the value is above it.
    Stumps(Vec<(u32, f32, f64)>),
}

/// A tree and its weight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WeightedTree {
    pub weight: f64,
    /// The nodes; the root is the first.
    pub nodes: Vec<RanklibNode>,
}

/// A node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RanklibNode {
    Leaf(f32),
    Split { feature: u32, threshold: f32, left: usize, right: usize },
}

/// Returns the name of the ranker: the first line.
pub(super) fn ranker(text: &str) -> Option<&str> {
    Some(text.lines().next()?.strip_prefix("## ")?.trim())
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<RanklibModel, String> {
    let ranker = ranker(text).ok_or("the first line does not name a ranker")?;
    let lines = text.lines().filter(|line| !line.starts_with("##") && !line.trim().is_empty());
    match ranker {
        LAMBDAMART | "MART" | FORESTS => {
            // Comments are dropped, so that they are not read as text between tags.
            let body: Vec<&str> = lines.collect();
            let bags = ensembles(&body.join("\n"))?;
            if ranker != FORESTS && bags.len() != 1 {
                return Err(format!("there are {} ensembles instead of one", bags.len()));
            }
            Ok(RanklibModel::Trees(bags))
        }
        ASCENT | "AdaRank" | REGRESSION => {
            let mut constant = 0.0;
            let mut weights = Vec::new();
            for pair in lines.flat_map(str::split_whitespace) {
                let (feature, weight) = pair.split_once(':').ok_or_else(|| format!("{pair:?} is no pair"))?;
                let weight: f64 = number(weight)?;
                match feature_id(feature)? {
                    0 => constant += weight,
                    feature => weights.push((feature, weight)),
                }
            }
            match weights.is_empty() {
                true => Err("there are no weights".to_owned()),
                false => Ok(RanklibModel::Linear(constant, weights)),
            }
        }
        "RankBoost" => {
            let stump = |triple: &str| {
                let mut parts = triple.split(':');
                let (Some(feature), Some(threshold), Some(weight), None) =
                    (parts.next(), parts.next(), parts.next(), parts.next())
                else {
                    return Err(format!("{triple:?} is not feature:threshold:weight"));
                };
                let feature = feature_id(feature)?;
                if feature == 0 {
                    return Err("features are numbered from 1".to_owned());
                }
                Ok((feature, number::<f64>(threshold)? as f32, number(weight)?))
            };
            let stumps: Vec<_> =
                lines.flat_map(str::split_whitespace).map(stump).collect::<Result<_, _>>()?;
            match stumps.is_empty() {
                true => Err("there are no weak rankers".to_owned()),
                false => Ok(RanklibModel::Stumps(stumps)),
            }
        }
        "RankNet" | "LambdaRank" | "ListNet" => {
            Err(format!("{ranker} is a neural network, which planetree cannot import"))
        }
        other => Err(format!("unknown ranker {other:?}")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{:?} is not a number", text.trim()))
}

fn feature_id(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("{:?} is not a feature number", text.trim()))
}

/// A split whose end tag was not read yet.
struct OpenSplit {
    index: usize,
    feature: Option<u32>,
    threshold: Option<f32>,
    output: Option<f32>,
    children: Vec<usize>,
}

impl OpenSplit {
    fn node(&self) -> Result<RanklibNode, String> {
        match (self.feature, self.threshold, self.output, self.children.as_slice()) {
            (Some(feature @ 1..), Some(threshold), None, [left, right]) => {
                Ok(RanklibNode::Split { feature, threshold, left: *left, right: *right })
            }
            (None, None, Some(output), []) => Ok(RanklibNode::Leaf(output)),
            _ => Err("a split has neither feature, threshold and two children nor an output".to_owned()),
        }
    }
}

/// Parses the ensembles of a file.
fn ensembles(text: &str) -> Result<Vec<Vec<WeightedTree>>, String> {
    let mut bags: Vec<Vec<WeightedTree>> = Vec::new();
    let mut in_ensemble = false;
    let mut tree: Option<WeightedTree> = None;
    let mut open: Vec<OpenSplit> = Vec::new();
    let mut field = "";
    for piece in markup(text) {
        match piece? {
            Markup::Start { name: "ensemble", .. } if !in_ensemble => {
                in_ensemble = true;
                bags.push(Vec::new());
            }
            Markup::End("ensemble") if in_ensemble && tree.is_none() => in_ensemble = false,
            Markup::Start { name: "tree", attributes, .. } if in_ensemble && tree.is_none() => {
                let weight = attribute(attributes, "weight").ok_or("a tree has no weight")?;
                tree = Some(WeightedTree { weight: number(&weight)?, nodes: Vec::new() });
            }
            Markup::End("tree") if open.is_empty() => {
                let tree = tree.take().filter(|tree| !tree.nodes.is_empty()).ok_or("a tree has no nodes")?;
                bags.last_mut().ok_or("a tree is outside of an ensemble")?.push(tree);
            }
            Markup::Start { name: "split", .. } => {
                let nodes = &mut tree.as_mut().ok_or("a split is outside of a tree")?.nodes;
                if let Some(parent) = open.last_mut() {
                    parent.children.push(nodes.len());
                } else if !nodes.is_empty() {
                    return Err("a tree has two roots".to_owned());
                }
                if open.len() == MOST_LEVELS {
                    return Err(format!("more than {MOST_LEVELS} splits are nested"));
                }
                open.push(OpenSplit {
                    index: nodes.len(),
                    feature: None,
                    threshold: None,
                    output: None,
                    children: Vec::new(),
                });
                nodes.push(RanklibNode::Leaf(0.0));
            }
            Markup::End("split") => {
                let split = open.pop().ok_or("a split ends that did not begin")?;
                let nodes = &mut tree.as_mut().ok_or("a split is outside of a tree")?.nodes;
                nodes[split.index] = split.node()?;
            }
            Markup::Start { name: name @ ("feature" | "threshold" | "output"), .. } => field = name,
            Markup::End("feature" | "threshold" | "output") => field = "",
            Markup::Text(text) => {
                let split = open.last_mut().ok_or_else(|| format!("unexpected text {text:?}"))?;
                match field {
                    "feature" => split.feature = Some(feature_id(text)?),
                    "threshold" => split.threshold = Some(number(text)?),
                    "output" => split.output = Some(number(text)?),
                    _ => return Err(format!("unexpected text {text:?}")),
                }
            }
            other => return Err(format!("unexpected {other:?}")),
        }
    }
    match in_ensemble || tree.is_some() || bags.is_empty() {
        true => Err("the text ends within an ensemble".to_owned()),
        false => Ok(bags),
    }
}
