//! Reads the tree ensemble of an ONNX file, for imports and for checks of exports.

use super::proto::{Wire, fields, push_floats, push_ints};
use super::{ENSEMBLE, REGRESSOR, TYPE_DOUBLE, TYPE_FLOAT, TYPE_UINT8};
use std::collections::HashMap;

/// A tree ensemble. Splits with `<` have the next smaller 32-bit float as a threshold only after conversion.
#[derive(Debug)]
pub(super) struct OnnxTrees {
    pub is_mean: bool,
    pub base_score: f64,
    pub trees: Vec<Vec<OnnxNode>>,
    /// Whether numbers are 64-bit floats.
    pub is_double: bool,
    /// Number of columns of the input, if the file has it.
    pub columns: Option<usize>,
    /// Names of the features, if planetree wrote the file.
    pub names: Option<Vec<String>>,
    /// Operators besides the ensemble.
    pub others: Vec<String>,
}

/// A node of a tree; the root is the first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OnnxNode {
    Leaf(f64),
    Split { feature: u32, threshold: f64, is_strict: bool, missing_left: bool, left: usize, right: usize },
}

/// The attributes of an operator.
#[derive(Debug, Default)]
struct Attributes<'a> {
    ints: HashMap<&'a str, Vec<i64>>,
    numbers: HashMap<&'a str, Vec<f64>>,
    texts: HashMap<&'a str, Vec<&'a str>>,
    is_double: bool,
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a name is not UTF-8".to_owned())
}

fn message(value: Wire<'_>) -> Result<&[u8], String> {
    match value {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err("a message is a number".to_owned()),
    }
}

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<OnnxTrees, String> {
    let (mut graph, mut names) = (None, None);
    for field in fields(bytes) {
        match field? {
            (7, value) => graph = Some(message(value)?),
            (14, value) => {
                let entry = Entry::read(message(value)?)?;
                if entry.key == "feature_names" {
                    names = serde_json::from_str(entry.value).ok();
                }
            }
            _ => {}
        }
    }
    let graph = graph.ok_or("there is no graph")?;
    let (mut ensemble, mut others, mut columns) = (None, Vec::new(), None);
    for field in fields(graph) {
        match field? {
            (1, value) => {
                let (operator, attributes) = node(message(value)?)?;
                match operator {
                    ENSEMBLE | REGRESSOR if ensemble.is_none() => ensemble = Some((operator, attributes)),
                    other => others.push(other.to_owned()),
                }
            }
            (11, value) if columns.is_none() => columns = last_dimension(message(value)?)?,
            _ => {}
        }
    }
    let (operator, attributes) = ensemble.ok_or_else(|| match others.is_empty() {
        true => "there is no operator".to_owned(),
        false => format!("there is no tree ensemble; the operators are {}", others.join(", ")),
    })?;
    let trees = match operator {
        ENSEMBLE => attributes.ensemble()?,
        _ => attributes.regressor()?,
    };
    let is_mean = match operator {
        ENSEMBLE => attributes.aggregate(&[(0, true), (1, false)])?,
        _ => match attributes.text("aggregate_function").unwrap_or("SUM") {
            "SUM" => false,
            "AVERAGE" => true,
            other => return Err(format!("aggregate_function {other} is not supported")),
        },
    };
    let transformed = match operator {
        ENSEMBLE => attributes.int("post_transform").unwrap_or(0) != 0,
        _ => attributes.text("post_transform").unwrap_or("NONE") != "NONE",
    };
    if transformed {
        return Err("scores are transformed (post_transform)".to_owned());
    }
    if attributes.int("n_targets").unwrap_or(1) != 1 {
        return Err("the model has several scores per row".to_owned());
    }
    let base_score = attributes.numbers.get("base_values").and_then(|values| values.first()).copied();
    Ok(OnnxTrees {
        is_mean,
        base_score: base_score.unwrap_or(0.0),
        trees,
        is_double: attributes.is_double,
        columns,
        names,
        others,
    })
}

/// A pair of strings.
struct Entry<'a> {
    key: &'a str,
    value: &'a str,
}

impl<'a> Entry<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let mut entry = Entry { key: "", value: "" };
        for field in fields(bytes) {
            match field? {
                (1, value) => entry.key = utf8(message(value)?)?,
                (2, value) => entry.value = utf8(message(value)?)?,
                _ => {}
            }
        }
        Ok(entry)
    }
}

/// Returns the last dimension of an input, if it is known.
fn last_dimension(mut bytes: &[u8]) -> Result<Option<usize>, String> {
    // The value's type, the type's tensor, the tensor's shape.
    for number in [2, 1, 2] {
        let mut inner = None;
        for field in fields(bytes) {
            let (found, value) = field?;
            if found == number {
                inner = Some(message(value)?);
            }
        }
        match inner {
            Some(inner) => bytes = inner,
            None => return Ok(None),
        }
    }
    let mut last = None;
    for field in fields(bytes) {
        let (_, value) = field?;
        last = None;
        for field in fields(message(value)?) {
            if let (1, Wire::Int(size)) = field? {
                last = usize::try_from(size).ok();
            }
        }
    }
    Ok(last)
}

/// Reads an operator: its name and its attributes.
fn node(bytes: &[u8]) -> Result<(&str, Attributes<'_>), String> {
    let mut operator = "";
    let mut attributes = Attributes::default();
    for field in fields(bytes) {
        match field? {
            (4, value) => operator = utf8(message(value)?)?,
            (5, value) => attributes.add(message(value)?)?,
            _ => {}
        }
    }
    Ok((operator, attributes))
}

impl<'a> Attributes<'a> {
    fn add(&mut self, bytes: &'a [u8]) -> Result<(), String> {
        let mut name = "";
        let (mut ints, mut numbers, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for field in fields(bytes) {
            match field? {
                (1, value) => name = utf8(message(value)?)?,
                (3 | 8, value) => push_ints(&mut ints, value)?,
                (2 | 7, value) => push_floats(&mut numbers, value)?,
                (4 | 9, value) => texts.push(utf8(message(value)?)?),
                (5, value) => self.tensor(message(value)?, &mut ints, &mut numbers)?,
                _ => {}
            }
        }
        // The `_as_tensor` attributes of TreeEnsembleRegressor have 64-bit floats.
        let name = name.strip_suffix("_as_tensor").unwrap_or(name);
        self.ints.insert(name, ints);
        self.numbers.insert(name, numbers);
        self.texts.insert(name, texts);
        Ok(())
    }

    fn tensor(&mut self, bytes: &[u8], ints: &mut Vec<i64>, numbers: &mut Vec<f64>) -> Result<(), String> {
        let (mut element, mut raw) = (0, None);
        let (mut singles, mut words, mut doubles) = (Vec::new(), Vec::new(), Vec::new());
        for field in fields(bytes) {
            match field? {
                (2, Wire::Int(value)) => element = value as i64,
                (4, value) => push_floats(&mut singles, value)?,
                (5, value) => push_ints(&mut words, value)?,
                (9, value) => raw = Some(message(value)?),
                (10, value) => {
                    let number = |bytes: &[u8]| bytes.try_into().map_or(0.0, f64::from_le_bytes);
                    doubles.extend(message(value)?.chunks_exact(8).map(number));
                }
                _ => {}
            }
        }
        match element {
            TYPE_FLOAT => match raw {
                Some(raw) => push_floats(numbers, Wire::Bytes(raw))?,
                None => numbers.extend(singles),
            },
            TYPE_DOUBLE => {
                self.is_double = true;
                let number = |bytes: &[u8]| bytes.try_into().map_or(0.0, f64::from_le_bytes);
                match raw {
                    Some(raw) => numbers.extend(raw.chunks_exact(8).map(number)),
                    None => numbers.extend(doubles),
                }
            }
            TYPE_UINT8 => match raw {
                Some(raw) => ints.extend(raw.iter().map(|byte| i64::from(*byte))),
                None => ints.extend(words),
            },
            _ => return Err("a tensor has an unsupported type".to_owned()),
        }
        Ok(())
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.ints.get(name)?.first().copied()
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.texts.get(name)?.first().copied()
    }

    fn aggregate(&self, known: &[(i64, bool)]) -> Result<bool, String> {
        let aggregate = self.int("aggregate_function").unwrap_or(1);
        let found = known.iter().find(|(number, _)| *number == aggregate).map(|(_, is_mean)| *is_mean);
        found.ok_or_else(|| format!("aggregate_function {aggregate} is not supported"))
    }

    /// Returns a list that must have a certain length, unless it is optional and absent.
    fn list<'l, T>(
        of: &'l HashMap<&str, Vec<T>>,
        name: &str,
        count: usize,
        is_optional: bool,
    ) -> Result<&'l [T], String> {
        let list = of.get(name).map(Vec::as_slice).unwrap_or_default();
        match list.len() == count || (is_optional && list.is_empty()) {
            true => Ok(list),
            false => Err(format!("{name} has {} entries instead of {count}", list.len())),
        }
    }

    /// Reads the trees of `TreeEnsemble`.
    fn ensemble(&self) -> Result<Vec<Vec<OnnxNode>>, String> {
        let count = self.ints.get("nodes_featureids").map_or(0, Vec::len);
        let int = |name| Self::list(&self.ints, name, count, false);
        let features = int("nodes_featureids")?;
        let modes = int("nodes_modes")?;
        let on = [int("nodes_truenodeids")?, int("nodes_falsenodeids")?];
        let leafs = [int("nodes_trueleafs")?, int("nodes_falseleafs")?];
        let missing = Self::list(&self.ints, "nodes_missing_value_tracks_true", count, true)?;
        let splits = Self::list(&self.numbers, "nodes_splits", count, false)?;
        let leaves = self.numbers.get("leaf_weights").map(Vec::as_slice).unwrap_or_default();
        if self.ints.get("leaf_targetids").is_some_and(|targets| targets.iter().any(|target| *target != 0)) {
            return Err("the model has several scores per row".to_owned());
        }
        let mut visited = vec![false; count];
        let tree = |root: i64, visited: &mut Vec<bool>| {
            let mut nodes = Vec::new();
            let mut pending = vec![(root, false)];
            while let Some((number, is_leaf)) = pending.get(nodes.len()).copied() {
                let place = usize::try_from(number).map_err(|_| "a node has a negative number")?;
                if is_leaf {
                    let value = leaves.get(place).ok_or("a leaf does not exist")?;
                    nodes.push(OnnxNode::Leaf(*value));
                    continue;
                }
                // A node that is reached twice would be a cycle or a shared branch.
                if std::mem::replace(visited.get_mut(place).ok_or("a node does not exist")?, true) {
                    return Err("the nodes do not form a tree".to_owned());
                }
                let next = pending.len();
                pending.extend([0, 1].map(|side: usize| (on[side][place], leafs[side][place] != 0)));
                nodes.push(OnnxNode::Split {
                    feature: u32::try_from(features[place]).map_err(|_| "a feature has a negative number")?,
                    threshold: splits[place],
                    is_strict: match modes[place] {
                        0 => false,
                        1 => true,
                        other => return Err(format!("splits of mode {other} are not supported")),
                    },
                    missing_left: missing.get(place).is_some_and(|left| *left != 0),
                    left: next,
                    right: next + 1,
                });
            }
            Ok(nodes)
        };
        let roots = self.ints.get("tree_roots").ok_or("tree_roots is missing")?;
        roots.iter().map(|root| tree(*root, &mut visited)).collect()
    }

    /// Reads the trees of `TreeEnsembleRegressor`.
    fn regressor(&self) -> Result<Vec<Vec<OnnxNode>>, String> {
        let count = self.ints.get("nodes_treeids").map_or(0, Vec::len);
        let int = |name| Self::list(&self.ints, name, count, false);
        let (trees, ids) = (int("nodes_treeids")?, int("nodes_nodeids")?);
        let (features, on_true, on_false) =
            (int("nodes_featureids")?, int("nodes_truenodeids")?, int("nodes_falsenodeids")?);
        let missing = Self::list(&self.ints, "nodes_missing_value_tracks_true", count, true)?;
        let values = Self::list(&self.numbers, "nodes_values", count, false)?;
        let modes = Self::list(&self.texts, "nodes_modes", count, false)?;
        let targets = self.ints.get("target_treeids").map_or(0, Vec::len);
        let target = |name| Self::list(&self.ints, name, targets, false);
        let (target_trees, target_nodes) = (target("target_treeids")?, target("target_nodeids")?);
        let weights = Self::list(&self.numbers, "target_weights", targets, false)?;
        if target("target_ids")?.iter().any(|target| *target != 0) {
            return Err("the model has several scores per row".to_owned());
        }
        let leaves: HashMap<(i64, i64), f64> =
            (0..targets).map(|place| ((target_trees[place], target_nodes[place]), weights[place])).collect();
        let mut places: HashMap<(i64, i64), usize> = HashMap::new();
        // The first node of a tree is its root.
        let mut roots: Vec<usize> = Vec::new();
        for place in 0..count {
            if place == 0 || trees[place] != trees[place - 1] {
                roots.push(place);
            }
            if places.insert((trees[place], ids[place]), place).is_some() {
                return Err(format!("tree {} has two nodes {}", trees[place], ids[place]));
            }
        }
        let mut visited = vec![false; count];
        let tree = |root: usize, visited: &mut Vec<bool>| {
            let mut nodes = Vec::new();
            let mut pending = vec![root];
            while let Some(place) = pending.get(nodes.len()).copied() {
                if std::mem::replace(&mut visited[place], true) {
                    return Err("the nodes do not form a tree".to_owned());
                }
                let number = trees[place];
                let is_strict = match modes[place] {
                    "LEAF" => {
                        let value = leaves.get(&(number, ids[place])).copied().unwrap_or(0.0);
                        nodes.push(OnnxNode::Leaf(value));
                        continue;
                    }
                    "BRANCH_LEQ" => false,
                    "BRANCH_LT" => true,
                    other => return Err(format!("splits of mode {other} are not supported")),
                };
                let child = |id: i64| {
                    places.get(&(number, id)).copied().ok_or_else(|| format!("node {id} does not exist"))
                };
                let next = pending.len();
                pending.extend([child(on_true[place])?, child(on_false[place])?]);
                nodes.push(OnnxNode::Split {
                    feature: u32::try_from(features[place]).map_err(|_| "a feature has a negative number")?,
                    threshold: values[place],
                    is_strict,
                    missing_left: missing.get(place).is_some_and(|left| *left != 0),
                    left: next,
                    right: next + 1,
                });
            }
            Ok(nodes)
        };
        roots.into_iter().map(|root| tree(root, &mut visited)).collect()
    }
}
