//! Formats the result of a cross-validation: one line per fold or trial, or one JSON object.

use planetree_base::storage::Location;
use planetree_metric::Convention;
use planetree_run::cv::{
    BaselineResult, FoldResult, MetricValue, SearchOutcome, Spread, TrialResult, spreads,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The result of a cross-validation or a search.
pub(super) struct CvSummary {
    /// The result as a table.
    pub text: String,
    /// The result as a JSON object.
    pub json: Value,
}

/// Summarises the folds of a cross-validation.
pub(super) fn of_folds(
    folds: &[FoldResult],
    baselines: &[BaselineResult],
    convention: &Convention,
    output: &Location,
) -> CvSummary {
    let valid = spreads(folds.iter().map(|fold| &fold.record.valid[..]));
    let test = spreads(folds.iter().map(|fold| &fold.test[..]));
    let mut text = String::new();
    let mut line = |first: &str, trees: &str, round: &str, values: &[Option<f64>]| {
        let _ = write!(text, "{first:<10} {trees:>6} {round:>10}"); // writing to a String cannot fail
        for value in values {
            let shown = value.map_or("-".to_owned(), |value| format!("{value:.4}"));
            let _ = write!(text, " {shown:>12}");
        }
        text.push('\n');
    };
    let value_of = |values: &[MetricValue], name: &str| {
        values.iter().find(|value| value.metric == name).map(|value| value.value)
    };
    let selection_metric = valid.first().map(|(name, _)| name.clone());
    for fold in folds {
        let best = selection_metric.as_ref().map(|name| value_of(&fold.record.valid, name));
        let tested = test.iter().map(|(name, _)| value_of(&fold.test, name));
        let values: Vec<Option<f64>> = best.into_iter().chain(tested).collect();
        let round = fold.record.best_round.map_or("-".to_owned(), |round| round.to_string());
        line(&fold.number.to_string(), &fold.record.trees.to_string(), &round, &values);
    }
    let all = || valid.first().into_iter().chain(&test).map(|(_, spread)| *spread);
    line("mean", "", "", &all().map(|spread| Some(spread.mean)).collect::<Vec<_>>());
    line("deviation", "", "", &all().map(|spread| Some(spread.deviation)).collect::<Vec<_>>());
    let of_baselines: Vec<(&str, Vec<(String, Spread)>)> = baselines
        .iter()
        .map(|baseline| (baseline.name.as_str(), spreads(baseline.folds.iter().map(|fold| &fold[..]))))
        .collect();
    for (name, spreads) in &of_baselines {
        let tested = spreads.iter().map(|(_, spread)| Some(spread.mean));
        let values: Vec<Option<f64>> = selection_metric.iter().map(|_| None).chain(tested).collect();
        line(name, "", "", &values);
    }
    let mut head = format!("{:<10} {:>6} {:>10}", "fold", "trees", "best round");
    let names = selection_metric.iter().map(|name| format!("vali {name}"));
    for name in names.chain(test.iter().map(|(name, _)| name.clone())) {
        let _ = write!(head, " {name:>12}");
    }
    let fold = |fold: &FoldResult| {
        json!({
            "fold": fold.number,
            "best_round": fold.record.best_round,
            "trees": fold.record.trees,
            "queries": fold.test_queries,
            "seconds": fold.record.seconds,
            "valid": values_object(&fold.record.valid),
            "test": values_object(&fold.test),
        })
    };
    let mut json = json!({
        "output": output.to_string(),
        "convention": convention.to_string(),
        "folds": folds.iter().map(fold).collect::<Vec<_>>(),
        "valid": spreads_object(&valid),
        "test": spreads_object(&test),
    });
    if !of_baselines.is_empty() {
        let baseline =
            |(name, spreads): &(&str, Vec<(String, Spread)>)| ((*name).to_owned(), spreads_object(spreads));
        json["baselines"] = of_baselines.iter().map(baseline).collect::<Map<_, _>>().into();
    }
    CvSummary { text: format!("{head}\n{text}{}", caption(convention)), json }
}

/// Summarises the trials of a search, best first.
pub(super) fn of_search(outcome: &SearchOutcome, output: &Location) -> CvSummary {
    let name = outcome.metric.to_string();
    let test_of = |trial: &TrialResult| {
        trial.test.iter().find(|(metric, _)| *metric == name).map(|(_, spread)| *spread)
    };
    let shown = |spread: Option<Spread>| match spread {
        Some(Spread { mean, deviation }) => format!("{mean:.4} ± {deviation:.4}"),
        None => "-".to_owned(),
    };
    let mut text =
        format!("{:>5} {:>6} {:>19} {:>19}  parameters\n", "rank", "trial", format!("vali {name}"), "test");
    for (rank, trial) in outcome.ranking.iter().enumerate() {
        let (valid, test) = (shown(trial.valid_of(&outcome.metric)), shown(test_of(trial)));
        let _ = writeln!(
            text,
            "{:>5} {:>6} {valid:>19} {test:>19}  {}",
            rank + 1,
            trial.trial.number,
            trial.trial.shown()
        );
        if let Some(problem) = &trial.problem {
            let _ = writeln!(text, "{:>53}{problem}", "");
        }
    }
    text.push_str(&caption(&outcome.convention));
    let trial = |result: &TrialResult| {
        let choices = result.trial.choices.iter().map(|choice| {
            let number = choice.value.parse::<serde_json::Number>().map(Value::Number);
            (choice.key.clone(), number.unwrap_or_else(|_| Value::String(choice.value.clone())))
        });
        json!({
            "trial": result.trial.number,
            "parameters": choices.collect::<Map<_, _>>(),
            "valid": spreads_object(&result.valid),
            "test": spreads_object(&result.test),
            "best_rounds": result.best_rounds,
            "problem": result.problem,
        })
    };
    let json = json!({
        "output": output.to_string(),
        "metric": name,
        "convention": outcome.convention.to_string(),
        "best": outcome.ranking.iter().find(|trial| trial.problem.is_none()).map(|trial| trial.trial.number),
        "trials": outcome.ranking.iter().map(trial).collect::<Vec<_>>(),
    });
    CvSummary { text, json }
}

/// Returns the line below a table that names the metric convention.
fn caption(convention: &Convention) -> String {
    format!("\nMetric convention: {convention}\n")
}

fn values_object(values: &[MetricValue]) -> Value {
    values.iter().map(|value| (value.metric.clone(), json!(value.value))).collect::<Map<_, _>>().into()
}

fn spreads_object(spreads: &[(String, Spread)]) -> Value {
    let entry = |(name, Spread { mean, deviation }): &(String, Spread)| {
        (name.clone(), json!({ "mean": mean, "deviation": deviation }))
    };
    spreads.iter().map(entry).collect::<Map<_, _>>().into()
}
