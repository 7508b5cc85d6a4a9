//! Reads LightGBM's text format.

use super::{CATEGORICAL, MISSING_KIND, MISSING_LEFT, NAN, NOTHING, PANDAS, TINY, WORDS, ZERO};
use crate::exchange::assemble::{ForeignNode, ForeignSplit, assemble_numbered, round_down};
use crate::exchange::categories::{CategorySplit, SetSides, check_added_nodes, expand_sets, words_of};
use crate::exchange::frame::{FrameCategories, UNKNOWN_COLUMNS};
use crate::exchange::names::{NameSource, check_feature_count};
use crate::exchange::{ImportError, ImportedModel, imported_part};
use crate::model::{Combine, ModelFeature, Part, Tree, TreeEnsemble};
use serde_json::Value;
use std::collections::HashMap;
use std::str::FromStr;

/// The latest supported version of the format.
const VERSION: u32 = 4;

/// Returns the largest value of a numeric feature if its values may be codes of categories: if its range, such as
/// `[0:4]`, is one of whole numbers.
fn largest_whole(info: &str) -> Option<usize> {
    let (least, most) = info.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    least.parse::<usize>().ok()?;
    most.parse().ok()
}

/// Returns whether a file looks like LightGBM's text format.
pub(crate) fn is_likely(bytes: &[u8]) -> bool {
    ["tree\n", "tree\r\n"].iter().any(|start| bytes.starts_with(start.as_bytes()))
}

/// The `key=value` lines of a section of the file.
pub(super) type TextSection<'a> = HashMap<&'a str, &'a str>;

/// Reads a model.
pub(crate) fn import(bytes: &[u8], names: &NameSource) -> Result<ImportedModel, ImportError> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(invalid("the file is not UTF-8 text")) };
    let (sections, is_complete) = sections(text).map_err(invalid)?;
    let (header, trees) = sections.split_first().expect("the header is always there");
    let version = header.get("version").and_then(|version| version.strip_prefix('v')?.parse::<u32>().ok());
    match version {
        Some(version) if version > VERSION => {
            return Err(ImportError::new(
                format!("written by a newer LightGBM (format v{version}; up to v{VERSION} is supported)"),
                "save the model with LightGBM 4, or use a newer version of planetree",
            ));
        }
        Some(2..) => {}
        _ => return Err(invalid("the version is missing or older than v2")),
    }
    if !is_complete {
        return Err(ImportError::truncated("the line `end of trees` is missing"));
    }
    let sizes = header.get("tree_sizes").map(|sizes| sizes.split_whitespace().count());
    if sizes.is_some_and(|sizes| sizes != trees.len()) {
        return Err(ImportError::truncated(format_args!(
            "only {} of {} trees are present",
            trees.len(),
            sizes.unwrap_or(0)
        )));
    }
    let words = text.lines().rev().find_map(|line| line.strip_prefix(PANDAS)).unwrap_or("null");
    LightGbmReader { notes: Vec::new(), frame: None, zeros: 0, added_nodes: 0 }
        .model(header, trees, names, words)
}

/// Splits a file into the section of the model and those of the trees. Also returns whether the end of the trees was found.
pub(super) fn sections(text: &str) -> Result<(Vec<TextSection<'_>>, bool), &'static str> {
    let mut lines = text.lines();
    if lines.next() != Some("tree") {
        return Err("the first line is not `tree`");
    }
    let mut sections: Vec<TextSection> = vec![TextSection::new()];
    for line in lines {
        match line.split_once('=') {
            _ if line == "end of trees" => return Ok((sections, true)),
            Some(("Tree", number)) => sections.push(TextSection::from([("Tree", number)])),
            Some((key, value)) => {
                sections.last_mut().expect("the header is always there").insert(key, value);
            }
            None if line == "average_output" => {
                sections[0].insert(line, "");
            }
            None => {}
        }
    }
    Ok((sections, false))
}

/// Converts the sections of a file to a model, and collects notes and losses on the way.
struct LightGbmReader {
    notes: Vec<String>,
    /// The categories of a pandas frame.
    frame: Option<FrameCategories>,
    /// Number of splits that treat zero as missing and send it to the opposite side of what the threshold implies.
    zeros: usize,
    /// Number of nodes that splits on sets of categories add to the trees.
    added_nodes: usize,
}

impl LightGbmReader {
    fn model(
        mut self,
        header: &TextSection,
        trees: &[TextSection],
        names: &NameSource,
        words: &str,
    ) -> Result<ImportedModel, ImportError> {
        for key in ["num_class", "num_tree_per_iteration"] {
            if header.get(key).is_some_and(|count| *count != "1") {
                return Err(ImportError::new(
                    "the model has one score per class",
                    "import a model with one score per row, which ranking needs",
                ));
            }
        }
        let last: usize = number(header, "max_feature_idx").map_err(|problem| invalid(&problem))?;
        let count = last.saturating_add(1);
        check_feature_count(count).map_err(|problem| invalid(&problem))?;
        let own: Vec<String> = header
            .get("feature_names")
            .map_or(Vec::new(), |names| names.split_whitespace().map(str::to_owned).collect());
        if own.len() != count {
            return Err(invalid(&format!("the file has {count} features, but {} feature names", own.len())));
        }
        let is_numbered = own.iter().enumerate().all(|(index, name)| *name == format!("Column_{index}"));
        let mut features = names.features(count, (!is_numbered).then_some(own.as_slice()))?;
        self.words(header, words, &mut features)?;
        self.objective(header.get("objective").copied().unwrap_or_default());
        let mut read = Vec::with_capacity(trees.len());
        for (number, section) in trees.iter().enumerate() {
            let tree = self.tree(section, count);
            read.push(tree.map_err(|error| error.in_tree(number))?);
        }
        let losses = match self.zeros {
            0 => Vec::new(),
            zeros => vec![format!(
                "{zeros} splits treat zero as missing (zero_as_missing) and send it to the other side of the threshold; \
                 in planetree zero is a value, and only absent values are missing"
            )],
        };
        let is_mean = header.contains_key("average_output");
        // If the first tree of a sum is a single leaf, its value is the base score.
        let base =
            read.first().filter(|first| !is_mean && first.nodes.len() == 1).map(|first| first.nodes[0].value);
        let rounds = read.len() as u32 - u32::from(base.is_some());
        let combine = if is_mean { Combine::Mean } else { Combine::Sum };
        let trees = read.split_off(usize::from(base.is_some()));
        let ensemble = TreeEnsemble::new(combine, base.unwrap_or(0.0), None, trees);
        let model =
            imported_part(Part::trees(ensemble), features, rounds, "# imported from LightGBM's text\n");
        Ok(ImportedModel { model, notes: self.notes, losses, frame: self.frame })
    }

    /// Sets the categories of the features if the file specifies which features they belong to. Otherwise adds a note.
    fn words(
        &mut self,
        header: &TextSection,
        words: &str,
        features: &mut [ModelFeature],
    ) -> Result<(), ImportError> {
        let mismatch = || invalid(&format!("the {PANDAS} line does not match {WORDS}"));
        if !header.contains_key(WORDS) {
            if !matches!(words.trim(), "null" | "[]") {
                self.pandas_words(header, words, features);
            }
            return Ok(());
        }
        let lists: Vec<Vec<String>> = serde_json::from_str(words).map_err(|_| mismatch())?;
        let indices: Vec<usize> = numbers(header, WORDS, lists.len()).map_err(|_| mismatch())?;
        for (index, list) in indices.into_iter().zip(lists) {
            features.get_mut(index).ok_or_else(mismatch)?.words = list;
        }
        Ok(())
    }

    /// Sets the categories of a pandas frame if it is certain which features they belong to. The file has the lists of
    /// categories in the order of the columns, but not the columns. It has the lists of all columns of type category,
    /// also of those that are numeric features (ordered categories, or columns that are not in `categorical_feature`),
    /// and categorical features may also be columns of integers. So the lists are used only if there are as many
    /// categorical features, no feature has a code beyond its list, and the values of no other feature could be codes.
    fn pandas_words(&mut self, header: &TextSection, words: &str, features: &mut [ModelFeature]) {
        let infos = header.get("feature_infos").copied().unwrap_or_default();
        let largest_code = |info: &str| -> Option<usize> {
            // [0:1] is the range of a numeric feature, and 0:2:1 are codes.
            let codes: Result<Vec<i64>, _> = info.split(':').map(str::parse).collect();
            codes.ok()?.into_iter().max().map(|code| code.max(0) as usize)
        };
        let categorical: Vec<(usize, usize)> = infos
            .split_whitespace()
            .enumerate()
            .filter_map(|(index, info)| Some((index, largest_code(info)?)))
            .collect();
        let numeric: Vec<usize> = infos.split_whitespace().filter_map(largest_whole).collect();
        // LightGBM says nothing else about a feature that it does not use, such as a category that is the same in all rows.
        let has_unused = infos.split_whitespace().any(|info| info == "none");
        let lists: Option<Vec<Vec<Value>>> = serde_json::from_str(words).ok();
        self.frame = Some(lists.as_deref().map_or_else(FrameCategories::unreadable, FrameCategories::new));
        let fits_one = |list: &[Value], largest: usize| {
            largest < list.len() && numeric.iter().all(|largest| *largest >= list.len())
        };
        let fits = |lists: &Vec<Vec<Value>>| {
            !has_unused
                && lists.len() == categorical.len()
                && lists.iter().zip(&categorical).all(|(list, (_, largest))| fits_one(list, *largest))
                && categorical.iter().all(|(index, _)| *index < features.len())
        };
        let lists = lists.filter(fits);
        let words: Option<Vec<Vec<String>>> =
            lists.and_then(|lists| lists.iter().map(|list| words_of(list)).collect());
        let Some(words) = words else {
            self.notes.push(UNKNOWN_COLUMNS.to_owned());
            return;
        };
        for ((index, _), words) in categorical.into_iter().zip(words) {
            features[index].words = words;
        }
    }

    /// Adds a note if LightGBM's predictions with this objective are transformed scores.
    fn objective(&mut self, objective: &str) {
        const TRANSFORMED: [&str; 8] = [
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
        if TRANSFORMED.contains(&name) || words.any(|word| word == "sqrt") {
            self.notes.push(format!(
                "the objective is {objective}: scores are LightGBM's raw scores (raw_score=True), which give the same ranking"
            ));
        }
    }

    fn tree(&mut self, section: &TextSection, features: usize) -> Result<Tree, ImportError> {
        let invalid = |problem: String| invalid(&problem);
        if section.get("is_linear").is_some_and(|linear| *linear != "0") {
            return Err(ImportError::new("linear leaves are not supported", "train without linear_tree"));
        }
        let leaves: usize = number(section, "num_leaves").map_err(invalid)?;
        // Absent lists become zeros, so the number must not be larger than a list that has to be there.
        if leaves > section.get("leaf_value").map_or(0, |values| values.len()) {
            return Err(invalid(format!("num_leaves is {leaves}, but there are fewer values")));
        }
        let splits = leaves.checked_sub(1).ok_or_else(|| invalid("num_leaves is 0".to_owned()))?;
        let values: Vec<f64> = numbers(section, "leaf_value", leaves).map_err(invalid)?;
        let counts: Vec<f64> = numbers_or_zeros(section, "leaf_count", leaves).map_err(invalid)?;
        let split_feature: Vec<u32> = numbers(section, "split_feature", splits).map_err(invalid)?;
        let threshold: Vec<f64> = numbers(section, "threshold", splits).map_err(invalid)?;
        let kinds: Vec<u8> = numbers(section, "decision_type", splits).map_err(invalid)?;
        let left: Vec<i64> = numbers(section, "left_child", splits).map_err(invalid)?;
        let right: Vec<i64> = numbers(section, "right_child", splits).map_err(invalid)?;
        let gains: Vec<f64> = numbers_or_zeros(section, "split_gain", splits).map_err(invalid)?;
        let inner_counts: Vec<f64> = numbers_or_zeros(section, "internal_count", splits).map_err(invalid)?;
        let inner_values: Option<Vec<f64>> = match section.get("internal_value") {
            Some(_) => Some(numbers(section, "internal_value", splits).map_err(invalid)?),
            None => None,
        };
        if split_feature.iter().any(|feature| *feature as usize >= features) {
            return Err(invalid("a split uses a feature that does not exist".to_owned()));
        }
        if threshold.iter().any(|threshold| threshold.is_nan()) {
            return Err(invalid("a threshold is NaN".to_owned()));
        }
        let mut missing_left = Vec::with_capacity(splits);
        for (kind, threshold) in kinds.iter().zip(&threshold) {
            // The threshold of a categorical split is the number of its set, and missing values always go right.
            if kind & CATEGORICAL != 0 {
                missing_left.push(false);
                continue;
            }
            missing_left.push(self.missing_left(*kind, *threshold).map_err(invalid)?);
        }
        let find = |number: i64| -> Result<ForeignNode, String> {
            if number < 0 {
                let leaf = (-1 - number) as usize;
                let value = *values.get(leaf).ok_or_else(|| format!("leaf {leaf} does not exist"))?;
                return Ok(ForeignNode { split: None, value: Some(value), cover: counts[leaf] });
            }
            let index = number as usize;
            let feature = *split_feature.get(index).ok_or_else(|| format!("split {index} does not exist"))?;
            let split = ForeignSplit {
                feature,
                threshold: at_most(threshold[index]),
                missing_left: missing_left[index],
                left: left[index],
                right: right[index],
                gain: gains[index],
            };
            let value = inner_values.as_ref().map(|values| values[index]);
            Ok(ForeignNode { split: Some(split), value, cover: inner_counts[index] })
        };
        let root = if splits == 0 { -1 } else { 0 };
        let (tree, numbers) = assemble_numbered(root, leaves + splits, &find).map_err(invalid)?;
        let sets = CategorySets::read(section)?;
        let set = |number: &i64| match usize::try_from(*number) {
            Ok(split) if kinds[split] & CATEGORICAL != 0 => sets.split(threshold[split]).map(Some),
            _ => Ok(None),
        };
        let sets: Vec<Option<CategorySplit>> = numbers.iter().map(set).collect::<Result<_, _>>()?;
        let before = tree.nodes.len();
        let tree = expand_sets(tree, &sets)?;
        self.added_nodes += tree.nodes.len() - before;
        check_added_nodes(self.added_nodes)?;
        Ok(tree)
    }

    /// Returns whether missing values go left. In planetree zero is never missing. So a split that treats zero as
    /// missing keeps its meaning only if it sends zero to the side that the threshold implies. All other splits that
    /// treat zero as missing are counted in `zeros`.
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
            _ => Err(format!("invalid decision_type {kind}")),
        }
    }
}

/// The sets of categories of a tree, as bits: those of set `n` are in the words from `bounds[n]` to `bounds[n + 1]`.
struct CategorySets {
    bounds: Vec<usize>,
    words: Vec<u32>,
}

impl CategorySets {
    fn read(section: &TextSection) -> Result<Self, ImportError> {
        let invalid = |problem: String| invalid(&problem);
        let count: usize = match section.get("num_cat") {
            Some(_) => number(section, "num_cat").map_err(invalid)?,
            None => 0,
        };
        if count == 0 {
            return Ok(CategorySets { bounds: vec![0], words: Vec::new() });
        }
        let bounds: Vec<usize> =
            numbers(section, "cat_boundaries", count.saturating_add(1)).map_err(invalid)?;
        let words = bounds.last().copied().unwrap_or(0);
        let words: Vec<u32> = numbers(section, "cat_threshold", words).map_err(invalid)?;
        if bounds[0] != 0 || !bounds.is_sorted() {
            return Err(invalid("cat_boundaries are not in ascending order".to_owned()));
        }
        Ok(CategorySets { bounds, words })
    }

    /// Returns the split on a set, whose number is stored as a threshold. Values in the set go left; missing and
    /// negative values and all others go right. Fractions are cut off, so values above -1 have code 0.
    fn split(&self, threshold: f64) -> Result<CategorySplit, ImportError> {
        // A negative number and NaN become 0, and numbers that are too large stay so.
        let number = threshold as usize;
        let is_number = number as f64 == threshold && number.saturating_add(1) < self.bounds.len();
        if !is_number {
            return Err(invalid(&format!(
                "a split on categories refers to the set {threshold}, which does not exist"
            )));
        }
        let words = &self.words[self.bounds[number]..self.bounds[number + 1]];
        let codes = (0..words.len() as u32 * u32::BITS)
            .filter(|code| words[(code / u32::BITS) as usize] >> (code % u32::BITS) & 1 == 1);
        CategorySplit::new(codes, SetSides { set_left: true, missing_left: false, below_zero: -1.0 })
    }
}

/// Returns the threshold of a split. LightGBM ends negative values at the largest number that it does not tell from 0, but
/// reads that number as 0, which is above the threshold.
fn at_most(threshold: f64) -> f32 {
    let threshold = round_down(threshold);
    if threshold == -TINY { threshold.next_down() } else { threshold }
}

/// Parses the number stored under a key.
pub(super) fn number<T: FromStr>(section: &TextSection, key: &str) -> Result<T, String> {
    let text = section.get(key).ok_or_else(|| format!("{key} is missing"))?;
    text.trim().parse().map_err(|_| format!("{key} is {text:?}, not a number"))
}

/// Parses the list stored under a key, which must have `count` numbers.
pub(super) fn numbers<T: FromStr>(section: &TextSection, key: &str, count: usize) -> Result<Vec<T>, String> {
    let text = match section.get(key) {
        Some(text) => text,
        None if count == 0 => return Ok(Vec::new()),
        None => return Err(format!("{key} is missing")),
    };
    let numbers = text
        .split_whitespace()
        .map(|number| number.parse().map_err(|_| format!("{key} has {number:?}, not a number")));
    let numbers: Vec<T> = numbers.collect::<Result<_, _>>()?;
    if numbers.len() == count {
        return Ok(numbers);
    }
    Err(format!("{key} has {} numbers, expected {count}", numbers.len()))
}

/// Parses the list stored under an optional key. Returns zeros if the key is absent or its list is empty.
fn numbers_or_zeros(section: &TextSection, key: &str, count: usize) -> Result<Vec<f64>, String> {
    match section.get(key) {
        Some(text) if !text.trim().is_empty() => numbers(section, key, count),
        _ => Ok(vec![0.0; count]),
    }
}

fn invalid(problem: &str) -> ImportError {
    ImportError::new(
        format!("not a LightGBM model: {problem}"),
        "use a file written by LightGBM's save_model, or pass another --format",
    )
}
