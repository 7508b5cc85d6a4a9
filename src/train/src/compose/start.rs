//! The scores that a stage starts from.

use super::members::MemberPlan;
use crate::driver::{Observer, TrainRequest};
use planetree_base::error::Result;
use planetree_base::size::counted;
use planetree_data::dataset::{KnownFeature, first_few};
use planetree_data::source::LabelledData;
use planetree_model::model::{
    ClassBounds, Combine, Model, ModelFeature, Origin, Part, PartGroup, TreeEnsemble,
};
use planetree_model::predict::{known_features, part_values, scores_of};
use std::collections::HashSet;

/// Returns the features of the start model, which select and order those of the data. `None` without a start model.
pub(super) fn start_features(request: &TrainRequest) -> Option<Vec<KnownFeature>> {
    request.start.as_ref().map(|start| known_features(start, None))
}

/// Tells the user which features of the training data are not used because the start model does not have them.
pub(super) fn note_unused_features(
    request: &TrainRequest,
    source: &LabelledData,
    observer: &mut dyn Observer,
) {
    if request.start.is_none() {
        return;
    }
    let mut seen: HashSet<&String> = source.names().iter().collect();
    let of_data = source.manifests().flat_map(|manifest| &manifest.features);
    let unused: Vec<String> = of_data.filter(|name| seen.insert(name)).cloned().collect();
    if !unused.is_empty() {
        observer.note(&format!(
            "the start model does not have {} of the data, which are not used: {}",
            counted(unused.len() as u64, "feature", "features"),
            first_few(&unused)
        ));
    }
}

/// Returns the ensemble of the start model that new trees are appended to: that of a boosted model, if a single part is
/// boosted on features that are normalised in the same way. Otherwise, the new parts are added to those of the start model.
pub(super) fn extended(request: &TrainRequest) -> Option<&TreeEnsemble> {
    let normalisation = request.plan.only()?.boost()?.tree.applied_normalisation();
    let fits = |ensemble: &&TreeEnsemble| {
        ensemble.combine == Combine::Sum && ensemble.normalisation == normalisation
    };
    request.start.as_ref()?.only_trees().filter(fits)
}

/// Returns the parts of a start model as those of a new model. Each keeps the configuration it was trained with.
pub(super) fn start_parts(start: &Model) -> Vec<Part> {
    let mut parts = start.parts.clone();
    for part in parts.iter_mut().filter(|part| part.configuration.is_empty()) {
        part.configuration = start.configuration.clone();
    }
    // Roles are those of this training run.
    parts.iter_mut().for_each(|part| part.role = None);
    parts
}

/// The parts whose scores the members start a stage from: those of the start model, and those of earlier stages, of
/// which each member has its own.
pub(super) struct StartParts {
    /// All parts, each with the weight 1.
    model: Model,
    /// The constant and the weights of the start model.
    intercept: f64,
    weights: Vec<f64>,
    /// The start model as a whole, if its score is no plain sum of parts. `model` has none of its parts then.
    grouped: Option<Model>,
    /// The parts of the start model as those of the model in training.
    of_start: Vec<Part>,
}

impl StartParts {
    /// Collects the parts. `finished` has those of earlier stages, after those of the start model.
    pub(super) fn of(request: &TrainRequest, finished: Vec<Part>, features: &[ModelFeature]) -> Self {
        let start = request.start.as_ref();
        let grouped = start.filter(|start| !start.groups.is_empty());
        let summed = start.filter(|start| start.groups.is_empty());
        let of_start = || summed.into_iter().flat_map(|start| &start.parts);
        let (own, of_model): (Vec<Part>, Vec<Part>) =
            finished.into_iter().partition(|part| part.role.is_some());
        let parts = of_start().map(|part| Part { role: None, ..part.clone() }).chain(own).collect();
        StartParts {
            model: scoring_model(0.0, parts, Vec::new(), features),
            intercept: summed.map_or(0.0, |start| start.intercept),
            weights: of_start().map(|part| part.weight).collect(),
            grouped: grouped.map(|start| {
                scoring_model(start.intercept, start.parts.clone(), start.groups.clone(), features)
            }),
            of_start: of_model,
        }
    }

    /// Returns the finished parts as they were given.
    pub(super) fn into_finished(mut self) -> Vec<Part> {
        let own = self.model.parts.split_off(self.weights.len());
        self.of_start.into_iter().chain(own).collect()
    }

    /// Returns the values of each part for all rows of a source; see [`values_on`]. The scores of a start model with groups
    /// are the first values.
    pub(super) fn values(&self, source: &LabelledData) -> Result<Vec<Vec<f64>>> {
        let mut values = Vec::new();
        if let Some(start) = &self.grouped {
            let scores = source.readers().map(|reader| scores_of(reader, start));
            values.push(scores.collect::<Result<Vec<_>>>()?.concat());
        }
        values.extend(values_on(source, &self.model)?);
        Ok(values)
    }

    /// Returns the scores of a member: the weighted parts of the start model, and its own parts with weight 1.
    /// `given` are scores to add, if there are any.
    pub(super) fn scores(&self, member: &MemberPlan, values: &[Vec<f64>], given: Option<&[f64]>) -> Vec<f64> {
        let rows = values.first().map(Vec::len).or(given.map(<[f64]>::len));
        let mut scores = vec![self.intercept; rows.unwrap_or(0)];
        let (whole, values) = values.split_at(usize::from(self.grouped.is_some()).min(values.len()));
        whole.iter().for_each(|start| add(&mut scores, 1.0, start));
        for (number, (part, values)) in self.model.parts.iter().zip(values).enumerate() {
            if let Some(weight) = self.weight(member, number, part) {
                add(&mut scores, weight, values);
            }
        }
        if let Some(given) = given {
            add(&mut scores, 1.0, given);
        }
        scores
    }

    /// Returns the model with these scores of a member, without given ones. `None` if all of them are 0.
    pub(super) fn model_of(&self, member: &MemberPlan) -> Option<Model> {
        let parts = self.model.parts.iter().enumerate().filter_map(|(number, part)| {
            let weight = self.weight(member, number, part)?;
            Some(Part { weight, ..part.clone() })
        });
        let (intercept, start, groups) = match &self.grouped {
            Some(start) => (start.intercept, start.parts.clone(), start.groups.clone()),
            None => (self.intercept, Vec::new(), Vec::new()),
        };
        let parts: Vec<Part> = start.into_iter().chain(parts).collect();
        let is_zero = parts.is_empty() && intercept == 0.0;
        (!is_zero).then(|| scoring_model(intercept, parts, groups, &self.model.features))
    }

    /// Returns the weight of a part in the scores of a member; `None` if it is the part of another member.
    fn weight(&self, member: &MemberPlan, number: usize, part: &Part) -> Option<f64> {
        match self.weights.get(number) {
            Some(weight) => Some(*weight),
            None => member.is_of(part).then_some(1.0),
        }
    }
}

/// Returns the probability of a class: the mean over its runs. `values` has the values of all parts of a model.
pub(super) fn class_scores(model: &Model, class: ClassBounds, runs: u32, values: &[Vec<f64>]) -> Vec<f64> {
    let of_class = |part: &Part| part.role.is_some_and(|role| role.class == Some(class));
    let mut scores = vec![0.0; values.first().map_or(0, Vec::len)];
    for (_, values) in model.parts.iter().zip(values).filter(|(part, _)| of_class(part)) {
        add(&mut scores, 1.0 / f64::from(runs), values);
    }
    scores
}

fn add(scores: &mut [f64], weight: f64, values: &[f64]) {
    scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
}

fn scoring_model(
    intercept: f64,
    parts: Vec<Part>,
    groups: Vec<PartGroup>,
    features: &[ModelFeature],
) -> Model {
    Model {
        intercept,
        parts,
        groups,
        features: features.to_vec(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: 0,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns the values of each part of a model for all rows of a source, in order. The rows are read once.
pub(super) fn values_on(source: &LabelledData, model: &Model) -> Result<Vec<Vec<f64>>> {
    let mut all = vec![Vec::new(); model.parts.len()];
    if all.is_empty() {
        return Ok(all);
    }
    for reader in source.readers() {
        let values = part_values(reader, model)?;
        all.iter_mut().zip(values).for_each(|(all, values)| all.extend(values));
    }
    Ok(all)
}
