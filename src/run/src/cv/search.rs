//! A search: every trial is a cross-validation of its own, and they are ranked by what they reach on the
//! validation parts. The test parts have no say in it; their values stand beside.

use super::space::{Space, Trial};
use super::spread::Spread;
use super::trials::write_trials;
use super::{CrossValidation, FoldResult};
use planetree_base::error::{Error, Result};
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_train::Observer;
use planetree_train::config::Parameters;

/// A trial and its parameters, checked.
pub struct CheckedTrial {
    /// The trial.
    pub trial: Trial,
    /// Its parameters.
    pub parameters: Parameters,
}

/// What came out of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// The trial.
    pub trial: Trial,
    /// Metrics of the validation parts at the best rounds.
    pub valid: Vec<(String, Spread)>,
    /// Metrics of the test parts.
    pub test: Vec<(String, Spread)>,
    /// The best round of each fold.
    pub best_rounds: Vec<u32>,
    /// Why it could not be trained; it has no values then.
    pub problem: Option<String>,
}

/// What came out of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// The metric that decides.
    pub metric: Metric,
    /// The rules of all metrics.
    pub convention: Convention,
    /// All trials, the best first.
    pub ranking: Vec<TrialResult>,
}

impl TrialResult {
    fn of(trial: &Trial, folds: &[FoldResult]) -> Self {
        let valid = folds.iter().map(|fold| &fold.record.valid[..]);
        let test = folds.iter().map(|fold| &fold.test[..]);
        TrialResult {
            trial: trial.clone(),
            valid: super::spreads(valid),
            test: super::spreads(test),
            best_rounds: folds.iter().filter_map(|fold| fold.record.best_round).collect(),
            problem: None,
        }
    }

    /// A trial whose parameters train nothing on these data.
    fn failed(trial: &Trial, error: &Error) -> Self {
        TrialResult {
            trial: trial.clone(),
            valid: Vec::new(),
            test: Vec::new(),
            best_rounds: Vec::new(),
            problem: Some(error.to_string()),
        }
    }

    /// What the validation parts say of a metric.
    pub fn valid_of(&self, metric: &Metric) -> Option<Spread> {
        let name = metric.to_string();
        self.valid.iter().find(|(metric, _)| *metric == name).map(|(_, spread)| *spread)
    }
}

/// Checks the parameters of every trial before any is trained.
pub fn check_trials(space: &Space, load: &dyn Fn(&Trial) -> Result<Parameters>) -> Result<Vec<CheckedTrial>> {
    let check = |trial: Trial| match load(&trial) {
        Ok(parameters) => Ok(CheckedTrial { trial, parameters }),
        Err(error) => Err(in_trial(error, &trial)),
    };
    space.trials().into_iter().map(check).collect()
}

/// Cross-validates every trial that is not there yet, and ranks them. A trial whose parameters train
/// nothing comes last; the others go on.
pub fn search(
    validation: &CrossValidation,
    space: &Space,
    trials: &[CheckedTrial],
    observer: &mut dyn Observer,
) -> Result<SearchOutcome> {
    let metric = trials.first().and_then(|trial| trial.parameters.metrics.first().copied());
    let metric = metric.ok_or_else(|| Error::usage("there is nothing to search", "name values to try"))?;
    let table = validation.output().join("trials.parquet");
    TableWriter::check(&table, TableKind::Trials)?;
    let mut results: Vec<TrialResult> = Vec::new();
    for CheckedTrial { trial, parameters } in trials {
        observer.note(&format!("trial {} of {}: {}", trial.number, trials.len(), trial.shown()));
        let output = validation.output().join(&format!("trials/{}", trial.number));
        results.push(match validation.run(parameters, &output, observer) {
            Ok(folds) => TrialResult::of(trial, &folds),
            Err(Error::Untrainable(error)) => {
                observer.note(&format!("trial {} makes no model: {error}", trial.number));
                TrialResult::failed(trial, &error)
            }
            Err(error) => return Err(in_trial(error, trial)),
        });
        write_trials(space, &results, (&metric, validation.convention()), &table)?; // what is done can be looked at
    }
    let order = |result: &TrialResult| {
        let value = result.valid_of(&metric).map_or(f64::NAN, |spread| spread.mean);
        let value = if metric.higher_is_better() { -value } else { value };
        if value.is_nan() { f64::INFINITY } else { value }
    };
    results.sort_by(|one, other| order(one).total_cmp(&order(other))); // the first of equals stays first
    Ok(SearchOutcome { metric, convention: validation.convention().clone(), ranking: results })
}

/// Says which trial a problem is of.
fn in_trial(error: Error, trial: &Trial) -> Error {
    let number = trial.number;
    match error {
        Error::Usage { problem, remedy } => Error::usage(format_args!("trial {number}: {problem}"), remedy),
        Error::Place { place, problem, remedy } => {
            Error::place(format_args!("trial {number}: {place}"), problem, remedy)
        }
        other => other,
    }
}
