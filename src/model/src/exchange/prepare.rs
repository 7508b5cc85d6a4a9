//! Prepares a model for export: the order and the names that features have at the target, and scores that are never
//! negative.

use crate::model::{Branch, Combine, Model, ModelFeature, Normalisation, PartFamily, Split, Tree};
use planetree_base::error::{Error, Result};
use planetree_base::suggest::{did_you_mean, nearest};
use std::collections::HashSet;

/// The features of the target, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFeatures {
    /// Pairs of a feature's name in the model and its name at the target.
    features: Vec<(String, String)>,
}

impl TargetFeatures {
    /// Parses a list of features, one per line: the name in the model, optionally followed by a tab and the name at the
    /// target. Empty lines and lines that start with `#` are ignored.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let mut features = Vec::new();
        let (mut own, mut theirs) = (HashSet::new(), HashSet::new());
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, target) = line.split_once('\t').unwrap_or((line, line));
            let (name, target) = (name.trim(), target.trim());
            let problem = match () {
                () if name.is_empty() || target.is_empty() => "a name is empty".to_owned(),
                () if !own.insert(name) => format!("feature {name} is listed twice"),
                () if !theirs.insert(target) => format!("two features are named {target} at the target"),
                () => {
                    features.push((name.to_owned(), target.to_owned()));
                    continue;
                }
            };
            return Err(Error::place(
                format_args!("{file}:{}", number + 1),
                problem,
                "write one feature per line: its name in the model, and after a tab its name at the target if it differs",
            ));
        }
        if features.is_empty() {
            return Err(Error::place(file, "no features in this file", "write one feature per line"));
        }
        Ok(TargetFeatures { features })
    }
}

/// A model with the features and the scores that the target will have.
pub struct PreparedModel {
    /// The model to export.
    pub model: Model,
    /// The model as it was read.
    pub original: Model,
    /// For each feature of the original, its index in the model to export. `None` if the target lacks the feature.
    pub(super) places: Vec<Option<u32>>,
    /// What was added to all scores.
    pub shift: f64,
}

impl PreparedModel {
    /// Prepares a model. `features` are the features of the target, by default those of the model. If
    /// `shift_nonnegative` is set, a constant is added to all scores so that none is negative.
    pub fn new(
        original: Model,
        features: Option<&TargetFeatures>,
        shift_nonnegative: bool,
    ) -> Result<PreparedModel> {
        let mut model = original.clone();
        let mut places: Vec<Option<u32>> = (0..model.features.len() as u32).map(Some).collect();
        if let Some(features) = features {
            places = reorder(&mut model, features)?;
        }
        let mut shift = 0.0;
        if shift_nonnegative {
            shift = nonnegative_shift(&model)?;
            add_constant(&mut model, shift);
        }
        Ok(PreparedModel { model, original, places, shift })
    }
}

/// Gives the features of a model the order and the names of the target. Returns the new index of each feature.
fn reorder(model: &mut Model, features: &TargetFeatures) -> Result<Vec<Option<u32>>> {
    let mut places: Vec<Option<u32>> = vec![None; model.features.len()];
    let mut listed: Vec<ModelFeature> = Vec::with_capacity(features.features.len());
    for (name, target) in &features.features {
        let Some(index) = model.features.iter().position(|feature| feature.name == *name) else {
            let names = model.features.iter().map(|feature| feature.name.as_str());
            return Err(Error::usage(
                format_args!("--features: the model has no feature {name}"),
                did_you_mean(
                    &nearest(name, names),
                    "list the names of the model's features, which `planetree describe` prints",
                ),
            ));
        };
        places[index] = Some(listed.len() as u32);
        listed.push(ModelFeature { name: target.clone(), ..model.features[index].clone() });
    }
    let used = model.used_features();
    if let Some(absent) = used.iter().find(|feature| places[**feature as usize].is_none()) {
        return Err(Error::usage(
            format_args!(
                "--features: feature {} is not listed, but the model uses it",
                model.features[*absent as usize].name
            ),
            "add it to the list, or train a model without it",
        ));
    }
    // Features that no part uses may be referred to by linear terms of weight 0: they go to the end.
    let mut numbers = Vec::with_capacity(places.len());
    let mut extra = Vec::new();
    for (index, place) in places.iter().enumerate() {
        numbers.push(place.unwrap_or_else(|| {
            extra.push(index);
            (listed.len() + extra.len() - 1) as u32
        }));
    }
    for part in &mut model.parts {
        part.family.renumber_features(&numbers);
        if let PartFamily::Linear(function) = &mut part.family {
            function.terms.retain(|term| (term.feature as usize) < listed.len());
        }
    }
    model.features = listed;
    Ok(places)
}

/// Returns what must be added to the scores of a model so that none is negative.
fn nonnegative_shift(model: &Model) -> Result<f64> {
    let refuse = |reason: String| {
        Err(Error::place(
            &model.origin,
            format_args!("{reason}, so its scores have no known minimum"),
            "export without --shift-nonnegative, and add a constant at the target",
        ))
    };
    if let Some(coupling) = model.coupling() {
        return refuse(coupling);
    }
    let mut least = model.intercept;
    for (number, part) in model.parts.iter().enumerate() {
        let label = model.part_label(number);
        let Some(ensemble) = part.family.trees() else {
            return refuse(format!("{label} is not made of trees"));
        };
        if part.normalisation != Normalisation::None || ensemble.combine == Combine::Wins {
            return refuse(format!("{label} depends on the other documents of a query"));
        }
        if ensemble.base_feature.is_some() {
            return refuse(format!("{label} adds the value of a feature"));
        }
        let extreme = |tree: &Tree| {
            // A missing value may end at a node whose third branch no training row took.
            let ends = |split: &Split| split.missing == Branch::Middle && split.middle.is_none();
            let leaves = tree.nodes.iter().filter(|node| node.split.as_ref().is_none_or(ends));
            leaves.map(|leaf| leaf.value * part.weight).fold(f64::INFINITY, f64::min)
        };
        let sum: f64 = ensemble.trees.iter().map(extreme).sum();
        least += part.weight * ensemble.base_score + sum * ensemble.tree_weight();
    }
    // 32-bit sums may end a little below.
    let margin = least.abs() * 1e-5;
    Ok(if least < 0.0 { margin - least } else { 0.0 })
}

/// Adds a constant to all scores. A model that is a single plain part stays one.
fn add_constant(model: &mut Model, constant: f64) {
    match model.only_trees_mut() {
        Some(ensemble) => ensemble.base_score += constant,
        None => model.intercept += constant,
    }
}
