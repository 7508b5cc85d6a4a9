//! Writes the tables that combine all folds: predictions, metrics per query, and metrics per fold. Predictions and
//! metrics per query are in the order of the parts of the data, whichever fold tested them.

use super::FoldResult;
use super::evaluator::{FoldEvaluator, FoldRules};
use super::fold::VALID;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use planetree_judge::evaluate::{MetricsLayout, MetricsTable, QueryResult, Results, RowOrigin};
use planetree_metric::{Convention, Mean, Metric};
use planetree_model::predict::predictions_schema;
use std::sync::Arc;

/// The predictions for the test part of a fold.
pub(super) struct FoldPredictions {
    /// Number of the fold, counted from 1.
    pub fold: usize,
    /// Location of the predictions.
    pub predictions: Location,
    /// Locations of the predictions that each metric is computed from. Empty if all metrics are computed from the same.
    pub of_metrics: Vec<Location>,
}

/// Writes the predictions and the metrics per query of all folds. Returns the means of the metrics for each fold, in
/// the order of `folds`.
pub(crate) fn write_predictions_and_metrics(
    folds: &[FoldPredictions],
    metrics: &[Metric],
    rules: FoldRules<'_>,
    output: &Location,
) -> Result<Vec<Vec<Mean>>> {
    let mut predictions = TableWriter::create(
        &output.join("predictions.parquet"),
        TableKind::Predictions,
        with_fold(&predictions_schema(), 5),
    )?;
    let layout = MetricsLayout {
        metrics,
        convention: rules.convention,
        label_map: rules.label_map,
        segments: false,
        systems: false,
        folds: true,
        curve: None,
    };
    let mut queries = MetricsTable::create(&output.join("metrics.parquet"), layout)?;
    let mut means = Vec::new();
    for fold in folds {
        let table = TableReader::open(&fold.predictions, TableKind::Predictions)?;
        for batch in table.batches() {
            let batch = batch?;
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(Int32Array::from_value(fold.fold as i32, batch.num_rows())));
            predictions.write(&batch_of(with_fold(&predictions_schema(), 5), columns, &fold.predictions)?)?;
        }
        let origin = RowOrigin { system: "", fold: fold.fold };
        if fold.of_metrics.is_empty() {
            let evaluator = FoldEvaluator::new(metrics, rules);
            means.push(evaluator.evaluate(&table, &mut |results| queries.write(results, origin))?);
        } else {
            let (results, of_fold) = evaluate_each(&fold.of_metrics, metrics, rules)?;
            queries.write(&results, origin)?;
            means.push(of_fold);
        }
    }
    predictions.finish()?;
    queries.finish()?;
    Ok(means)
}

/// Evaluates each metric on its own predictions of the same queries.
fn evaluate_each(
    predictions: &[Location],
    metrics: &[Metric],
    rules: FoldRules<'_>,
) -> Result<(Results, Vec<Mean>)> {
    let (mut columns, mut means): (Vec<Vec<Option<f64>>>, Vec<Mean>) = (Vec::new(), Vec::new());
    let mut queries: Vec<(String, usize, usize, f64, f64)> = Vec::new();
    for (index, (metric, location)) in metrics.iter().zip(predictions).enumerate() {
        let table = TableReader::open(location, TableKind::Predictions)?;
        let mut column = Vec::new();
        let evaluator = FoldEvaluator::new(std::slice::from_ref(metric), rules);
        means.extend(evaluator.evaluate(&table, &mut |results| {
            for query in 0..results.queries() {
                column.push(results.value(query, 0).filter(|value| !value.is_nan()));
                if index == 0 {
                    queries.push((
                        results.name(query).to_owned(),
                        results.documents[query] as usize,
                        results.relevant[query] as usize,
                        results.dcg[query],
                        results.ideal_dcg[query],
                    ));
                }
            }
            Ok(())
        })?);
        columns.push(column);
    }
    let mut all = Results::new(metrics.len());
    for (row, (name, documents, relevant, dcg, ideal_dcg)) in queries.iter().enumerate() {
        let values: Vec<Option<f64>> =
            columns.iter().map(|column| column.get(row).copied().flatten()).collect();
        let (documents, relevant) = (*documents, *relevant);
        all.push(&QueryResult { name, documents, relevant, first_row: 0, values: &values });
        all.dcg.push(*dcg);
        all.ideal_dcg.push(*ideal_dcg);
    }
    Ok((all, means))
}

/// Returns the schema with a column `fold` inserted at index `place`.
fn with_fold(schema: &SchemaRef, place: usize) -> SchemaRef {
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.insert(place, Arc::new(Field::new("fold", DataType::Int32, false)));
    Arc::new(Schema::new(fields))
}

fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, place: &Location) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, columns).map_err(|error| {
        Error::place(place, &error, "remove the file and run the command again").caused_by(error)
    })
}

/// Returns the best round of a fold for a metric, if rounds are chosen, and the number of trees of the model that has
/// the metric.
fn round_and_trees(fold: &FoldResult, metric: &str) -> (Option<i32>, i32) {
    let record = &fold.record;
    let own = record.best_for.iter().find(|best| best.metric == metric);
    let (round, trees) = own.map_or((record.best_round, record.trees), |best| (Some(best.round), best.trees));
    (round.map(|round| round as i32), trees as i32)
}

/// Writes `folds.parquet`: for each fold, one row per metric on the validation part and one per metric on the test
/// part.
pub(crate) fn write_folds(folds: &[FoldResult], convention: &Convention, location: &Location) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("fold", DataType::Int32, false),
        Field::new("split", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, false),
        Field::new("value", DataType::Float64, false),
        Field::new("best_round", DataType::Int32, true),
        Field::new("trees", DataType::Int32, false),
        Field::new("queries", DataType::Int64, false),
        Field::new("seconds", DataType::Float64, false),
    ]));
    let mut rows = Vec::new();
    for fold in folds {
        rows.extend(fold.record.valid.iter().map(|value| (fold, VALID, value, fold.valid_queries)));
        rows.extend(fold.test.iter().map(|value| (fold, "test", value, fold.test_queries)));
    }
    let chosen: Vec<(Option<i32>, i32)> =
        rows.iter().map(|(fold, _, value, _)| round_and_trees(fold, &value.metric)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|(fold, ..)| fold.number as i32))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, split, ..)| *split))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, _, value, _)| &value.metric))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, _, value, _)| value.value))),
        Arc::new(chosen.iter().map(|(round, _)| *round).collect::<Int32Array>()),
        Arc::new(chosen.iter().map(|(_, trees)| Some(*trees)).collect::<Int32Array>()),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(.., queries)| *queries as i64))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(fold, ..)| fold.record.seconds))),
    ];
    let mut writer = TableWriter::create(location, TableKind::Folds, schema.clone())?;
    writer.set_metadata(Convention::KEY, convention.to_string());
    writer.write(&batch_of(schema, columns, location)?)?;
    writer.finish()
}
