//! Writes curves of quality against cost as a table, with one row per point.

use super::{CostPoint, CostRequest, ModelCurves};
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::Convention;
use planetree_model::predict::{ExitScope, ExitShare};
use std::sync::Arc;

/// Writes the points of all curves of all models. `dataset` is the fingerprint of the dataset.
pub fn write_points(
    curves: &[ModelCurves],
    request: &CostRequest,
    dataset: &str,
    location: &Location,
) -> Result<()> {
    let mut fields = vec![
        Field::new("model", DataType::Utf8, false),
        Field::new("exit_percent", DataType::Float64, false),
        Field::new("trees", DataType::Int32, false),
        Field::new("documents", DataType::Int64, false),
        Field::new("cost", DataType::Float64, false),
        Field::new("tree_cost", DataType::Float64, false),
    ];
    fields.extend(request.metrics.iter().map(|(name, _)| Field::new(name, DataType::Float64, true)));
    let points = || curves.iter().flat_map(|curves| &curves.points);
    let names: Vec<&str> =
        curves.iter().flat_map(|curves| curves.points.iter().map(|_| curves.name.as_str())).collect();
    let number = |of: fn(&CostPoint) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(points().map(of)))
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        number(|point| point.percent),
        Arc::new(Int32Array::from_iter_values(points().map(|point| point.trees as i32))),
        Arc::new(Int64Array::from_iter_values(points().map(|point| point.documents as i64))),
        number(|point| point.cost),
        number(|point| point.tree_cost),
    ];
    for metric in 0..request.metrics.len() {
        columns.push(Arc::new(points().map(|point| point.values[metric]).collect::<Float64Array>()));
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns)
        .map_err(|error| Error::bug("costs", &error).caused_by(error))?;
    let mut table = TableWriter::create(location, TableKind::Costs, schema)?;
    table.set_metadata(Convention::KEY, request.convention.to_string());
    if let Some(map) = &request.label_map {
        table.set_metadata(LabelMap::KEY, map.to_string());
    }
    let scope = match request.scope {
        ExitScope::Pooled => "pooled",
        ExitScope::Query => "query",
    };
    let share = match request.share {
        ExitShare::Remaining => "remaining",
        ExitShare::All => "all",
    };
    table.set_metadata("planetree.exit_every", request.every.to_string());
    table.set_metadata("planetree.exit_scope", scope.to_owned());
    table.set_metadata("planetree.exit_of", share.to_owned());
    let models: Vec<&str> = curves.iter().map(|curves| curves.fingerprint.as_str()).collect();
    table.set_metadata("planetree.model_fingerprint", models.join(","));
    table.set_metadata("planetree.dataset", dataset.to_owned());
    table.write(&batch)?;
    table.finish()
}
