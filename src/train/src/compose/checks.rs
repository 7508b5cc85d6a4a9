//! Rejects requests whose settings conflict.

use crate::bins::{BinnedData, FeatureBins};
use crate::config::{BaseScore, ClassWeights, LearnerParameters, LeastSquaresData, OrdinalTarget, Target};
use crate::driver::{TrainRequest, ValidationData};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledRows;
use planetree_model::model::{Model, ModelFeature};
use std::sync::Arc;

/// Rejects a request whose settings conflict, before anything is read.
pub fn check(request: &TrainRequest) -> Result<()> {
    let plan = &request.plan;
    check_costs(request)?;
    let has_forest = plan.stages.iter().any(|stage| stage.forest().is_some());
    if let Some(custom) = &request.objective {
        if plan.stages.iter().any(|stage| matches!(stage.learner, LearnerParameters::Linear(_))) {
            return Err(Error::usage(
                format_args!("objective {}: linear models have objectives of their own", custom.name),
                "use a boosting preset, such as planet",
            ));
        }
        if has_forest {
            return Err(Error::usage(
                format_args!(
                    "objective {}: forests are trained directly on the labels and do not take an objective",
                    custom.name
                ),
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
        check_start(request)?;
    }
    Ok(())
}

fn check_start(request: &TrainRequest) -> Result<()> {
    match &request.plan.first().learner {
        LearnerParameters::Forest(_) => Err(Error::usage(
            "a forest cannot continue from a model: its trees are independent",
            "remove --start-model, or set ensemble=boost",
        )),
        LearnerParameters::Boost(boost)
            if !matches!(boost.base_score, BaseScore::Auto | BaseScore::Constant(0.0)) =>
        {
            Err(Error::usage(
                "base_score conflicts with --start-model, which has its own base score",
                "remove base_score or --start-model",
            ))
        }
        LearnerParameters::Boost(_) | LearnerParameters::Linear(_)
            if request.plan.target != Target::Labels =>
        {
            Err(Error::usage(
                format_args!(
                    "target = {} conflicts with --start-model, whose scores are not probabilities of classes",
                    request.plan.target.name()
                ),
                "remove target or --start-model",
            ))
        }
        LearnerParameters::Boost(_) | LearnerParameters::Linear(_) => Ok(()),
    }
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

/// Rejects costs of features unless the model is a single ensemble of trees: which features are free for a tree depends
/// on the trees before it.
fn check_costs(request: &TrainRequest) -> Result<()> {
    let Some(costs) = &request.costs else { return Ok(()) };
    let problem = match request.plan.only() {
        None => "a model of several stages, runs or classes has no single order of trees",
        Some(parameters) if matches!(parameters.learner, LearnerParameters::Linear(_)) => {
            "a linear model uses all its features at once"
        }
        Some(_) if request.start.as_ref().is_some_and(|start| start.only_trees().is_none()) => {
            "the start model is not a single ensemble of trees"
        }
        Some(parameters) => match &parameters.forest().map(|forest| &forest.criterion) {
            Some(criterion) if criterion.listwise().is_some() => "listwise trees do not know costs",
            Some(_) if request.backend.is_some() && costs.lambda > 0.0 => {
                "forests on a cluster do not know which features other trees use"
            }
            _ => return Ok(()),
        },
    };
    Err(Error::usage(
        format_args!("--costs: {problem}"),
        "train one boosted ensemble, or one forest with criterion=variance, entropy or gini without --cluster",
    ))
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
