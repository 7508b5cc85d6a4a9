//! Reading LightGBM's text.

use super::{CATEGORICAL, MISSING_KIND, MISSING_LEFT, NAN, NOTHING, PANDAS, WORDS, ZERO};
use crate::exchange::assemble::{Found, FoundSplit, assemble};
use crate::exchange::names::FeatureNames;
use crate::exchange::{Fault, Imported};
use crate::model::{Ensemble, Model, ModelFeature, Origin, Tree};
use std::collections::HashMap;
use std::str::FromStr;

/// The last version of the text that is known.
const VERSION: u32 = 4;

/// Whether a file looks like LightGBM's text.
pub fn is_likely(bytes: &[u8]) -> bool {
    ["tree\n", "tree\r\n"].iter().any(|start| bytes.starts_with(start.as_bytes()))
}

/// The lines of a part of the file, by their keys.
type Keys<'a> = HashMap<&'a str, &'a str>;

/// Reads a model.
pub fn import(bytes: &[u8], names: &FeatureNames) -> Result<Imported, Fault> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(not_ours("it is no text")) };
    let mut lines = text.lines();
    if lines.next() != Some("tree") {
        return Err(not_ours("its first line is not `tree`"));
    }
    let mut parts: Vec<Keys> = vec![Keys::new()];
    let mut is_whole = false;
    for line in lines {
        match line.split_once('=') {
            _ if line == "end of trees" => {
                is_whole = true;
                break;
            }
            Some(("Tree", number)) => parts.push(Keys::from([("Tree", number)])),
            Some((key, value)) => {
                parts.last_mut().expect("there is one from the beginning").insert(key, value);
            }
            None if line == "average_output" => {
                parts[0].insert(line, "");
            }
            None => {}
        }
    }
    let (header, trees) = parts.split_first().expect("there is one from the beginning");
    let version = header.get("version").and_then(|version| version.strip_prefix('v')?.parse::<u32>().ok());
    match version {
        Some(version) if version > VERSION => {
            return Err(Fault::new(
                format!("written by a newer LightGBM (version v{version} of its text; v{VERSION} is known)"),
                "save the model with LightGBM 4, or use a later planetree",
            ));
        }
        Some(2..) => {}
        _ => return Err(not_ours("it does not say its version, or one before v2")),
    }
    if !is_whole {
        return Err(truncated("there is no line `end of trees`"));
    }
    let sizes = header.get("tree_sizes").map(|sizes| sizes.split_whitespace().count());
    if sizes.is_some_and(|sizes| sizes != trees.len()) {
        return Err(truncated(&format!("{} of {} trees are there", trees.len(), sizes.unwrap_or(0))));
    }
    let words = text.lines().rev().find_map(|line| line.strip_prefix(PANDAS)).unwrap_or("null");
    Reader { notes: Vec::new(), zeros: 0 }.model(header, trees, names, words)
}

/// What is gathered on the way.
struct Reader {
    notes: Vec<String>,
    /// Splits at which zeros go against the threshold.
    zeros: usize,
}

impl Reader {
    fn model(
        mut self,
        header: &Keys,
        trees: &[Keys],
        names: &FeatureNames,
        words: &str,
    ) -> Result<Imported, Fault> {
        for key in ["num_class", "num_tree_per_iteration"] {
            if header.get(key).is_some_and(|count| *count != "1") {
                return Err(Fault::new(
                    "it has a score for every class",
                    "a ranking needs one score a row: import a model that is trained for one",
                ));
            }
        }
        let count = one::<usize>(header, "max_feature_idx").map_err(|problem| not_ours(&problem))? + 1;
        let own: Vec<String> = header
            .get("feature_names")
            .map_or(Vec::new(), |names| names.split_whitespace().map(str::to_owned).collect());
        if own.len() != count {
            return Err(not_ours(&format!("it has {count} features and {} names", own.len())));
        }
        let is_numbered = own.iter().enumerate().all(|(place, name)| *name == format!("Column_{place}"));
        let mut features = names.features(count, (!is_numbered).then_some(own.as_slice()))?;
        self.words(header, words, &mut features)?;
        self.objective(header.get("objective").copied().unwrap_or_default());
        let mut read = Vec::with_capacity(trees.len());
        for (place, keys) in trees.iter().enumerate() {
            let tree = self.tree(keys, count);
            read.push(
                tree.map_err(|fault| Fault { problem: format!("tree {place}: {}", fault.problem), ..fault })?,
            );
        }
        let losses = match self.zeros {
            0 => Vec::new(),
            zeros => vec![format!(
                "{zeros} splits take zero for missing (zero_as_missing) and send it against the threshold; here a zero is \
                 a number, and only what is absent is missing"
            )],
        };
        let is_mean = header.contains_key("average_output");
        // A sum that starts with a tree of one leaf starts from its value.
        let base =
            read.first().filter(|first| !is_mean && first.nodes.len() == 1).map(|first| first.nodes[0].value);
        let model = Model {
            ensemble: if is_mean { Ensemble::Bag } else { Ensemble::Boost },
            base_score: base.unwrap_or(0.0),
            base_feature: None,
            features,
            rounds: read.len() as u32 - u32::from(base.is_some()),
            trees: read.split_off(usize::from(base.is_some())),
            configuration: "# imported from LightGBM's text\n".to_owned(),
            data: Vec::new(),
            origin: Origin::default(),
        };
        Ok(Imported { model, notes: self.notes, losses })
    }

    /// Gives features their words, if the file says whose they are.
    fn words(&mut self, header: &Keys, words: &str, features: &mut [ModelFeature]) -> Result<(), Fault> {
        let invalid = || not_ours(&format!("its {PANDAS} line does not match its {WORDS}"));
        if !header.contains_key(WORDS) {
            if !matches!(words.trim(), "null" | "[]") {
                self.notes.push(
                    "it was trained on columns of type category, and does not say which: the model has no words, only \
                     the codes that pandas gave them"
                        .to_owned(),
                );
            }
            return Ok(());
        }
        let lists: Vec<Vec<String>> = serde_json::from_str(words).map_err(|_| invalid())?;
        let places: Vec<usize> = many(header, WORDS, lists.len()).map_err(|_| invalid())?;
        for (place, list) in places.into_iter().zip(lists) {
            features.get_mut(place).ok_or_else(invalid)?.words = list;
        }
        Ok(())
    }

    /// Scores are sums of leaves; some objectives make something else of them.
    fn objective(&mut self, objective: &str) {
        const OTHER: [&str; 8] = [
            "binary",
            "cross_entropy",
            "cross_entropy_lambda",
            "xentropy",
            "xentlambda",
            "poisson",
            "gamma",
            "tweedie",
        ];
        let mut words = objective.split_whitespace();
        let name = words.next().unwrap_or_default();
        if OTHER.contains(&name) || words.any(|word| word == "sqrt") {
            self.notes.push(format!(
                "the objective is {objective}: scores here are LightGBM's raw scores (raw_score=True), in the same order"
            ));
        }
    }

    fn tree(&mut self, keys: &Keys, features: usize) -> Result<Tree, Fault> {
        let invalid = |problem: String| not_ours(&problem);
        if keys.get("is_linear").is_some_and(|linear| *linear != "0") {
            return Err(Fault::new("its leaves are linear models", "train without linear_tree"));
        }
        let categorical = || {
            Fault::new(
                "it splits on categories",
                "train with numbers only: code the categories yourself, as `planetree convert` does",
            )
        };
        if keys.get("num_cat").is_some_and(|count| *count != "0") {
            return Err(categorical());
        }
        let leaves: usize = one(keys, "num_leaves").map_err(invalid)?;
        let splits = leaves.checked_sub(1).ok_or_else(|| invalid("it has no leaf".to_owned()))?;
        let values: Vec<f64> = many(keys, "leaf_value", leaves).map_err(invalid)?;
        let counts: Vec<f64> = many_or_zeros(keys, "leaf_count", leaves).map_err(invalid)?;
        let split_feature: Vec<u32> = many(keys, "split_feature", splits).map_err(invalid)?;
        let threshold: Vec<f64> = many(keys, "threshold", splits).map_err(invalid)?;
        let kinds: Vec<u8> = many(keys, "decision_type", splits).map_err(invalid)?;
        let left: Vec<i64> = many(keys, "left_child", splits).map_err(invalid)?;
        let right: Vec<i64> = many(keys, "right_child", splits).map_err(invalid)?;
        let gains: Vec<f64> = many_or_zeros(keys, "split_gain", splits).map_err(invalid)?;
        let inner_counts: Vec<f64> = many_or_zeros(keys, "internal_count", splits).map_err(invalid)?;
        let inner_values: Option<Vec<f64>> = match keys.get("internal_value") {
            Some(_) => Some(many(keys, "internal_value", splits).map_err(invalid)?),
            None => None,
        };
        if kinds.iter().any(|kind| kind & CATEGORICAL != 0) {
            return Err(categorical());
        }
        if split_feature.iter().any(|feature| *feature as usize >= features) {
            return Err(invalid("it splits on a feature that the model does not have".to_owned()));
        }
        if threshold.iter().any(|threshold| threshold.is_nan()) {
            return Err(invalid("a threshold is not a number".to_owned()));
        }
        let mut missing_left = Vec::with_capacity(splits);
        for (kind, threshold) in kinds.iter().zip(&threshold) {
            missing_left.push(self.missing_left(*kind, *threshold).map_err(invalid)?);
        }
        let find = |number: i64| -> Result<Found, String> {
            if number < 0 {
                let leaf = (-1 - number) as usize;
                let value = *values.get(leaf).ok_or_else(|| format!("there is no leaf {leaf}"))?;
                return Ok(Found { split: None, value: Some(value), cover: counts[leaf] });
            }
            let place = number as usize;
            let feature = *split_feature.get(place).ok_or_else(|| format!("there is no split {place}"))?;
            let split = FoundSplit {
                feature,
                threshold: lowered(threshold[place]),
                missing_left: missing_left[place],
                left: left[place],
                right: right[place],
                gain: gains[place],
            };
            let value = inner_values.as_ref().map(|values| values[place]);
            Ok(Found { split: Some(split), value, cover: inner_counts[place] })
        };
        assemble(if splits == 0 { -1 } else { 0 }, leaves + splits, &find).map_err(invalid)
    }

    /// Where a missing value goes. Where zero is missing, it must also go where its value says: here it is a number.
    fn missing_left(&mut self, kind: u8, threshold: f64) -> Result<bool, String> {
        let goes_left = kind & MISSING_LEFT != 0;
        let zero_goes_left = 0.0 <= threshold;
        match kind >> MISSING_KIND & 3 {
            NOTHING => Ok(zero_goes_left),
            NAN => Ok(goes_left),
            ZERO => {
                self.zeros += usize::from(goes_left != zero_goes_left);
                Ok(goes_left)
            }
            _ => Err(format!("there is no split of kind {kind}")),
        }
    }
}

/// The largest 32-bit number up to a threshold: 32-bit values are at most the one exactly if they are at
/// most the other.
fn lowered(threshold: f64) -> f32 {
    let nearest = threshold.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
    if f64::from(nearest) > threshold && nearest > f32::MIN { nearest.next_down() } else { nearest }
}

/// A number.
fn one<T: FromStr>(keys: &Keys, key: &str) -> Result<T, String> {
    let text = keys.get(key).ok_or_else(|| format!("it does not say {key}"))?;
    text.trim().parse().map_err(|_| format!("its {key} is {text:?}"))
}

/// As many numbers as there should be.
fn many<T: FromStr>(keys: &Keys, key: &str, count: usize) -> Result<Vec<T>, String> {
    let text = match keys.get(key) {
        Some(text) => text,
        None if count == 0 => return Ok(Vec::new()),
        None => return Err(format!("it does not say {key}")),
    };
    let numbers = text
        .split_whitespace()
        .map(|number| number.parse().map_err(|_| format!("{number:?} is no number for {key}")));
    let numbers: Vec<T> = numbers.collect::<Result<_, _>>()?;
    if numbers.len() == count {
        return Ok(numbers);
    }
    Err(format!("it has {} numbers for {key} instead of {count}", numbers.len()))
}

/// The same for what a model can do without.
fn many_or_zeros(keys: &Keys, key: &str, count: usize) -> Result<Vec<f64>, String> {
    match keys.get(key) {
        Some(text) if !text.trim().is_empty() => many(keys, key, count),
        _ => Ok(vec![0.0; count]),
    }
}

fn not_ours(problem: &str) -> Fault {
    Fault::new(
        format!("not a LightGBM model: {problem}"),
        "name a file that LightGBM's save_model wrote, or another --format",
    )
}

fn truncated(problem: &str) -> Fault {
    Fault::new(format!("truncated: {problem}"), "copy the whole file, or save the model again")
}
