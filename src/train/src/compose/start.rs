//! The scores that a stage starts from.

use super::members::MemberPlan;
use crate::driver::TrainRequest;
use planetree_base::error::Result;
use planetree_data::dataset::KnownFeature;
use planetree_data::source::LabelledData;
use planetree_model::model::{ClassBounds, Combine, Model, ModelFeature, Origin, Part, TreeEnsemble};
use planetree_model::predict::{known_features, scores_of};

/// Returns the features of the start model, which select and order those of the data. `None` without a start model.
pub fn start_features(request: &TrainRequest) -> Option<Vec<KnownFeature>> {
    request.start.as_ref().map(|start| known_features(start, None))
}

/// Returns the ensemble of the start model that new trees are appended to: that of a boosted model, if a single part is
/// boosted. Otherwise, the new parts are added to those of the start model.
pub fn extended(request: &TrainRequest) -> Option<&TreeEnsemble> {
    request.plan.only()?.boost()?;
    request.start.as_ref()?.only_trees().filter(|ensemble| ensemble.combine == Combine::Sum)
}

/// Returns the parts of a start model as those of a new model. Each keeps the configuration it was trained with.
pub fn start_parts(start: &Model) -> Vec<Part> {
    let mut parts = start.parts.clone();
    for part in parts.iter_mut().filter(|part| part.configuration.is_empty()) {
        part.configuration = start.configuration.clone();
    }
    // Roles are those of this training run.
    parts.iter_mut().for_each(|part| part.role = None);
    parts
}

/// Returns the model whose scores a member starts a stage from: the start model, and the parts of the member in earlier
/// stages with weight 1.
pub fn member_model(
    request: &TrainRequest,
    member: &MemberPlan,
    finished: &[Part],
    features: &[ModelFeature],
) -> Model {
    let start = request.start.as_ref();
    let own =
        finished.iter().filter(|part| member.is_of(part)).map(|part| Part { weight: 1.0, ..part.clone() });
    let parts = start.into_iter().flat_map(|start| start.parts.iter().cloned()).chain(own).collect();
    scoring_model(start.map_or(0.0, |start| start.intercept), parts, features)
}

/// Returns a model of the probability of a class: the mean over its runs.
pub fn class_model(model: &Model, class: ClassBounds, runs: u32) -> Model {
    let of_class = |part: &&Part| part.role.is_some_and(|role| role.class == Some(class));
    let weight = 1.0 / f64::from(runs);
    let parts = model.parts.iter().filter(of_class).map(|part| Part { weight, ..part.clone() });
    scoring_model(0.0, parts.collect(), &model.features)
}

fn scoring_model(intercept: f64, parts: Vec<Part>, features: &[ModelFeature]) -> Model {
    Model {
        intercept,
        parts,
        features: features.to_vec(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: 0,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns the scores of all rows of a source, in order: those of a model plus the given ones.
pub fn total_scores(source: &LabelledData, model: &Model, given: Option<&[f64]>) -> Result<Vec<f64>> {
    let Some(given) = given else { return scores_on(source, model) };
    if model.parts.is_empty() && model.intercept == 0.0 {
        return Ok(given.to_vec());
    }
    let mut scores = scores_on(source, model)?;
    scores.iter_mut().zip(given).for_each(|(score, given)| *score += given);
    Ok(scores)
}

/// Returns the scores of all rows of a source, in order.
pub fn scores_on(source: &LabelledData, model: &Model) -> Result<Vec<f64>> {
    let mut scores = Vec::new();
    for reader in source.readers() {
        scores.extend(scores_of(reader, model)?);
    }
    Ok(scores)
}
