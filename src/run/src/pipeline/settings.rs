//! Checks settings of steps that their commands would refuse only when the step runs, maybe after hours of training.

use super::document::fault;
use super::graph::{PipelineStep, StepInput};
use super::plan::at_position;
use crate::cv::{ValidationPart, check_folds};
use planetree_base::error::{Error, Result};
use planetree_judge::evaluate::DEFAULT_METRICS;
use planetree_metric::{Convention, Metric};

/// Checks a step of a pipeline. `words` is its command line.
pub(super) fn check_step(step: &PipelineStep, steps: &[PipelineStep], words: &[String]) -> Result<()> {
    match step.kind.name {
        "evaluate" => check_gates(words).map_err(|error| located(step, "fail_below", &error)),
        "cv" => check_fold_count(step, words).map_err(|error| located(step, "folds", &error)),
        "compare" => {
            let metric = check_metric(step, steps, words);
            metric.map_err(|error| located(step, "metric", &error))?;
            check_compared(step, steps)
        }
        _ => Ok(()),
    }
}

/// Adds the position of a key, and the name of the step, to an error.
fn located(step: &PipelineStep, key: &str, error: &Error) -> Error {
    at_position(&format!("{}: step {}", step.place_of(key), step.name), error)
}

/// Returns the values of an option.
fn values<'w>(words: &'w [String], option: &str) -> Vec<&'w str> {
    let mut found = Vec::new();
    for pair in words.windows(2) {
        if pair[0] == option {
            found.push(pair[1].as_str());
        }
    }
    found
}

/// Checks that the metrics of quality gates are computed.
fn check_gates(words: &[String]) -> Result<()> {
    let convention: Convention = match values(words, "--convention").last() {
        Some(text) => text.parse()?,
        None if values(words, "--qrels").is_empty() => Convention::default(),
        None => "trec".parse()?,
    };
    let named = values(words, "--metrics").last().copied().unwrap_or(DEFAULT_METRICS);
    let mut computed: Vec<Metric> = Vec::new();
    for name in named.split(',') {
        computed.push(convention.meant(name.parse()?));
    }
    for gate in values(words, "--fail-below") {
        let Some((name, _)) = gate.split_once('=') else { continue };
        if !computed.contains(&convention.meant(name.parse()?)) {
            return Err(Error::usage(
                format_args!("fail_below = {gate:?}: the metric is not computed"),
                format_args!("add {name} to metrics"),
            ));
        }
    }
    Ok(())
}

/// Checks the number of folds of one dataset.
fn check_fold_count(step: &PipelineStep, words: &[String]) -> Result<()> {
    let is_given = |option: &str| words.iter().any(|word| word == option);
    let validation = match (is_given("--no-valid"), is_given("--unused-valid")) {
        (true, _) => ValidationPart::Train,
        (false, true) => ValidationPart::Unused,
        (false, false) => ValidationPart::Validate,
    };
    let datasets = step.inputs.iter().filter(|input| input.key == "data").count();
    match values(words, "--folds").last().and_then(|folds| folds.parse::<usize>().ok()) {
        Some(folds) if datasets == 1 => check_folds(folds, validation),
        _ => Ok(()),
    }
}

/// Keys of rankings, in steps that evaluate or compare them.
const RANKINGS: [&str; 4] = ["files", "predictions", "scores", "run"];

/// Returns the rankings that a step reads.
fn rankings(step: &PipelineStep) -> Vec<&StepInput> {
    step.inputs.iter().filter(|input| RANKINGS.contains(&input.key)).collect()
}

/// Returns whether a step ranks data without a model, too.
fn has_baselines(step: &PipelineStep) -> bool {
    step.keys.contains("feature") || step.keys.contains("random")
}

/// Checks the metric of a comparison that evaluates rankings. A metrics table may have a column of any name.
fn check_metric(step: &PipelineStep, steps: &[PipelineStep], words: &[String]) -> Result<()> {
    let is_ranking = |input: &StepInput| {
        let writer = input.from.as_ref().map(|from| steps[from.step].kind.name);
        input.key == "run" || writer == Some("predict")
    };
    if !has_baselines(step) && !rankings(step).into_iter().any(is_ranking) {
        return Ok(());
    }
    for list in values(words, "--metric") {
        for name in list.split(',') {
            name.parse::<Metric>()?;
        }
    }
    Ok(())
}

/// Checks that a comparison has two systems, unless its only table may have several.
fn check_compared(step: &PipelineStep, steps: &[PipelineStep]) -> Result<()> {
    let [only] = rankings(step)[..] else { return Ok(()) };
    let is_one_system = match &only.from {
        _ if only.key == "run" => true,
        None => false,
        Some(from) => {
            let writer = &steps[from.step];
            let evaluates_one =
                writer.kind.name == "evaluate" && rankings(writer).len() == 1 && !has_baselines(writer);
            writer.kind.name == "predict" || evaluates_one
        }
    };
    if !is_one_system || has_baselines(step) {
        return Ok(());
    }
    Err(fault(
        &only.place,
        format_args!("step {}: only one system to compare", step.name),
        format_args!("add a second one to {}", only.key),
    ))
}
