//! What a cross-validation writes over all folds: predictions, metrics of every query, and the folds
//! themselves. Rows come in the order of the parts, whichever fold tested them.

use super::FoldResult;
use super::fold::VALID;
use super::measure::{Measure, QueryMetrics};
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use planetree_metric::{Convention, Mean, Metric};
use planetree_model::predict::predictions_schema;
use std::sync::Arc;

/// Queries that are written together.
const STEP: usize = 1 << 14;

/// A fold's predictions, and the fold that made them.
pub struct Tested {
    /// Counted from 1.
    pub fold: usize,
    /// Its predictions.
    pub predictions: Location,
}

/// Writes predictions and metrics over all folds; the means of each, in the order given.
pub fn write_tested(
    tested: &[Tested],
    metrics: &[Metric],
    convention: &Convention,
    output: &Location,
) -> Result<Vec<Vec<Mean>>> {
    let mut predictions = TableWriter::create(
        &output.join("predictions.parquet"),
        TableKind::Predictions,
        with_fold(&predictions_schema(), 5),
    )?;
    let mut queries = MetricsTable::create(&output.join("metrics.parquet"), metrics, convention)?;
    let mut means = Vec::new();
    for part in tested {
        let table = TableReader::open(&part.predictions, TableKind::Predictions)?;
        for batch in table.batches() {
            let batch = batch?;
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(Int32Array::from_value(part.fold as i32, batch.num_rows())));
            predictions.write(&batch_of(with_fold(&predictions_schema(), 5), columns, &part.predictions)?)?;
        }
        means
            .push(Measure::new(metrics, convention).all(&table, &mut |query| queries.add(part.fold, query))?);
    }
    predictions.finish()?;
    queries.finish()?;
    Ok(means)
}

/// A schema with the number of the fold put in.
fn with_fold(schema: &SchemaRef, place: usize) -> SchemaRef {
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.insert(place, Arc::new(Field::new("fold", DataType::Int32, false)));
    Arc::new(Schema::new(fields))
}

fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, place: &Location) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, columns)
        .map_err(|error| Error::place(place, error, "remove it and run the command again"))
}

/// The metrics of every query while they are written.
struct MetricsTable {
    location: Location,
    schema: SchemaRef,
    writer: TableWriter,
    metrics: usize,
    rows: Vec<(usize, QueryMetrics)>,
}

impl MetricsTable {
    fn create(location: &Location, metrics: &[Metric], convention: &Convention) -> Result<Self> {
        let names: Vec<String> = metrics.iter().map(Metric::to_string).collect();
        let mut fields = vec![
            Field::new("query_id", DataType::Utf8, false),
            Field::new("documents", DataType::Int32, false),
            Field::new("relevant", DataType::Int32, false),
        ];
        fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, true)));
        let gains = ["dcg", "idcg"].into_iter().filter(|name| !names.iter().any(|other| other == name));
        fields.extend(gains.map(|name| Field::new(name, DataType::Float64, false)));
        let place = fields.len();
        let schema = with_fold(&Arc::new(Schema::new(fields)), place);
        let mut writer = TableWriter::create(location, TableKind::Metrics, schema.clone())?;
        writer.set_metadata(Convention::KEY, convention.to_string());
        writer.set_metadata("planetree.metrics", names.join(","));
        let metrics = names.len();
        Ok(MetricsTable { location: location.clone(), schema, writer, metrics, rows: Vec::new() })
    }

    fn add(&mut self, fold: usize, query: QueryMetrics) -> Result<()> {
        self.rows.push((fold, query));
        if self.rows.len() >= STEP { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let whole = |of: &dyn Fn(&(usize, QueryMetrics)) -> usize| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| of(row) as i32)))
        };
        let names = StringArray::from_iter_values(rows.iter().map(|(_, query)| query.query.as_str()));
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(names), whole(&|(_, query)| query.documents), whole(&|(_, query)| query.relevant)];
        for metric in 0..self.metrics {
            let values = rows.iter().map(|(_, query)| query.values[metric]);
            columns.push(Arc::new(values.collect::<Float64Array>()));
        }
        // A metric that is called so is there already.
        let behind_metrics =
            |name: &str| self.schema.index_of(name).is_ok_and(|place| place >= 3 + self.metrics);
        let mut add = |name: &str, of: fn(&QueryMetrics) -> f64| {
            if behind_metrics(name) {
                let values = rows.iter().map(|(_, query)| of(query));
                columns.push(Arc::new(Float64Array::from_iter_values(values)));
            }
        };
        add("dcg", |query| query.dcg);
        add("idcg", |query| query.ideal_dcg);
        columns.push(whole(&|(fold, _)| *fold));
        self.writer.write(&batch_of(self.schema.clone(), columns, &self.location)?)
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        self.writer.finish()
    }
}

/// Writes a row per fold, split and metric.
pub fn write_folds(folds: &[FoldResult], convention: &Convention, location: &Location) -> Result<()> {
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
    let number = |of: &dyn Fn(&FoldResult) -> Option<i32>| -> ArrayRef {
        Arc::new(rows.iter().map(|(fold, ..)| of(fold)).collect::<Int32Array>())
    };
    let columns: Vec<ArrayRef> = vec![
        number(&|fold| Some(fold.number as i32)),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, split, ..)| *split))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, _, value, _)| &value.metric))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, _, value, _)| value.value))),
        number(&|fold| fold.record.best_round.map(|round| round as i32)),
        number(&|fold| Some(fold.record.trees as i32)),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(.., queries)| *queries as i64))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(fold, ..)| fold.record.seconds))),
    ];
    let mut writer = TableWriter::create(location, TableKind::Folds, schema.clone())?;
    writer.set_metadata(Convention::KEY, convention.to_string());
    writer.write(&batch_of(schema, columns, location)?)?;
    writer.finish()
}
