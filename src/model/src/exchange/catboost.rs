//! Imports models of CatBoost, saved with `save_model(..., format="json")`.
//!
//! A tree is symmetric: all nodes of a level test the same feature and border (`x > border`), and bit `i` of the number of
//! a leaf tells the result of test `i`. Other growing policies write nested trees. The score is
//! `scale * (sum of leaves) + bias`.

use super::assemble::{ForeignNode, ForeignSplit, assemble};
use super::json_text::{JsonText, JsonValue, ROOT};
use super::names::{NameSource, check_feature_count};
use super::{ImportError, ImportedModel, imported_part};
use crate::model::{Combine, Part, Tree, TreeEnsemble};

/// The deepest symmetric tree that is imported; CatBoost's own limit is 16.
const MAX_DEPTH: usize = 16;

/// Returns whether a file looks like CatBoost's JSON.
pub(super) fn is_likely(bytes: &[u8]) -> bool {
    let has = |key: &[u8]| memchr::memmem::find(bytes, key).is_some();
    bytes.trim_ascii_start().starts_with(b"{") && has(b"\"features_info\"") && has(b"\"scale_and_bias\"")
}

/// Reads a model.
pub(super) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the file is not UTF-8 text"))?;
    let json = JsonText::parse(text).map_err(|problem| match problem.contains("ends within") {
        true => ImportError::truncated(problem),
        false => invalid(&problem),
    })?;
    CatBoostReader { json }.model(names)
}

struct CatBoostReader {
    json: JsonText,
}

/// A numeric feature.
struct FloatFeature {
    /// Index among all columns.
    column: u32,
    name: String,
    /// Whether a missing value passes every test `x > border`.
    missing_right: bool,
}

impl CatBoostReader {
    fn model(&self, names: &NameSource) -> Result<ImportedModel, ImportError> {
        let json = &self.json;
        let info = json.required(ROOT, "features_info").map_err(|problem| invalid(&problem))?;
        if let Some(list) = json.member(info, "categorical_features")
            && matches!(json.value(list), JsonValue::List(list) if !list.is_empty())
        {
            return Err(ImportError::new(
                "categorical features are not supported",
                "train on numbers: encode categories as codes, as `planetree convert` does",
            ));
        }
        let features = self.features(info).map_err(|problem| invalid(&problem))?;
        let count = features.iter().map(|feature| feature.column as usize + 1).max().unwrap_or(0);
        check_feature_count(count).map_err(|problem| invalid(&problem))?;
        let mut own = vec![String::new(); count];
        for feature in &features {
            own[feature.column as usize] = feature.name.clone();
        }
        let is_named =
            own.iter().enumerate().all(|(index, name)| !name.is_empty() && *name != index.to_string());
        let model_features = names.features(count, is_named.then_some(own.as_slice()))?;
        let (scale, bias) = self.scale_and_bias().map_err(|problem| invalid(&problem))?;
        let (key, is_symmetric) = match json.member(ROOT, "oblivious_trees") {
            Some(_) => ("oblivious_trees", true),
            None => ("trees", false),
        };
        let list = json.list(ROOT, key).map_err(|problem| invalid(&problem))?;
        let mut trees = Vec::with_capacity(list.len());
        for (number, tree) in list.iter().enumerate() {
            let tree = match is_symmetric {
                true => self.symmetric_tree(*tree, &features, scale),
                false => self.nested_tree(*tree, &features, scale),
            };
            trees.push(tree.map_err(|problem| invalid(&problem).in_tree(number))?);
        }
        let rounds = trees.len() as u32;
        let ensemble = TreeEnsemble::new(Combine::Sum, bias, None, trees);
        let model =
            imported_part(Part::trees(ensemble), model_features, rounds, "# imported from CatBoost's JSON\n");
        let notes = vec!["scores are CatBoost's raw values (prediction_type=\"RawFormulaVal\")".to_owned()];
        Ok(ImportedModel { model, notes, losses: Vec::new(), frame: None })
    }

    fn features(&self, info: usize) -> Result<Vec<FloatFeature>, String> {
        let json = &self.json;
        let feature = |feature: &usize| {
            Ok(FloatFeature {
                column: self.index(*feature, "flat_feature_index")?,
                name: json.text(*feature, "feature_id").unwrap_or_default().to_owned(),
                missing_right: json.text(*feature, "nan_value_treatment").is_ok_and(|rule| rule == "AsTrue"),
            })
        };
        json.list(info, "float_features")?.iter().map(feature).collect()
    }

    fn scale_and_bias(&self) -> Result<(f64, f64), String> {
        let json = &self.json;
        let [scale, bias] = json.list(ROOT, "scale_and_bias")? else {
            return Err("scale_and_bias does not have two entries".to_owned());
        };
        let number = |index: usize| match json.value(index) {
            JsonValue::Number(number) => Ok(*number),
            _ => Err("scale_and_bias has something else than numbers".to_owned()),
        };
        let bias = match json.value(*bias) {
            JsonValue::List(list) if list.len() > 1 => {
                return Err("the model has several scores per row".to_owned());
            }
            JsonValue::List(list) => list.first().map_or(Ok(0.0), |bias| number(*bias))?,
            _ => number(*bias)?,
        };
        Ok((number(*scale)?, bias))
    }

    /// Reads a test: the column, the border and whether a missing value passes.
    fn test(&self, split: usize, features: &[FloatFeature]) -> Result<(u32, f32, bool), String> {
        let json = &self.json;
        if json.text(split, "split_type").is_ok_and(|kind| kind != "FloatFeature") {
            return Err("a split is not numeric".to_owned());
        }
        let feature = features
            .get(self.index(split, "float_feature_index")? as usize)
            .ok_or("a split uses a feature that does not exist")?;
        Ok((feature.column, json.number(split, "border")? as f32, feature.missing_right))
    }

    /// Returns the index of a feature.
    fn index(&self, object: usize, key: &str) -> Result<u32, String> {
        let number = self.json.number(object, key)?;
        let is_index = (0.0..1e9).contains(&number) && number.fract() == 0.0;
        if is_index { Ok(number as u32) } else { Err(format!("{key} is not the index of a feature")) }
    }

    fn numbers(&self, object: usize, key: &str) -> Result<Vec<f64>, String> {
        let number = |index: &usize| match self.json.value(*index) {
            JsonValue::Number(number) => Ok(*number),
            _ => Err(format!("{key} has something else than numbers")),
        };
        self.json.list(object, key)?.iter().map(number).collect()
    }

    fn symmetric_tree(&self, tree: usize, features: &[FloatFeature], scale: f64) -> Result<Tree, String> {
        let splits = self.json.list(tree, "splits").unwrap_or_default();
        let tests: Vec<_> =
            splits.iter().map(|split| self.test(*split, features)).collect::<Result<_, _>>()?;
        let depth = tests.len();
        if depth > MAX_DEPTH {
            return Err(format!("the tree has {depth} levels, but at most {MAX_DEPTH} are supported"));
        }
        let values = self.numbers(tree, "leaf_values")?;
        let weights = self.numbers(tree, "leaf_weights").unwrap_or_default();
        let leaves = 1usize << depth;
        if values.len() != leaves {
            return Err(format!("the tree has {} leaves instead of {leaves}", values.len()));
        }
        // Nodes are numbered as in a heap from 1. The last test is at the root, so that the bits of a path, from the
        // root on, are those of the leaf's number from the highest on.
        let find = |number: i64| {
            let level = number.ilog2() as usize;
            if level == depth {
                let leaf = number as usize - leaves;
                let cover = weights.get(leaf).copied().unwrap_or(0.0);
                return Ok(ForeignNode { split: None, value: Some(values[leaf] * scale), cover });
            }
            let (feature, threshold, missing_right) = tests[depth - 1 - level];
            let first = (number as usize) << (depth - level);
            let range = first - leaves..first - leaves + (1 << (depth - level));
            let cover = weights.get(range).map_or(0.0, |weights| weights.iter().sum());
            let split = ForeignSplit {
                feature,
                threshold,
                missing_left: !missing_right,
                left: 2 * number,
                right: 2 * number + 1,
                gain: 0.0,
            };
            Ok(ForeignNode { split: Some(split), value: None, cover })
        };
        assemble(1, 2 * leaves - 1, &find)
    }

    fn nested_tree(&self, tree: usize, features: &[FloatFeature], scale: f64) -> Result<Tree, String> {
        let json = &self.json;
        let find = |number: i64| {
            let node = number as usize;
            if json.member(node, "split").is_none() {
                let cover = json.number(node, "weight").unwrap_or(0.0);
                let value = Some(json.number(node, "value")? * scale);
                return Ok(ForeignNode { split: None, value, cover });
            }
            let (feature, threshold, missing_right) = self.test(json.required(node, "split")?, features)?;
            let split = ForeignSplit {
                feature,
                threshold,
                missing_left: !missing_right,
                left: json.required(node, "left")? as i64,
                right: json.required(node, "right")? as i64,
                gain: 0.0,
            };
            Ok(ForeignNode { split: Some(split), value: None, cover: 0.0 })
        };
        // Values of a text form a tree by nature, so the number of nodes needs no limit.
        let mut tree = assemble(tree as i64, usize::MAX, &find)?;
        sum_covers(&mut tree);
        Ok(tree)
    }
}

/// Sets the cover of every split to that of its children.
fn sum_covers(tree: &mut Tree) {
    for index in (0..tree.nodes.len()).rev() {
        if let Some(split) = &tree.nodes[index].split {
            let cover = split.children().map(|child| tree.nodes[child as usize].cover).sum();
            tree.nodes[index].cover = cover;
        }
    }
}

fn invalid(problem: &str) -> ImportError {
    ImportError::new(
        format!("not a CatBoost model that planetree can import: {problem}"),
        "use a file written by CatBoost's save_model(..., format=\"json\"), or pass another --format",
    )
}
