//! Trains models that are made of several parts: stages that continue from each other, runs that are averaged, and
//! classes. A model of one part is the plainest case.
//!
//! Vocabulary: a *member* is one class of one run. Every member goes through all *stages*, and each stage adds a part for
//! each member. The members of a stage are trained side by side, and rounds are judged by the scores of all of them
//! together.
//!
//! `members.rs` lists the members, `grades.rs` finds the classes and their weights, `stage_bins.rs` has the data of a stage,
//! `stage.rs` runs it, `start.rs` computes the scores that it starts from, `monotone.rs` assigns monotone constraints to
//! features, and `class_weights.rs` fits the weights of classes.

mod checks;
mod class_weights;
mod grades;
mod learners;
mod members;
mod monotone;
mod stage;
mod stage_bins;
mod start;
#[cfg(test)]
mod tests;

use crate::config::{StageStart, Target};
use crate::driver::{
    BinKey, GivenScores, Observer, Outcome, PhaseSeconds, Sources, TrainRequest, Training, open_sources,
};
use class_weights::FitData;
use members::PlannedMembers;
use planetree_base::error::Result;
use planetree_model::model::{Model, ModelFeature, Origin};
use stage::StageRun;
use stage_bins::StageBins;

/// Trains the model that `request` describes.
pub(crate) fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    checks::check(request)?;
    let features = start::start_features(request);
    let mut sources = open_sources(request, features.as_deref(), observer)?;
    start::note_unused_features(request, &sources.source, observer);
    checks::check_start_scores(request, &sources)?;
    monotone::check(request, &sources.source)?;
    let members = PlannedMembers::of(&request.plan, &sources.source)?;
    let mut training = Training::open(
        request,
        first_model(request, &members, &sources)?,
        PhaseSeconds::default(),
        observer,
    )?;
    let mut bins: Option<StageBins> = None;
    let mut outputs = Vec::new();
    for number in training.next_stage()..=request.plan.stages.len() as u32 {
        let parameters = &request.plan.stages[number as usize - 1];
        let out_of_bag = match (number, request.plan.stage_start) {
            (2, StageStart::OutOfBag) => {
                let first = request.plan.first();
                let binned = match bins.take().filter(|bins| bins.key == BinKey::of(first)) {
                    Some(bins) => bins,
                    None => StageBins::read(request, first, &members, &mut sources, observer)?,
                };
                let binned = &*bins.insert(binned);
                let (parameters, members, sources) = (first, &members, &sources);
                let stage = StageRun { request, number: 1, parameters, members, sources, binned };
                stage.out_of_bag(&training, observer)?
            }
            _ => Vec::new(),
        };
        let binned = match bins.take().filter(|bins| bins.key == BinKey::of(parameters)) {
            Some(bins) => bins.with_metrics(parameters)?,
            None => StageBins::read(request, parameters, &members, &mut sources, observer)?,
        };
        let binned = bins.insert(binned);
        let is_fresh = training.finished_parts().len() == training.model().parts.len();
        if number == 1 && is_fresh && request.start.is_none() {
            training.model_mut().features = sources.model_features(&binned.data);
        }
        checks::check_fills(request, number, training.model(), &binned.data)?;
        let stage = StageRun { request, number, parameters, members: &members, sources: &sources, binned };
        outputs = stage.run(&mut training, out_of_bag, observer)?;
    }
    if let (Target::Ordinal(ordinal), Some(bins)) = (&request.plan.target, &bins)
        && let Some(data) = ordinal.weights.data()
    {
        let fit = FitData { request, data, members: &members, sources: &sources, bins };
        for model in training.models_mut() {
            fit.fit_weights(model, observer)?;
        }
    }
    training.seconds.load += sources.seconds.load;
    training.seconds.bin += sources.seconds.bin;
    let outputs = if request.plan.only().is_some() { outputs.pop() } else { None };
    training.finish(outputs.unwrap_or_default())
}

/// Returns the model before the first round, without the parts to be trained. Its features have no fill values yet,
/// unless they come from a start model.
fn first_model(request: &TrainRequest, members: &PlannedMembers, sources: &Sources) -> Result<Model> {
    let known = || {
        let features = sources.source.known().iter();
        let feature = |known: &planetree_data::dataset::KnownFeature| ModelFeature {
            name: known.name.clone(),
            fill: None,
            words: known.words.clone().unwrap_or_default(),
        };
        features.map(feature).collect()
    };
    let start = request.start.as_ref();
    let parts = match start {
        Some(start) if start::extended(request).is_none() => start::start_parts(start),
        _ => Vec::new(),
    };
    Ok(Model {
        intercept: start.map_or(members.intercept, |start| start.intercept),
        parts,
        groups: start.map_or_else(|| members.groups.clone(), |start| start.groups.clone()),
        features: start.map_or_else(known, |start| start.features.clone()),
        configuration: request.configuration(),
        data: sources.data_used(request)?,
        rounds: 0,
        start_scores: request.start_scores.as_ref().map(GivenScores::digest),
        origin: Origin::default(),
    })
}
