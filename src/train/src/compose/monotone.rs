//! Monotone constraints of a training: whether they fit the features, and whether the whole model keeps them.

use crate::config::{
    BaseScore, Constraint, Direction, MissingPolicy, MonotoneConstraints, Parameters, TrainingPlan,
};
use crate::driver::TrainRequest;
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledData;
use planetree_model::model::Model;

/// Rejects constraints that do not fit the features of the data, or that other settings break. All stages have the same
/// constraints.
pub(super) fn check(request: &TrainRequest, source: &LabelledData) -> Result<()> {
    let constraints = of_features(request.plan.first(), source)?;
    let features = source.names().iter().zip(constraints).enumerate();
    let constrained: Vec<(usize, &str, Direction)> = features
        .filter_map(|(feature, (name, constraint))| Some((feature, name.as_str(), constraint?)))
        .collect();
    if let Some((_, name, _)) = constrained.iter().find(|(feature, ..)| source.has_words(*feature)) {
        return Err(Error::place(
            source.place(),
            format_args!("monotone_constraints: {name} is categorical, and its categories have no order"),
            format_args!("remove {name} from monotone_constraints"),
        ));
    }
    let base_features = request.plan.stages.iter().filter_map(|stage| match &stage.boost()?.base_score {
        BaseScore::Feature(name) => Some(name),
        BaseScore::Auto | BaseScore::Constant(_) => None,
    });
    let missing = request.plan.first().missing;
    for base in base_features {
        if orders_missing(missing) && constrained.iter().any(|(_, name, _)| *name == base.as_str()) {
            return Err(Error::usage(
                format_args!(
                    "base_score = feature:{base}: a missing value starts at 0, but with missing={} monotone_constraints order it",
                    if missing == MissingPolicy::Low { "low" } else { "high" }
                ),
                "set missing=learned, or remove one of them",
            ));
        }
        if constrained
            .iter()
            .any(|(_, name, direction)| *name == base.as_str() && *direction == Direction::Decreasing)
        {
            return Err(Error::usage(
                format_args!(
                    "base_score = feature:{base}: scores rise with {base}, but monotone_constraints lets them only fall"
                ),
                "remove one of them",
            ));
        }
    }
    match &request.start {
        Some(start)
            if !constrained.iter().all(|(_, name, direction)| keeps(start, name, *direction, missing)) =>
        {
            Err(Error::usage(
                "monotone_constraints: --start-model was trained with other constraints or another value of missing, so its \
                 scores may break them",
                "train the start model with the same monotone_constraints and missing, or remove the constraints",
            ))
        }
        _ => Ok(()),
    }
}

/// Returns whether missing values are smaller or larger than all others, so that constraints hold for them, too.
fn orders_missing(missing: MissingPolicy) -> bool {
    matches!(missing, MissingPolicy::Low | MissingPolicy::High)
}

/// Returns whether a model records that its scores change with a feature in one direction only, also from or to a
/// missing value if `missing` orders them.
fn keeps(model: &Model, feature: &str, direction: Direction, missing: MissingPolicy) -> bool {
    let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
    let is_recorded = |stage: &Parameters| {
        let constraints = stage.tree()?.monotone.of_features(&names).ok()?;
        let place = names.iter().position(|name| *name == feature)?;
        let has_order = !orders_missing(missing) || stage.missing == missing;
        Some(constraints[place] == Some(direction) && has_order)
    };
    match TrainingPlan::from_toml(&model.configuration) {
        Ok(plan) => plan.stages.iter().all(|stage| is_recorded(stage) == Some(true)),
        Err(_) => false,
    }
}

/// Returns the parameters with the constraints in the order of the features.
pub(super) fn in_order(parameters: Parameters, source: &LabelledData) -> Result<Parameters> {
    match parameters.tree().is_some_and(|tree| !tree.monotone.are_none()) {
        true => {
            let constraints = of_features(&parameters, source)?;
            Ok(parameters.with_monotone(MonotoneConstraints::ByOrder(constraints)))
        }
        false => Ok(parameters),
    }
}

/// Returns the constraint of each feature of the data.
fn of_features(parameters: &Parameters, source: &LabelledData) -> Result<Vec<Constraint>> {
    let names: Vec<&str> = source.names().iter().map(String::as_str).collect();
    let Some(tree) = parameters.tree() else { return Ok(vec![None; names.len()]) };
    tree.monotone.of_features(&names).map_err(|(problem, remedy)| {
        Error::place(source.place(), format_args!("monotone_constraints: {problem}"), remedy)
    })
}
