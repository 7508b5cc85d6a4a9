//! Rejects requests whose settings conflict.

use crate::bins::{BinnedData, FeatureBins};
use crate::config::{LeafStep, LearnerParameters, MissingPolicy, Parameters, StageStart, Target};
use crate::driver::{Sources, TrainRequest};
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledData;
use planetree_model::model::{Model, ModelFeature};

/// Rejects a request whose settings conflict, before anything is read.
pub(super) fn check(request: &TrainRequest) -> Result<()> {
    let plan = &request.plan;
    check_costs(request)?;
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
                format_args!("objective {}: {} has a loss of its own", custom.name, plan.target.setting()),
                "remove target, or use the squared objective",
            ));
        }
    }
    plan.stages.iter().try_for_each(check_missing)?;
    check_forest_outputs(request)?;
    if let Some(start) = &request.start {
        start.check_complete("--start-model")?;
        check_start(request, "--start-model")?;
    }
    if request.start_scores.is_some() {
        check_start(request, "--start-scores")?;
        if request.start.is_some() {
            return Err(Error::usage(
                "--start-scores conflicts with --start-model: training can start from only one of them",
                "remove one of them; to start from a model's predictions, pass them as --start-scores",
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

/// Rejects treatments of missing values that the learner does not have.
fn check_missing(stage: &Parameters) -> Result<()> {
    let is_kept = matches!(stage.missing, MissingPolicy::Low | MissingPolicy::High | MissingPolicy::Branch);
    if stage.tree().is_none() && is_kept {
        return Err(Error::usage(
            format_args!(
                "missing=low, missing=high and missing=branch are for trees: {} needs a number for every value",
                stage.learner.config().spec().noun
            ),
            "set missing to zero, one, mean, median or learned",
        ));
    }
    let problem = match &stage.learner {
        _ if stage.missing != MissingPolicy::Branch => return Ok(()),
        LearnerParameters::Forest(forest) if forest.criterion.listwise().is_some() => {
            "missing=branch: criterion=ndcg compares two children per split, not three"
        }
        LearnerParameters::Boost(boost) if boost.leaf == LeafStep::WeakRanker => {
            "missing=branch: leaf=weak_ranker needs splits with two children, not three"
        }
        _ => return Ok(()),
    };
    Err(Error::usage(problem, "set missing=learned"))
}

/// Rejects out-of-bag scores and tree strengths of anything but a single forest.
fn check_forest_outputs(request: &TrainRequest) -> Result<()> {
    let option = match (request.out_of_bag, request.strength) {
        (false, false) => return Ok(()),
        (true, false) => "--oob",
        (false, true) => "--strength",
        (true, true) => "--oob and --strength",
    };
    let plan = &request.plan;
    let is_forest = |stage: &Parameters| stage.forest().is_some();
    let no_trees = format!("{} has no trees", plan.first().learner.config().spec().noun);
    let (problem, remedy) = match plan.stages.as_slice() {
        stages if !stages.iter().any(is_forest) => (
            match stages.first() {
                Some(stage) if stage.tree().is_none() => &*no_trees,
                _ if request.out_of_bag => "boosting has no out-of-bag rows",
                _ => "a boosted tree does not rank by itself",
            },
            "train a forest, such as with --preset rf",
        ),
        [_] if plan.only().is_some() => return Ok(()),
        [_, _, ..] => (
            "only a forest that is trained by itself has them, and this training has several stages",
            "train the forest by itself; start_scores=oob continues from its out-of-bag scores",
        ),
        _ if plan.runs > 1 => {
            ("only a single forest has them, and this training averages several", "set runs=1")
        }
        _ => (
            "only a single forest has them, and this training has one per class",
            "set target=labels, or target=at_most:GRADE for one class",
        ),
    };
    Err(Error::usage(format_args!("{option}: {problem}"), format_args!("{remedy}, or remove {option}")))
}

/// Returns an error if there are not as many start scores as rows.
pub(super) fn check_start_scores(request: &TrainRequest, sources: &Sources) -> Result<()> {
    /// Squares of larger scores, summed over rows, may not be representable.
    const MOST: f64 = 1e100;
    let Some(given) = &request.start_scores else { return Ok(()) };
    let all = std::iter::once(&given.training).chain(&given.validation).flatten();
    if let Some(score) = all.copied().find(|score| score.abs() > MOST) {
        return Err(Error::usage(
            format_args!("start scores: {score} is too large"),
            format_args!("scale the scores so that none is above {MOST:e} in magnitude"),
        ));
    }
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
                "{} conflicts with {option}, whose scores are not those of classes",
                request.plan.target.setting()
            ),
            format_args!("remove {option}, or learn the labels: target=labels, objective=squared"),
        ));
    }
    Ok(())
}

/// Checks that a stage replaces missing values as the start model and earlier stages do, because a model has only one
/// fill value per feature.
pub(super) fn check_fills(
    request: &TrainRequest,
    number: u32,
    model: &Model,
    data: &BinnedData,
) -> Result<()> {
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
                "stage {number} replaces missing values of {name} by {new_fill}, but earlier stages by {old_fill}"
            ),
            "set missing=zero, or the same candidates in all stages",
        ),
    })
}

/// Rejects costs of features unless the model is a single ensemble of trees: which features are free for a tree depends
/// on the trees before it.
fn check_costs(request: &TrainRequest) -> Result<()> {
    if request.costs.is_none() {
        return check_no_costs(request);
    }
    let problem = match request.plan.only() {
        None => "a model of several stages, runs or classes has no single order of trees",
        Some(Parameters { learner, .. })
            if !matches!(learner, LearnerParameters::Boost(_) | LearnerParameters::Forest(_)) =>
        {
            "only trees know costs; other models use all their features at once"
        }
        Some(_) if request.start.is_some() && super::start::extended(request).is_none() => {
            "the start model is not a single boosted ensemble of trees"
        }
        Some(parameters) => match &parameters.forest().map(|forest| &forest.criterion) {
            Some(criterion) if criterion.listwise().is_some() => "listwise trees do not know costs",
            _ => return Ok(()),
        },
    };
    Err(Error::usage(
        format_args!("--costs: {problem}"),
        "train one boosted ensemble, or one forest with criterion=variance, entropy or gini",
    ))
}

/// Rejects parameters of costs if there are no costs.
fn check_no_costs(request: &TrainRequest) -> Result<()> {
    let set = |stage: &Parameters| {
        let costs = stage.tree()?.costs;
        let lambda = costs.lambda.map(|lambda| format!("cost_lambda = {lambda}"));
        lambda.or_else(|| Some(format!("cost_batch = {}", costs.batch?)))
    };
    match request.plan.stages.iter().find_map(set) {
        None => Ok(()),
        Some(setting) => Err(Error::usage(
            format_args!("{setting}: the features have no costs"),
            "add a file of costs with --costs, or remove it",
        )),
    }
}
