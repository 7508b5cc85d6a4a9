//! Writes the table of filled features.

use super::Imputed;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// Writes one row per feature that had missing values.
pub fn write_filled(imputed: &Imputed, location: &Location) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("feature", DataType::Utf8, false),
        Field::new("present", DataType::Int64, false),
        Field::new("missing", DataType::Int64, false),
        Field::new("mean", DataType::Float64, false),
        Field::new("filled_mean", DataType::Float64, true),
        Field::new("error", DataType::Float64, true),
        Field::new("r2", DataType::Float64, true),
        Field::new("sweeps", DataType::Int32, false),
    ]));
    let features = &imputed.features;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(features.iter().map(|feature| &feature.name))),
        Arc::new(Int64Array::from_iter_values(features.iter().map(|feature| feature.present as i64))),
        Arc::new(Int64Array::from_iter_values(features.iter().map(|feature| feature.missing as i64))),
        Arc::new(Float64Array::from_iter_values(features.iter().map(|feature| feature.mean))),
        Arc::new(features.iter().map(|feature| feature.filled_mean).collect::<Float64Array>()),
        Arc::new(features.iter().map(|feature| feature.error).collect::<Float64Array>()),
        Arc::new(features.iter().map(|feature| feature.r2).collect::<Float64Array>()),
        Arc::new(Int32Array::from_value(imputed.sweeps as i32, features.len())),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns)
        .map_err(|error| Error::bug("impute", format_args!("invalid table of features: {error}")))?;
    let mut table = TableWriter::create(location, TableKind::Filled, schema)?;
    table.write(&batch)?;
    table.finish()
}
