//! Writes `steps.parquet`, which has one row per step of a pipeline run, for SQL queries.

use super::manifest::{RunManifest, STEPS_TABLE};
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// Returns the schema of the table.
pub(crate) fn steps_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("step", DataType::Utf8, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("status", DataType::Utf8, false),
        Field::new("seconds", DataType::Float64, true),
        Field::new("rows", DataType::Int64, true),
        Field::new("bytes", DataType::Int64, true),
        Field::new("peak_memory_bytes", DataType::Int64, true),
        Field::new("outputs", DataType::Utf8, false),
    ]))
}

/// Writes the table to a run directory.
pub(super) fn write_steps(manifest: &RunManifest, run: &Location) -> Result<()> {
    let location = run.join(STEPS_TABLE);
    let steps = &manifest.steps;
    let texts = |text: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..steps.len()).map(text)))
    };
    let counts = |count: &dyn Fn(usize) -> Option<u64>| -> ArrayRef {
        let count = |step: usize| count(step).and_then(|count| i64::try_from(count).ok());
        Arc::new((0..steps.len()).map(count).collect::<Int64Array>())
    };
    let outputs = |step: usize| steps[step].outputs.values().cloned().collect::<Vec<_>>().join(", ");
    let columns: Vec<ArrayRef> = vec![
        texts(&|step| steps[step].name.clone()),
        texts(&|step| steps[step].kind.clone()),
        texts(&|step| steps[step].status.name().to_owned()),
        Arc::new(steps.iter().map(|step| step.seconds).collect::<Float64Array>()),
        counts(&|step| steps[step].rows),
        counts(&|step| steps[step].bytes),
        counts(&|step| steps[step].peak_memory_bytes),
        texts(&outputs),
    ];
    let batch = RecordBatch::try_new(steps_schema(), columns)
        .map_err(|error| Error::bug(&location, &error).caused_by(error))?;
    let mut writer = TableWriter::create(&location, TableKind::Steps, steps_schema())?;
    writer.set_metadata("planetree.pipeline", manifest.pipeline.clone());
    writer.write(&batch)?;
    writer.finish()
}
