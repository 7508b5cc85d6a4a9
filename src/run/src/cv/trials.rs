//! Writes `trials.parquet`, which has one row per trial of a parameter search, with columns for the searched
//! parameters and the metrics.

use super::search::TrialResult;
use super::space::SearchSpace;
use super::spread::Spread;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{Field, Int32Type, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use planetree_train::config::ValueKind;
use std::sync::Arc;

/// Writes all trials so far, in the given order. The metadata of the table names the metric by which trials are
/// ranked and the convention, which is the set of rules for computing metrics.
pub(crate) fn write_trials(
    space: &SearchSpace,
    trials: &[TrialResult],
    (metric, convention): (&Metric, &Convention),
    location: &Location,
) -> Result<()> {
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    let numbers = trials.iter().map(|result| result.trial.number as i32);
    columns.push(("trial".to_owned(), Arc::new(Int32Array::from_iter_values(numbers))));
    for (index, key) in space.keys().iter().enumerate() {
        let texts = || trials.iter().map(|result| result.trial.choices[index].value.as_str());
        let column: ArrayRef = match key.kind {
            ValueKind::Whole => Arc::new(texts().map(|text| text.parse().ok()).collect::<Int64Array>()),
            ValueKind::Real => Arc::new(texts().map(|text| text.parse().ok()).collect::<Float64Array>()),
            ValueKind::Word => Arc::new(StringArray::from_iter_values(texts())),
        };
        columns.push((key.name.to_owned(), column));
    }
    add_spreads("valid", trials, |result| &result.valid[..], &mut columns);
    add_spreads("test", trials, |result| &result.test[..], &mut columns);
    let rounds = |result: &TrialResult| -> Vec<f64> {
        result.best_rounds.iter().map(|round| f64::from(*round)).collect()
    };
    let means =
        trials.iter().map(|result| Some(Spread::of(&rounds(result)).mean).filter(|mean| !mean.is_nan()));
    columns.push(("best_round".to_owned(), Arc::new(means.collect::<Float64Array>())));
    let lists = trials.iter().map(|result| Some(result.best_rounds.iter().map(|round| Some(*round as i32))));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    columns.push(("best_rounds".to_owned(), Arc::new(lists)));
    let problems = trials.iter().map(|result| result.problem.as_deref());
    columns.push(("problem".to_owned(), Arc::new(problems.collect::<StringArray>())));
    let field = |(name, column): &(String, ArrayRef)| Field::new(name, column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays)
        .map_err(|error| Error::bug(location, &error).caused_by(error))?;
    let mut writer = TableWriter::create(location, TableKind::Trials, schema)?;
    writer.set_metadata("planetree.metric", metric.to_string());
    writer.set_metadata(Convention::KEY, convention.to_string());
    writer.write(&batch)?;
    writer.finish()
}

/// Adds two columns for each metric on the validation or test parts, as `split` says: the mean and the standard
/// deviation over the folds.
fn add_spreads(
    split: &str,
    trials: &[TrialResult],
    of: fn(&TrialResult) -> &[(String, Spread)],
    columns: &mut Vec<(String, ArrayRef)>,
) {
    let Some(first) = trials.iter().find(|result| result.problem.is_none()) else { return };
    for (index, (metric, _)) in of(first).iter().enumerate() {
        let spread = |result: &TrialResult| of(result).get(index).map(|(_, spread)| *spread);
        let column = |number: fn(Spread) -> f64| -> ArrayRef {
            Arc::new(trials.iter().map(|result| spread(result).map(number)).collect::<Float64Array>())
        };
        columns.push((format!("{split}_{metric}"), column(|spread| spread.mean)));
        columns.push((format!("{split}_{metric}_deviation"), column(|spread| spread.deviation)));
    }
}
