//! Reads XGBoost's JSON format.

use super::{WORDS, XgboostTree};
use crate::exchange::assemble::{ForeignNode, ForeignSplit, assemble_numbered};
use crate::exchange::categories::{CategorySplit, SetSides, check_added_nodes, expand_sets, words_of};
use crate::exchange::frame::FrameCategories;
use crate::exchange::names::{NameSource, check_feature_count};
use crate::exchange::{ImportError, ImportedModel, imported_part, is_truncated};
use crate::model::{Combine, Part, Tree, TreeEnsemble};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The latest supported major version of XGBoost.
const VERSION: u32 = 3;

#[derive(Deserialize)]
struct XgboostFile {
    learner: XgboostLearner,
}

#[derive(Deserialize)]
struct XgboostLearner {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    feature_names: Vec<String>,
    gradient_booster: Booster,
    learner_model_param: XgboostParameters,
    objective: XgboostObjective,
}

#[derive(Deserialize)]
struct XgboostParameters {
    base_score: String,
    #[serde(default)]
    num_class: String,
    num_feature: String,
    #[serde(default)]
    num_target: String,
}

#[derive(Deserialize)]
struct XgboostObjective {
    name: String,
}

/// A booster. The booster `gbtree` has a model. The booster `dart` has an inner `gbtree` and one weight per tree.
#[derive(Deserialize)]
struct Booster {
    name: String,
    model: Option<BoosterTrees>,
    gbtree: Option<InnerBooster>,
    weight_drop: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct InnerBooster {
    model: BoosterTrees,
}

#[derive(Deserialize)]
struct BoosterTrees {
    /// The categories of the data frame that the model was trained on.
    #[serde(default)]
    cats: XgboostCategories,
    #[serde(default)]
    tree_info: Vec<i64>,
    /// `None` for linear models.
    trees: Option<Vec<XgboostTree>>,
}

#[derive(Default, Deserialize)]
struct XgboostCategories {
    /// One list per feature, which is empty for numeric features.
    #[serde(default)]
    enc: Vec<FeatureCategories>,
}

/// The categories of a feature: numbers, or the bytes of texts that begin and end at `offsets`.
#[derive(Deserialize)]
struct FeatureCategories {
    offsets: Option<Vec<usize>>,
    #[serde(default)]
    values: Vec<Value>,
}

impl FeatureCategories {
    /// Returns the categories as texts, see [`words_of`].
    fn words(&self) -> Option<Vec<String>> {
        let Some(offsets) = &self.offsets else { return words_of(&self.values) };
        // Bytes may be signed.
        let bytes: Option<Vec<u8>> =
            self.values.iter().map(|value| value.as_i64().map(|byte| byte as u8)).collect();
        let bytes = bytes?;
        let word =
            |bounds: &[usize]| Some(std::str::from_utf8(bytes.get(bounds[0]..bounds[1])?).ok()?.to_owned());
        offsets.windows(2).map(word).collect()
    }
}

/// Returns whether a file looks like XGBoost's JSON format.
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(start, key.as_bytes()).is_some();
    start.first() == Some(&b'{') && start.get(1) != Some(&b'L') && has("\"learner\"")
}

/// Returns the error for a file in one of XGBoost's binary formats, or `None` for any other file.
pub(crate) fn binary_format_error(bytes: &[u8]) -> Option<ImportError> {
    let has = |key: &[u8]| memchr::memmem::find(&bytes[..bytes.len().min(1 << 20)], key).is_some();
    // In UBJSON, the length of a name precedes the name. The older binary format starts with a signature.
    let is_binary = bytes.starts_with(b"binf")
        || bytes.starts_with(b"bs64")
        || (bytes.first() == Some(&b'{') && bytes.get(1) == Some(&b'L') && has(b"learner"));
    is_binary.then(|| {
        ImportError::new(
            "XGBoost's binary formats are not supported",
            "save the model as JSON: booster.save_model(\"model.json\")",
        )
    })
}

/// Reads a model.
pub(crate) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    if let Some(fault) = binary_format_error(bytes) {
        return Err(fault);
    }
    /// The version is parsed first, because everything else may differ in a newer version.
    #[derive(Deserialize)]
    struct Version {
        version: Option<Vec<u32>>,
    }
    let version: Version = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    if let Some(version) =
        version.version.as_ref().and_then(|version| version.first()).filter(|it| **it > VERSION)
    {
        return Err(ImportError::new(
            format!("written by a newer XGBoost (version {version}; up to {VERSION} is supported)"),
            "save the model with XGBoost 3, or use a newer version of planetree",
        ));
    }
    let XgboostFile { learner } = serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    model_of(learner, names)
}

fn model_of(learner: XgboostLearner, names: &NameSource) -> Result<ImportedModel, ImportError> {
    let parameters = &learner.learner_model_param;
    let booster = learner.gradient_booster;
    let (trees, weights) = match (booster.name.as_str(), booster.model, booster.gbtree) {
        ("gbtree", Some(trees), _) => (trees, None),
        ("dart", _, Some(inner)) => (inner.model, booster.weight_drop),
        ("gblinear", ..) => {
            return Err(ImportError::new(
                "linear models (gblinear) are not supported",
                "import a model that consists of trees",
            ));
        }
        (name, ..) => return Err(invalid(&format!("booster {name:?} has no trees"))),
    };
    let is_one = |count: &str| matches!(count, "" | "0" | "1");
    let one_class = is_one(&parameters.num_class) && is_one(&parameters.num_target);
    if !one_class || trees.tree_info.iter().any(|class| *class != 0) {
        return Err(ImportError::new(
            "the model has one score per class or target",
            "import a model with one score per row, which ranking needs",
        ));
    }
    let categories = trees.cats.enc;
    let all = trees.trees.ok_or_else(|| invalid("the list of trees is missing"))?;
    let count: usize = parameters.num_feature.parse().map_err(|_| invalid("num_feature is not a number"))?;
    check_feature_count(count).map_err(|problem| invalid(&problem))?;
    let own = Some(learner.feature_names.as_slice()).filter(|names| !names.is_empty());
    if let Some(own) = own.filter(|own| own.len() != count) {
        return Err(invalid(&format!("the file has {count} features, but {} feature names", own.len())));
    }
    let mut features = names.features(count, own)?;
    if let Some(text) = learner.attributes.get(WORDS) {
        let words: Option<Vec<Option<Vec<String>>>> = serde_json::from_str(text).ok();
        let words = words.filter(|words| words.len() == count);
        let words = words
            .ok_or_else(|| invalid(&format!("attribute {WORDS} does not have one entry per feature")))?;
        features.iter_mut().zip(words).for_each(|(feature, words)| feature.words = words.unwrap_or_default());
    }
    let mut unknown_words = false;
    for (feature, categories) in features.iter_mut().zip(&categories) {
        match categories.words() {
            Some(words) if !words.is_empty() => feature.words = words,
            Some(_) => {}
            None => unknown_words = true,
        }
    }
    let weight_of = |number: usize| -> Result<f32, ImportError> {
        let Some(weights) = &weights else { return Ok(1.0) };
        weights
            .get(number)
            .copied()
            .ok_or_else(|| invalid("weight_drop has fewer weights than there are trees"))
    };
    let mut read = Vec::with_capacity(all.len());
    let mut added = 0;
    for (number, given) in all.iter().enumerate() {
        let tree = tree_of(given, f64::from(weight_of(number)?), count);
        let tree = tree.map_err(|error| error.in_tree(number))?;
        added += tree.nodes.len().saturating_sub(given.left_children.len());
        check_added_nodes(added).map_err(|error| error.in_tree(number))?;
        read.push(tree);
    }
    let (base_score, mut notes) = base_score(&parameters.base_score, &learner.objective.name)?;
    if unknown_words {
        notes.push(
            "some categories are neither texts nor whole numbers: the imported model has their codes only"
                .to_owned(),
        );
    }
    if let Some(best) = learner.attributes.get("best_iteration") {
        notes.push(format!(
            "training stopped early, and the best iteration is {best}, counted from 0. All {} trees are imported, \
             because Booster.predict uses all of them",
            read.len()
        ));
    }
    let rounds = read.len() as u32;
    let ensemble = TreeEnsemble::new(Combine::Sum, base_score, None, read);
    let model = imported_part(Part::trees(ensemble), features, rounds, "# imported from XGBoost's JSON\n");
    let frame = unknown_words.then(FrameCategories::unreadable);
    Ok(ImportedModel { model, notes, losses: Vec::new(), frame })
}

/// Returns the base score as a raw score, and notes for the user. XGBoost stores the base score as a prediction, after
/// the transformation of the objective.
fn base_score(text: &str, objective: &str) -> Result<(f64, Vec<String>), ImportError> {
    let number = text.trim_start_matches('[').trim_end_matches(']');
    let base: f32 =
        number.trim().parse().map_err(|_| invalid(&format!("base_score is {text:?}, not a number")))?;
    let base = f64::from(base);
    let raw = |score: f64, what: &str| {
        let note = format!(
            "the objective is {objective}: scores are XGBoost's margins (output_margin=True), before {what}, which give \
             the same ranking"
        );
        Ok((score, vec![note]))
    };
    match objective {
        "binary:logistic" | "reg:logistic" => raw(logit(base), "the logistic function"),
        "binary:logitraw" => Ok((logit(base), Vec::new())),
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => {
            raw(libm::log(base), "the exponential function")
        }
        _ => match objective.split_once(':') {
            Some(("reg" | "rank", _)) | Some(("binary", "hinge")) => Ok((base, Vec::new())),
            _ => Err(ImportError::new(
                format!(
                    "unsupported objective {objective:?}: the transformation of its base score is not known"
                ),
                "import a model whose objective starts with reg:, rank: or binary:",
            )),
        },
    }
}

fn logit(probability: f64) -> f64 {
    -libm::log(1.0 / probability - 1.0)
}

fn tree_of(tree: &XgboostTree, weight: f64, features: usize) -> Result<Tree, ImportError> {
    let count = tree.left_children.len();
    let lists = [
        tree.right_children.len(),
        tree.default_left.len(),
        tree.split_conditions.len(),
        tree.split_indices.len(),
    ];
    if count == 0 || lists.iter().any(|length| *length != count) {
        return Err(invalid("the lists of nodes are empty or have different lengths"));
    }
    if !matches!(tree.tree_param.size_leaf_vector.as_str(), "0" | "1") {
        return Err(ImportError::new(
            "leaves with several values are not supported",
            "train one tree per target",
        ));
    }
    let value_or_zero = |list: &[f32], node: usize| f64::from(list.get(node).copied().unwrap_or(0.0));
    let find = |number: i64| -> Result<ForeignNode, String> {
        let node = usize::try_from(number).ok().filter(|node| *node < count);
        let node = node.ok_or_else(|| format!("node {number} does not exist"))?;
        let cover = value_or_zero(&tree.sum_hessian, node);
        if tree.left_children[node] == -1 {
            let value = f64::from(tree.split_conditions[node]) * weight;
            return Ok(ForeignNode { split: None, value: Some(value), cover });
        }
        if tree.split_indices[node] as usize >= features {
            return Err(format!("node {node} splits on a feature that does not exist"));
        }
        let split = ForeignSplit {
            feature: tree.split_indices[node],
            threshold: tree.split_conditions[node].next_down().max(f32::MIN),
            missing_left: tree.default_left[node].is_set(),
            left: tree.left_children[node],
            right: tree.right_children[node],
            gain: value_or_zero(&tree.loss_changes, node),
        };
        Ok(ForeignNode { split: Some(split), value: None, cover })
    };
    let (assembled, numbers) = assemble_numbered(0, count, &find).map_err(|problem| invalid(&problem))?;
    let mut sets = category_sets(tree)?;
    let of_node: Vec<Option<CategorySplit>> =
        numbers.iter().map(|number| sets.get_mut(*number as usize).and_then(Option::take)).collect();
    expand_sets(assembled, &of_node)
}

/// Returns the set of categories of each node of a tree. Categories in the set go right. Missing values have a side of
/// their own, and all others go left, negative ones too. Empty without splits on categories.
fn category_sets(tree: &XgboostTree) -> Result<Vec<Option<CategorySplit>>, ImportError> {
    let is_categorical = |node: usize| tree.split_type.get(node).is_some_and(|kind| *kind != 0);
    if !(0..tree.left_children.len()).any(is_categorical) && tree.categories_nodes.is_empty() {
        return Ok(Vec::new());
    }
    let mut sets = vec![None; tree.left_children.len()];
    let segments = tree.categories_segments.iter().zip(&tree.categories_sizes);
    if tree.categories_segments.len() != tree.categories_nodes.len()
        || segments.len() != tree.categories_nodes.len()
    {
        return Err(invalid("the lists of categories have different lengths"));
    }
    for (node, (first, size)) in tree.categories_nodes.iter().zip(segments) {
        let place = usize::try_from(*node).ok().filter(|node| *node < sets.len() && is_categorical(*node));
        let place =
            place.ok_or_else(|| invalid(&format!("node {node} has categories, but no split on them")))?;
        let bounds = usize::try_from(*first).ok().zip(usize::try_from(*size).ok());
        let codes = bounds.and_then(|(first, size)| tree.categories.get(first..first.checked_add(size)?));
        let codes = codes.ok_or_else(|| invalid(&format!("the categories of node {node} do not exist")))?;
        let codes: Option<Vec<u32>> = codes.iter().map(|code| u32::try_from(*code).ok()).collect();
        let mut codes = codes.ok_or_else(|| invalid(&format!("node {node} has a negative category")))?;
        codes.sort_unstable();
        codes.dedup();
        let missing_left = tree.default_left[place].is_set();
        let sides = SetSides { set_left: false, missing_left, below_zero: 0f32.next_down() };
        sets[place] = Some(CategorySplit::new(codes.into_iter(), sides)?);
    }
    let is_split = |node: usize| tree.left_children[node] != -1;
    match (0..sets.len()).find(|node| is_categorical(*node) && is_split(*node) && sets[*node].is_none()) {
        Some(node) => Err(invalid(&format!("node {node} splits on categories, but has none"))),
        None => Ok(sets),
    }
}

fn not_json(error: &serde_json::Error, bytes: &[u8]) -> ImportError {
    if is_truncated(error, bytes) {
        return ImportError::truncated(error);
    }
    invalid(&error.to_string())
}

fn invalid(problem: &str) -> ImportError {
    ImportError::new(
        format!("not an XGBoost model: {problem}"),
        "use a JSON file written by XGBoost's save_model, or pass another --format",
    )
}
