//! Combines several models into one: a blend, whose score is a weighted sum of the models' scores.
//!
//! ```text
//! score = intercept + sum over the models of weight * normalised score of the model
//! ```
//!
//! A blend is a model like any other: it has the parts of all models, with their weights multiplied. Features are
//! matched by name. If the scores of a model with several parts are normalised over the documents of a query, its parts
//! are a group of the blend.

use super::{DatasetRecord, Link, Model, ModelFeature, Normalisation, Origin, PartGroup, Term};
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
    /// Appends the parts with their weights and normalisations in the blend, and adds to the intercept.
    fn add_parts(&self, weight: f64, numbers: &[u32], blend: &mut Model) {
        let (model, first_part) = (&self.model, blend.parts.len());
        let is_single = model.parts.len() == 1;
        for part in &model.parts {
            let mut added = part.clone();
            added.name = if is_single { self.name.clone() } else { format!("{}.{}", self.name, part.name) };
            if added.configuration.is_empty() {
                added.configuration.clone_from(&model.configuration);
            }
            added.role = None; // stages, runs and classes are those of one model, not of a blend
            added.family.renumber_features(numbers);
            blend.parts.push(added);
        }
        let first_group = blend.groups.len();
        let moved = |group: &PartGroup| PartGroup {
            name: format!("{}.{}", self.name, group.name),
            first_part: first_part + group.first_part,
            ..group.clone()
        };
        match self.normalisation {
            Normalisation::None => {
                blend.intercept += weight * model.intercept;
                blend.groups.extend(model.groups.iter().map(moved));
                for term in model.terms() {
                    match term {
                        Term::Part(part) => blend.parts[first_part + part].weight *= weight,
                        Term::Group(group, _) => blend.groups[first_group + group].weight *= weight,
                    }
                }
            }
            normalisation if self.is_normalised_as_part() => {
                // The normalised value is the same without the weight of the part.
                let part = &mut blend.parts[first_part];
                (part.weight, part.normalisation) = (weight, normalisation);
            }
            normalisation => {
                blend.groups.push(PartGroup {
                    name: self.name.clone(),
                    first_part,
                    parts: model.parts.len(),
                    link: Link::Identity,
                    intercept: model.intercept,
                    normalisation,
                    weight,
                });
                blend.groups.extend(model.groups.iter().map(moved));
            }
        }
    }

    /// Returns whether the normalised score is that of a single part, so that no group is needed.
    fn is_normalised_as_part(&self) -> bool {
        let Model { intercept, parts, groups, .. } = &self.model;
        let [part] = parts.as_slice() else { return false };
        // Neither a constant nor a positive factor changes a normalised value, except that `unit_variance` keeps the mean,
        // and the values of queries whose documents all have the same one.
        let is_kept =
            self.normalisation == Normalisation::UnitVariance && (*intercept != 0.0 || part.weight != 1.0);
        groups.is_empty() && part.normalisation == Normalisation::None && part.weight > 0.0 && !is_kept
    }
}

/// Combines models into one, with one weight per model. `configuration` describes the blend, as TOML lines. Returns an
/// error that names the problem if two models treat a feature differently.
pub fn blend(
    members: &[BlendMember],
    weights: &[f64],
    intercept: f64,
    configuration: String,
) -> Result<Model> {
    let mut union = FeatureUnion::default();
    let numbers: Vec<Vec<u32>> = members.iter().map(|member| union.add(member)).collect::<Result<_>>()?;
    let mut blend = Model {
        intercept,
        parts: Vec::new(),
        groups: Vec::new(),
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

    /// A normalised sum is a group; the parts keep their weights within it.
    #[test]
    fn sums_of_parts_are_normalised_as_a_group() {
        let mut sum = member("sum", Normalisation::Z);
        sum.model.parts[0].weight = 0.5;
        sum.model.parts.push(Part { weight: -2.0, ..sum.model.parts[0].clone() });
        sum.model.intercept = 3.0;
        let blended = |member: BlendMember| {
            let first = self::member("first", Normalisation::None);
            blend(&[first, member], &[1.0, 4.0], 0.0, String::new()).unwrap()
        };
        let model = blended(sum.clone());
        let group = PartGroup {
            name: "sum".to_owned(),
            first_part: 1,
            parts: 2,
            link: Link::Identity,
            intercept: 3.0,
            normalisation: Normalisation::Z,
            weight: 4.0,
        };
        assert_eq!(model.groups, std::slice::from_ref(&group));
        assert_eq!(model.parts.iter().map(|part| part.weight).collect::<Vec<_>>(), [1.0, 0.5, -2.0]);
        assert_eq!(model.intercept, 0.0);
        // A blend of a blend: the groups of the inner one are moved, and only its terms are weighted.
        let plain = blended(BlendMember {
            name: "twice".to_owned(),
            model: model.clone(),
            normalisation: Normalisation::None,
        });
        let moved = PartGroup { name: "twice.sum".to_owned(), first_part: 2, weight: 16.0, ..group.clone() };
        assert_eq!(plain.groups, [moved]);
        assert_eq!(plain.parts.iter().map(|part| part.weight).collect::<Vec<_>>(), [1.0, 4.0, 0.5, -2.0]);
        let nested =
            blended(BlendMember { name: "twice".to_owned(), model, normalisation: Normalisation::Rank });
        let outer = PartGroup {
            name: "twice".to_owned(),
            parts: 3,
            intercept: 0.0,
            normalisation: Normalisation::Rank,
            ..group.clone()
        };
        let inner = PartGroup { name: "twice.sum".to_owned(), first_part: 2, ..group };
        assert_eq!(nested.groups, [outer, inner]);
    }

    #[test]
    fn only_what_a_part_cannot_express_becomes_a_group() {
        let groups = |change: &dyn Fn(&mut Model), normalisation| {
            let mut member = member("m", normalisation);
            change(&mut member.model);
            blend(&[member], &[1.0], 0.0, String::new()).unwrap().groups.len()
        };
        let scaled: &dyn Fn(&mut Model) = &|model| (model.parts[0].weight, model.intercept) = (3.0, 1.0);
        for normalisation in
            [Normalisation::None, Normalisation::Z, Normalisation::Minmax, Normalisation::Rank]
        {
            assert_eq!(groups(scaled, normalisation), 0, "{normalisation:?}");
        }
        let cases: [&dyn Fn(&mut Model); 5] = [
            scaled,
            &|model| model.parts[0].weight = 3.0,
            &|model| model.parts[0].weight = -1.0,
            &|model| model.parts[0].normalisation = Normalisation::Rank,
            &|model| model.parts.push(model.parts[0].clone()),
        ];
        for change in cases {
            assert_eq!(groups(change, Normalisation::UnitVariance), 1);
        }
    }
}
