//! Searches for the best parameters. Every trial cross-validates one combination of parameter values, and trials are
//! ranked by a metric on the validation parts. Metrics on the test parts are reported but do not affect the ranking.

use super::space::{SearchSpace, Trial};
use super::spread::Spread;
use super::trials::write_trials;
use super::{CrossValidation, FoldResult};
use planetree_base::error::{Error, Result};
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_train::Observer;
use planetree_train::config::TrainingPlan;

/// A trial whose parameters are valid.
pub struct CheckedTrial {
    /// Number of the trial and its values of the searched parameters.
    pub trial: Trial,
    /// All parameters of the trial.
    pub plan: TrainingPlan,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialResult {
    /// Number of the trial and its values of the searched parameters.
    pub trial: Trial,
    /// Metrics on the validation parts at the best rounds, as means and standard deviations over the folds.
    pub valid: Vec<(String, Spread)>,
    /// Metrics on the test parts, as means and standard deviations over the folds.
    pub test: Vec<(String, Spread)>,
    /// Best round of each fold.
    pub best_rounds: Vec<u32>,
    /// Why the training failed; `None` if it succeeded. A failed trial has no metrics.
    pub problem: Option<String>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// Metric by which the trials are ranked.
    pub metric: Metric,
    /// Convention (set of rules) by which all metrics are computed.
    pub convention: Convention,
    /// All trials, best first.
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

    /// Creates the result of a trial whose training failed.
    fn failed(trial: &Trial, error: &Error) -> Self {
        TrialResult {
            trial: trial.clone(),
            valid: Vec::new(),
            test: Vec::new(),
            best_rounds: Vec::new(),
            problem: Some(error.to_string()),
        }
    }

    /// Returns the mean and standard deviation of a metric on the validation parts; `None` if the training failed.
    pub fn valid_of(&self, metric: &Metric) -> Option<Spread> {
        let name = metric.to_string();
        self.valid.iter().find(|(metric, _)| *metric == name).map(|(_, spread)| *spread)
    }
}

/// Checks the parameters of all trials before any trial is trained.
pub fn check_trials(
    space: &SearchSpace,
    load: &dyn Fn(&Trial) -> Result<TrainingPlan>,
) -> Result<Vec<CheckedTrial>> {
    let check = |trial: Trial| match load(&trial) {
        Ok(plan) => Ok(CheckedTrial { trial, plan }),
        Err(error) => Err(error.within(format_args!("trial {}", trial.number))),
    };
    space.trials().into_iter().map(check).collect()
}

/// Cross-validates all trials that are not finished yet, and ranks them. If a trial cannot be trained, the search
/// continues and ranks the trial last.
pub fn search(
    validation: &CrossValidation,
    space: &SearchSpace,
    trials: &[CheckedTrial],
    observer: &mut dyn Observer,
) -> Result<SearchOutcome> {
    let metric = trials.first().and_then(|trial| trial.plan.selection_metric());
    let metric = metric.ok_or_else(|| Error::usage("nothing to search", "list values to try"))?;
    let table = validation.output().join("trials.parquet");
    TableWriter::check(&table, TableKind::Trials)?;
    let mut results: Vec<TrialResult> = Vec::new();
    for CheckedTrial { trial, plan } in trials {
        observer.note(&format!("trial {} of {}: {}", trial.number, trials.len(), trial.shown()));
        let output = validation.output().join(&format!("trials/{}", trial.number));
        results.push(match validation.run(plan, &output, observer) {
            Ok(folds) => TrialResult::of(trial, &folds),
            Err(Error::Untrainable(error)) => {
                observer.note(&format!("trial {}: training failed: {error}", trial.number));
                TrialResult::failed(trial, &error)
            }
            Err(error) => return Err(error.within(format_args!("trial {}", trial.number))),
        });
        // The table is written after every trial, so that users can inspect intermediate results.
        write_trials(space, &results, (&metric, validation.convention()), &table)?;
    }
    let sort_key = |result: &TrialResult| {
        let value = result.valid_of(&metric).map_or(f64::NAN, |spread| spread.mean);
        let value = if metric.higher_is_better() { -value } else { value };
        if value.is_nan() { f64::INFINITY } else { value }
    };
    // The sort is stable, so of two trials with equal values the earlier one comes first.
    results.sort_by(|one, other| sort_key(one).total_cmp(&sort_key(other)));
    Ok(SearchOutcome { metric, convention: validation.convention().clone(), ranking: results })
}
