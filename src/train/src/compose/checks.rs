//! Rejects requests whose settings conflict.

use crate::bins::{BinnedData, FeatureBins};
use crate::config::{ClassWeights, LeastSquaresData, OrdinalTarget, Parameters, StageStart, Target};
use crate::driver::{Sources, TrainRequest, ValidationData};
use planetree_base::error::{Error, Result};
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_model::model::{Model, ModelFeature};
use std::sync::Arc;

/// Rejects a request whose settings conflict, before anything is read.
pub fn check(request: &TrainRequest) -> Result<()> {
    let plan = &request.plan;
    if let Some(custom) = &request.objective {
        let refused = |stage: &Parameters| stage.learner.config().spec().no_custom_objective;
        if let Some(problem) = plan.stages.iter().find_map(refused) {
            return Err(Error::usage(
                format_args!("objective {}: {problem}", custom.name),
                "use a boosting preset, such as planet",
            ));
        }
        if plan.target != Target::Labels {
            return Err(Error::usage(
                format_args!(
                    "objective {}: target = {} is learned by squared error",
                    custom.name,
                    plan.target.name()
                ),
                "remove target, or use the squared objective",
            ));
        }
    }
    if (request.out_of_bag || request.strength) && plan.only().is_none() {
        return Err(Error::usage(
            "out-of-bag scores and --strength are for a forest alone, not for models of several parts",
            "remove --oob and --strength, or train the forest by itself",
        ));
    }
    if request.start.is_some() {
        check_start(request, "--start-model")?;
    }
    if request.start_scores.is_some() {
        check_start(request, "--start-scores")?;
        if request.start.is_some() {
            return Err(Error::usage(
                "--start-scores conflicts with --start-model: both are scores to start from",
                "remove one of them; the predictions of a model can be start scores",
            ));
        }
        if request.plan.stage_start == StageStart::OutOfBag {
            return Err(Error::usage(
                "--start-scores conflicts with start_scores = oob",
                "remove one of them",
            ));
        }
    }
    Ok(())
}

/// Returns an error if there are not as many start scores as rows.
pub fn check_start_scores(request: &TrainRequest, sources: &Sources) -> Result<()> {
    let Some(given) = &request.start_scores else { return Ok(()) };
    let scores = std::iter::once(&given.training).chain(&given.validation);
    let data = std::iter::once(&sources.source).chain(&sources.validation);
    let fits = |(scores, data): (&Vec<f64>, &LabelledData)| {
        scores.len() as u64 == data.row_count() && scores.iter().all(|score| score.is_finite())
    };
    match given.validation.len() == sources.validation.len() && scores.zip(data).all(fits) {
        true => Ok(()),
        false => Err(Error::usage(
            "start scores: there must be a finite score for every row of the training data and of each validation set",
            "pass one score per row, in the order of the rows",
        )),
    }
}

fn check_start(request: &TrainRequest, option: &str) -> Result<()> {
    if let Some(refusal) = request.plan.first().learner.config().refuses_start_model() {
        let of_option = |text: &str| text.replace("--start-model", option);
        return Err(Error::usage(of_option(refusal.problem), of_option(refusal.remedy)));
    }
    if request.plan.target != Target::Labels {
        return Err(Error::usage(
            format_args!(
                "target = {} conflicts with {option}, whose scores are not probabilities of classes",
                request.plan.target.name()
            ),
            format_args!("remove target or {option}"),
        ));
    }
    Ok(())
}

/// Checks that a stage replaces missing values as the start model and earlier stages do, because a model has only one
/// fill value per feature.
pub fn check_fills(request: &TrainRequest, number: u32, model: &Model, data: &BinnedData) -> Result<()> {
    if number == 1 && request.start.is_none() {
        return Ok(());
    }
    let differs = |(old, new): &(&ModelFeature, &FeatureBins)| old.fill != new.fill;
    let Some((old, new)) = model.features.iter().zip(&data.binning.features).find(differs) else {
        return Ok(());
    };
    let shown = |fill: Option<f32>| fill.map_or("missing".to_owned(), |fill| fill.to_string());
    let (old_fill, new_fill) = (shown(old.fill), shown(new.fill));
    let name = &old.name;
    Err(match number {
        1 => Error::usage(
            format_args!(
                "the start model replaces missing values of {name} by {old_fill}, this run by {new_fill}"
            ),
            "set missing as for the start model; a mean or median always comes from the training data",
        ),
        _ => Error::usage(
            format_args!(
                "stage {number} replaces missing values of {name} by {new_fill}, the stages before it by {old_fill}"
            ),
            "set missing=zero, or the same candidates in all stages",
        ),
    })
}

/// Rejects weights of rows if the weights of classes are fitted by least squares, which would ignore them.
pub fn check_row_weights(
    request: &TrainRequest,
    training: &[LabelledRows],
    validation: &[Arc<ValidationData>],
) -> Result<()> {
    let Target::Ordinal(OrdinalTarget { weights: ClassWeights::LeastSquares(data), .. }) =
        &request.plan.target
    else {
        return Ok(());
    };
    let has_weights = |rows: &[LabelledRows]| rows.iter().any(|rows| rows.weights.is_some());
    let in_training = *data != LeastSquaresData::Valid && has_weights(training);
    let first = validation.first().filter(|_| *data != LeastSquaresData::Train);
    if in_training || first.is_some_and(|set| has_weights(set.rows())) {
        return Err(Error::usage(
            format_args!("class_weights {}: least squares do not take row weights into account", data.name()),
            "set class_weights=scores or a list of numbers, or convert the data without weights",
        ));
    }
    Ok(())
}
