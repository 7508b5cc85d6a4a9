//! Combines several models into one: a blend, whose score is a weighted sum of the models' scores.
//!
//! ```text
//! score = intercept + sum over the models of weight * normalised score of the model
//! ```
//!
//! A blend is a model like any other: it has the parts of all models, with their weights multiplied. Features are
//! matched by name. The scores of a model can be normalised over the documents of a query only if they are the values
//! of a single part, because a model has no place for the normalisation of a sum of parts.

use super::{DatasetRecord, Model, ModelFeature, Normalisation, Origin};
use planetree_base::error::{Error, Result};
use std::collections::HashMap;

/// A model of a blend.
#[derive(Debug, Clone, PartialEq)]
pub struct BlendMember {
    /// Name of the model in messages and in the names of parts.
    pub name: String,
    /// The model.
    pub model: Model,
    /// How its scores are normalised over the documents of a query.
    pub normalisation: Normalisation,
}

impl BlendMember {
    /// Returns an error if the scores cannot be normalised by a blend.
    pub fn check(&self) -> Result<()> {
        let Model { intercept, parts, .. } = &self.model;
        let normalisation = self.normalisation.name();
        let refused = |problem: String| {
            Error::place(
                &self.name,
                format_args!("cannot be normalised by {normalisation}: {problem}"),
                "pass `none` as the normalisation of this model: weights found by ols or ascent account for its scale; or \
                 blend tables of predictions with --predictions",
            )
        };
        match (self.normalisation, parts.as_slice()) {
            (Normalisation::None, _) => Ok(()),
            (_, [part]) if part.normalisation != Normalisation::None => {
                Err(refused(format!("its scores are already normalised by {}", part.normalisation.name())))
            }
            (_, [part]) if part.weight <= 0.0 => {
                Err(refused(format!("its only part has the weight {}", part.weight)))
            }
            (Normalisation::UnitVariance, [_]) if *intercept != 0.0 => {
                Err(refused(format!("it has an intercept, {intercept}")))
            }
            (_, [_]) => Ok(()),
            (_, parts) => Err(refused(format!("it is a sum of {} parts", parts.len()))),
        }
    }

    /// Appends the parts with their weights and normalisations in the blend, and adds to the intercept.
    fn add_parts(&self, weight: f64, numbers: &[u32], blend: &mut Model) {
        let model = &self.model;
        let is_single = model.parts.len() == 1;
        if self.normalisation == Normalisation::None {
            blend.intercept += weight * model.intercept;
        }
        for part in &model.parts {
            let mut added = part.clone();
            added.name = if is_single { self.name.clone() } else { format!("{}.{}", self.name, part.name) };
            if added.configuration.is_empty() {
                added.configuration.clone_from(&model.configuration);
            }
            added.role = None; // stages, runs and classes are those of one model, not of a blend
            added.family.renumber_features(numbers);
            // A normalised value does not depend on a positive factor, so the weight of the part does not count.
            (added.weight, added.normalisation) = match self.normalisation {
                Normalisation::None => (weight * part.weight, part.normalisation),
                normalisation => (weight, normalisation),
            };
            blend.parts.push(added);
        }
    }
}

/// Combines models into one, with one weight per model. `configuration` describes the blend, as TOML lines. Returns an
/// error that names the problem if a model cannot be normalised or if two models treat a feature differently.
pub fn blend(
    members: &[BlendMember],
    weights: &[f64],
    intercept: f64,
    configuration: String,
) -> Result<Model> {
    members.iter().try_for_each(BlendMember::check)?;
    let mut union = FeatureUnion::default();
    let numbers: Vec<Vec<u32>> = members.iter().map(|member| union.add(member)).collect::<Result<_>>()?;
    let mut blend = Model {
        intercept,
        parts: Vec::new(),
        features: Vec::new(),
        configuration,
        data: Vec::new(),
        rounds: members.iter().fold(0, |rounds, member| rounds.saturating_add(member.model.rounds)),
        start_scores: None,
        origin: Origin::default(),
    };
    for ((member, weight), numbers) in members.iter().zip(weights).zip(&numbers) {
        member.add_parts(*weight, numbers, &mut blend);
        let new: Vec<DatasetRecord> =
            member.model.data.iter().filter(|record| !blend.data.contains(record)).cloned().collect();
        blend.data.extend(new);
    }
    blend.features = union.features;
    match blend.fault() {
        None => Ok(blend),
        Some(fault) => Err(Error::usage(format_args!("the blend is not a valid model: {fault}"), REMEDY)),
    }
}

const REMEDY: &str = "check the weights and the models";

/// The features of all models, matched by name.
#[derive(Default)]
struct FeatureUnion<'a> {
    features: Vec<ModelFeature>,
    numbers: HashMap<&'a str, u32>,
    /// For each feature, the first model whose scores depend on it.
    users: Vec<Option<&'a str>>,
}

impl<'a> FeatureUnion<'a> {
    /// Adds the features of a model. Returns the number of each feature in the blend.
    fn add(&mut self, member: &'a BlendMember) -> Result<Vec<u32>> {
        let used = member.model.used_features();
        let mut numbers = Vec::with_capacity(member.model.features.len());
        for (index, feature) in (0..).zip(&member.model.features) {
            let number = *self.numbers.entry(&feature.name).or_insert(self.features.len() as u32);
            let place = number as usize;
            if place == self.features.len() {
                self.features.push(feature.clone());
                self.users.push(None);
            }
            if used.contains(&index) {
                match self.users[place] {
                    Some(user) => check_same(&self.features[place], user, feature, &member.name)?,
                    // No score depends on the feature of earlier models, so this model decides.
                    None => self.features[place] = feature.clone(),
                }
                self.users[place].get_or_insert(&member.name);
            }
            numbers.push(number);
        }
        Ok(numbers)
    }
}

/// Checks that two models treat a feature in the same way.
fn check_same(first: &ModelFeature, user: &str, other: &ModelFeature, name: &str) -> Result<()> {
    let place = || format!("{user} and {name}");
    let feature = &first.name;
    if first.fill.map(f32::to_bits) != other.fill.map(f32::to_bits) {
        let shown = |fill: Option<f32>| match fill {
            Some(fill) => format!("replaced by {fill}"),
            None => "kept".to_owned(),
        };
        return Err(Error::place(
            place(),
            format_args!(
                "missing values of feature {feature} are {} in the first and {} in the second",
                shown(first.fill),
                shown(other.fill)
            ),
            "train the models with the same parameter `missing` on the same data, or blend tables of predictions with \
             --predictions",
        ));
    }
    if first.words != other.words {
        let problem = match (first.words.is_empty(), other.words.is_empty()) {
            (true, false) => "numeric in the first and categorical in the second",
            (false, true) => "categorical in the first and numeric in the second",
            _ => "encoded by different categories",
        };
        return Err(Error::place(
            place(),
            format_args!("feature {feature} is {problem}"),
            "convert the training data of one model with --categories-from the other's and train it again, or blend tables \
             of predictions with --predictions",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Part, TreeEnsemble, example};

    fn member(name: &str, normalisation: Normalisation) -> BlendMember {
        BlendMember { name: name.to_owned(), model: example(), normalisation }
    }

    #[test]
    fn weights_are_multiplied_and_features_matched_by_name() {
        let first = member("a", Normalisation::None);
        let mut second = member("b", Normalisation::Z);
        second.model.features.reverse();
        let last = second.model.features.len() as u32 - 1;
        for part in &mut second.model.parts {
            part.family.renumber_features(&(0..=last).rev().collect::<Vec<u32>>());
        }
        let mut third = member("c", Normalisation::None);
        third.model.parts[0].weight = 0.5;
        third.model.parts.push(Part { name: "other".to_owned(), ..third.model.parts[0].clone() });
        third.model.intercept = 3.0;
        let blend = blend(&[first, second, third], &[2.0, 0.25, -4.0], 1.0, String::new()).unwrap();
        assert_eq!(blend.intercept, 1.0 - 12.0);
        assert_eq!(blend.features, example().features);
        let parts: Vec<(&str, f64, Normalisation)> =
            blend.parts.iter().map(|part| (part.name.as_str(), part.weight, part.normalisation)).collect();
        assert_eq!(
            parts,
            [
                ("a", 2.0, Normalisation::None),
                ("b", 0.25, Normalisation::Z),
                ("c.trees", -2.0, Normalisation::None),
                ("c.other", -2.0, Normalisation::None),
            ]
        );
        assert!(blend.parts.iter().all(|part| part.family == example().parts[0].family));
        assert!(blend.parts.iter().all(|part| part.configuration == example().configuration));
        assert_eq!((blend.data, blend.rounds), (example().data, 3 * example().rounds));
    }

    #[test]
    fn features_of_one_model_only_are_kept() {
        let mut second = member("b", Normalisation::None);
        second.model.features[0].name = "other".to_owned();
        second.model.parts[0].family.trees_mut().unwrap().base_feature = Some(0);
        let blend =
            blend(&[member("a", Normalisation::None), second], &[1.0, 1.0], 0.0, String::new()).unwrap();
        assert_eq!(blend.features.len(), example().features.len() + 1);
        let base = |part: &Part| part.family.trees().and_then(|trees: &TreeEnsemble| trees.base_feature);
        let place = base(&blend.parts[1]).unwrap() as usize;
        assert_eq!(blend.features[place].name, "other");
    }

    #[test]
    fn features_that_are_treated_differently_are_refused_by_name() {
        let used = *example().used_features().iter().next().unwrap() as usize;
        let unused = (0..3).find(|index| !example().used_features().contains(index)).unwrap() as usize;
        let changed = |feature: usize, change: &dyn Fn(&mut ModelFeature)| {
            let mut other = member("b", Normalisation::None);
            change(&mut other.model.features[feature]);
            blend(&[member("a", Normalisation::None), other], &[1.0, 1.0], 0.0, String::new())
        };
        let fill: &dyn Fn(&mut ModelFeature) = &|feature| feature.fill = Some(7.0);
        let words: &dyn Fn(&mut ModelFeature) =
            &|feature| feature.words = vec!["x".to_owned(), "y".to_owned()];
        let name = &example().features[used].name;
        for (change, expected) in [(fill, "missing values of feature"), (words, "categorical")] {
            let error = changed(used, change).unwrap_err().to_string();
            assert!(error.contains("a and b") && error.contains(name) && error.contains(expected), "{error}");
            assert!(changed(unused, change).is_ok(), "a feature that no score depends on");
        }
    }

    #[test]
    fn only_a_single_part_can_be_normalised() {
        let refusal = |change: &dyn Fn(&mut Model), normalisation| {
            let mut member = member("m", normalisation);
            change(&mut member.model);
            member.check().err().map(|error| error.to_string())
        };
        let scaled: &dyn Fn(&mut Model) = &|model| (model.parts[0].weight, model.intercept) = (3.0, 1.0);
        assert_eq!(refusal(scaled, Normalisation::None), None);
        for normalisation in [Normalisation::Z, Normalisation::Minmax, Normalisation::Rank] {
            assert_eq!(refusal(scaled, normalisation), None, "{normalisation:?}");
        }
        type Change<'a> = &'a dyn Fn(&mut Model);
        let cases: [(Change<'_>, &str); 4] = [
            (scaled, "intercept, 1"),
            (&|model| model.parts[0].weight = -1.0, "weight -1"),
            (&|model| model.parts[0].normalisation = Normalisation::Rank, "already normalised by rank"),
            (&|model| model.parts.push(model.parts[0].clone()), "sum of 2 parts"),
        ];
        for (change, expected) in cases {
            let problem = refusal(change, Normalisation::UnitVariance).unwrap();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
