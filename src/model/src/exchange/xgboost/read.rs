//! Reading XGBoost's JSON.

use super::{WORDS, XgboostTree};
use crate::exchange::assemble::{Found, FoundSplit, assemble};
use crate::exchange::names::FeatureNames;
use crate::exchange::{Fault, Imported, ends_early};
use crate::model::{Ensemble, Model, Origin, Tree};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The last version that is known.
const VERSION: u32 = 3;

#[derive(Deserialize)]
struct File {
    learner: Learner,
}

#[derive(Deserialize)]
struct Learner {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    feature_names: Vec<String>,
    gradient_booster: Booster,
    learner_model_param: LearnerParameters,
    objective: Objective,
}

#[derive(Deserialize)]
struct LearnerParameters {
    base_score: String,
    #[serde(default)]
    num_class: String,
    num_feature: String,
    #[serde(default)]
    num_target: String,
}

#[derive(Deserialize)]
struct Objective {
    name: String,
}

/// `gbtree` has a model, `dart` has one within and a weight a tree.
#[derive(Deserialize)]
struct Booster {
    name: String,
    model: Option<Trees>,
    gbtree: Option<Within>,
    weight_drop: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Within {
    model: Trees,
}

#[derive(Deserialize)]
struct Trees {
    #[serde(default)]
    tree_info: Vec<i64>,
    /// A linear model has none.
    trees: Option<Vec<XgboostTree>>,
}

/// Whether a file looks like XGBoost's JSON.
pub fn is_likely(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let has = |key: &str| memchr::memmem::find(start, key.as_bytes()).is_some();
    start.first() == Some(&b'{') && start.get(1) != Some(&b'L') && has("\"learner\"")
}

/// What to say of the binary forms.
pub fn binary_fault(bytes: &[u8]) -> Option<Fault> {
    let has = |key: &[u8]| memchr::memmem::find(&bytes[..bytes.len().min(1 << 20)], key).is_some();
    // UBJSON writes the length of a name before it; the old form begins with its name.
    let is_binary = bytes.starts_with(b"binf")
        || bytes.starts_with(b"bs64")
        || (bytes.first() == Some(&b'{') && bytes.get(1) == Some(&b'L') && has(b"learner"));
    is_binary.then(|| {
        Fault::new("an XGBoost model in a binary form", "save it as JSON: booster.save_model(\"model.json\")")
    })
}

/// Reads a model.
pub fn import(bytes: &[u8], names: &FeatureNames) -> Result<Imported, Fault> {
    if let Some(fault) = binary_fault(bytes) {
        return Err(fault);
    }
    /// Read first: a later version may differ in everything else.
    #[derive(Deserialize)]
    struct Version {
        version: Option<Vec<u32>>,
    }
    let version: Version = serde_json::from_slice(bytes).map_err(|error| not_ours(&error, bytes))?;
    if let Some(version) =
        version.version.as_ref().and_then(|version| version.first()).filter(|it| **it > VERSION)
    {
        return Err(Fault::new(
            format!("written by a newer XGBoost (version {version}; {VERSION} is known)"),
            "save the model with XGBoost 3, or use a later planetree",
        ));
    }
    let File { learner } = serde_json::from_slice(bytes).map_err(|error| not_ours(&error, bytes))?;
    model_of(learner, names)
}

fn model_of(learner: Learner, names: &FeatureNames) -> Result<Imported, Fault> {
    let parameters = &learner.learner_model_param;
    let booster = learner.gradient_booster;
    let (trees, weights) = match (booster.name.as_str(), booster.model, booster.gbtree) {
        ("gbtree", Some(trees), _) => (trees, None),
        ("dart", _, Some(within)) => (within.model, booster.weight_drop),
        ("gblinear", ..) => {
            return Err(Fault::new("it is a linear model (gblinear)", "import a model of trees"));
        }
        (name, ..) => return Err(invalid(&format!("there are no trees of a booster {name:?}"))),
    };
    let is_one = |count: &str| matches!(count, "" | "0" | "1");
    let one_class = is_one(&parameters.num_class) && is_one(&parameters.num_target);
    if !one_class || trees.tree_info.iter().any(|class| *class != 0) {
        return Err(Fault::new(
            "it has a score for every class or target",
            "a ranking needs one score a row: import a model that is trained for one",
        ));
    }
    let all = trees.trees.ok_or_else(|| invalid("there are no trees"))?;
    let count: usize =
        parameters.num_feature.parse().map_err(|_| invalid("its number of features is none"))?;
    if count > 1 << 24 {
        return Err(invalid(&format!("it has {count} features")));
    }
    let own = Some(learner.feature_names.as_slice()).filter(|names| !names.is_empty());
    if let Some(own) = own.filter(|own| own.len() != count) {
        return Err(invalid(&format!("it has {count} features and {} names", own.len())));
    }
    let mut features = names.features(count, own)?;
    if let Some(text) = learner.attributes.get(WORDS) {
        let words: Option<Vec<Option<Vec<String>>>> = serde_json::from_str(text).ok();
        let words = words.filter(|words| words.len() == count);
        let words =
            words.ok_or_else(|| invalid(&format!("its attribute {WORDS} has no list for every feature")))?;
        features.iter_mut().zip(words).for_each(|(feature, words)| feature.words = words.unwrap_or_default());
    }
    let weight_of = |place: usize| -> Result<f32, Fault> {
        let Some(weights) = &weights else { return Ok(1.0) };
        weights.get(place).copied().ok_or_else(|| invalid("a tree has no weight"))
    };
    let mut read = Vec::with_capacity(all.len());
    for (place, tree) in all.iter().enumerate() {
        let tree = tree_of(tree, f64::from(weight_of(place)?), count);
        read.push(
            tree.map_err(|fault| Fault { problem: format!("tree {place}: {}", fault.problem), ..fault })?,
        );
    }
    let (base_score, mut notes) = base_score(&parameters.base_score, &learner.objective.name)?;
    if let Some(best) = learner.attributes.get("best_iteration") {
        notes.push(format!(
            "training stopped early, the best iteration was {best} (counted from 0); all {} trees are imported, as \
             Booster.predict uses them",
            read.len()
        ));
    }
    let model = Model {
        ensemble: Ensemble::Boost,
        base_score,
        base_feature: None,
        features,
        rounds: read.len() as u32,
        trees: read,
        configuration: "# imported from XGBoost's JSON\n".to_owned(),
        data: Vec::new(),
        origin: Origin::default(),
    };
    Ok(Imported { model, notes, losses: Vec::new() })
}

/// The score that sums start from. It is kept as the prediction that it stands for.
fn base_score(text: &str, objective: &str) -> Result<(f64, Vec<String>), Fault> {
    let number = text.trim_start_matches('[').trim_end_matches(']');
    let base: f32 = number.trim().parse().map_err(|_| invalid(&format!("its base score is {text:?}")))?;
    let base = f64::from(base);
    let raw = |score: f64, what: &str| {
        let note = format!(
            "the objective is {objective}: scores here are XGBoost's margins (output_margin=True), before {what}, in the same order"
        );
        Ok((score, vec![note]))
    };
    match objective {
        "binary:logistic" | "reg:logistic" => raw(logit(base), "the logistic function"),
        "binary:logitraw" => Ok((logit(base), Vec::new())),
        "count:poisson" | "reg:gamma" | "reg:tweedie" | "survival:cox" | "survival:aft" => {
            raw(libm::log(base), "the exponential")
        }
        _ => match objective.split_once(':') {
            Some(("reg" | "rank", _)) | Some(("binary", "hinge")) => Ok((base, Vec::new())),
            _ => Err(Fault::new(
                format!("what its objective {objective:?} makes of a base score is not known"),
                "import a model of an objective of the kinds reg:, rank: or binary:",
            )),
        },
    }
}

fn logit(probability: f64) -> f64 {
    -libm::log(1.0 / probability - 1.0)
}

fn tree_of(tree: &XgboostTree, weight: f64, features: usize) -> Result<Tree, Fault> {
    let count = tree.left_children.len();
    let lists = [
        tree.right_children.len(),
        tree.default_left.len(),
        tree.split_conditions.len(),
        tree.split_indices.len(),
    ];
    if count == 0 || lists.iter().any(|length| *length != count) {
        return Err(invalid("its lists are not of one length"));
    }
    if !matches!(tree.tree_param.size_leaf_vector.as_str(), "0" | "1") {
        return Err(Fault::new("its leaves have many values", "train with one tree a target"));
    }
    if tree.split_type.iter().any(|kind| *kind != 0) || !tree.categories_nodes.is_empty() {
        return Err(Fault::new(
            "it splits on categories",
            "train with numbers only: code the categories yourself, as `planetree convert` does",
        ));
    }
    let number = |list: &[f32], place: usize| f64::from(list.get(place).copied().unwrap_or(0.0));
    let find = |place: i64| -> Result<Found, String> {
        let at = usize::try_from(place).ok().filter(|at| *at < count);
        let at = at.ok_or_else(|| format!("there is no node {place}"))?;
        let cover = number(&tree.sum_hessian, at);
        if tree.left_children[at] == -1 {
            let value = f64::from(tree.split_conditions[at]) * weight;
            return Ok(Found { split: None, value: Some(value), cover });
        }
        if tree.split_indices[at] as usize >= features {
            return Err(format!("node {at} splits on a feature that the model does not have"));
        }
        let split = FoundSplit {
            feature: tree.split_indices[at],
            threshold: tree.split_conditions[at].next_down().max(f32::MIN),
            missing_left: tree.default_left[at].is_set(),
            left: tree.left_children[at],
            right: tree.right_children[at],
            gain: number(&tree.loss_changes, at),
        };
        Ok(Found { split: Some(split), value: None, cover })
    };
    assemble(0, count, &find).map_err(|problem| invalid(&problem))
}

fn not_ours(error: &serde_json::Error, bytes: &[u8]) -> Fault {
    if ends_early(error, bytes) {
        return Fault::new(format!("truncated: {error}"), "copy the whole file, or save the model again");
    }
    invalid(&error.to_string())
}

fn invalid(problem: &str) -> Fault {
    Fault::new(
        format!("not an XGBoost model: {problem}"),
        "name a file that XGBoost's save_model wrote as JSON, or another --format",
    )
}
