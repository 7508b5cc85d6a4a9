//! Writes and reads the predictions table, which has one row per document, in the order of the dataset.

use super::group::{PartColumn, PredictedGroup};
use crate::model::Model;
use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int32Type, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, digest_of};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::provenance::{DATASET, TRAINED_ON};
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// Writes a predictions table.
pub struct PredictionsTable(TableWriter);

impl PredictionsTable {
    /// Starts writing predictions. The file becomes visible when [`PredictionsTable::finish`] is called.
    pub fn create(location: &Location) -> Result<Self> {
        Self::with_parts(location, &[])
    }

    /// Starts writing predictions with an additional column for each name in `parts`. All row groups must have the same
    /// columns.
    pub fn with_parts(location: &Location, parts: &[String]) -> Result<Self> {
        let schema = schema_with(parts.iter().map(String::as_str));
        Ok(PredictionsTable(TableWriter::create(location, TableKind::Predictions, schema)?))
    }

    /// Appends the predictions of a row group.
    pub fn write(&mut self, group: PredictedGroup) -> Result<()> {
        self.0.write(&group.into_batch()?)
    }

    /// Completes the table and records the model, its training data and the dataset in the metadata.
    pub fn finish(mut self, model_file: &Location, model: &Model, dataset: &DatasetReader) -> Result<()> {
        let trained_on: Vec<String> = model.trained_on().map(|digest| digest.to_string()).collect();
        self.0.set_metadata(TRAINED_ON, trained_on.join(","));
        self.finish_with(model_file, [dataset])
    }

    /// Completes a table of out-of-bag scores. The score of a row comes from trees that were not trained on that row.
    /// So only the model and the datasets are recorded in the metadata, but no training data. The table has the rows of
    /// all datasets, one dataset after the other.
    pub fn finish_out_of_bag<'a>(
        self,
        model_file: &Location,
        datasets: impl IntoIterator<Item = &'a DatasetReader>,
    ) -> Result<()> {
        self.finish_with(model_file, datasets)
    }

    /// Completes a table whose scores are not those of a single model. `fingerprints` are those of the predicted datasets
    /// and of the training datasets, where they are known.
    pub fn finish_blend(mut self, fingerprints: &[Vec<String>; 2]) -> Result<()> {
        for (key, fingerprints) in [DATASET, TRAINED_ON].into_iter().zip(fingerprints) {
            if !fingerprints.is_empty() {
                self.0.set_metadata(key, fingerprints.join(","));
            }
        }
        self.0.finish()
    }

    fn finish_with<'a>(
        mut self,
        model_file: &Location,
        datasets: impl IntoIterator<Item = &'a DatasetReader>,
    ) -> Result<()> {
        let fingerprints = datasets.into_iter().map(|dataset| Ok(dataset.fingerprint()?.to_string()));
        self.0.set_metadata("planetree.model_fingerprint", model_fingerprint(model_file)?);
        self.0.set_metadata(DATASET, fingerprints.collect::<Result<Vec<_>>>()?.join(","));
        self.0.finish()
    }
}

impl PredictedGroup {
    /// Converts the group to a batch of the predictions table.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let ranks = Int32Array::from_iter_values(self.ranks.iter().map(|rank| *rank as i32));
        let schema = schema_with(self.parts.iter().map(|part| part.name.as_str()));
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.query_ids),
            Arc::new(self.doc_ids),
            Arc::new(self.labels),
            Arc::new(Float64Array::from(self.scores)),
            Arc::new(ranks),
        ];
        let parts =
            self.parts.into_iter().map(|part| -> ArrayRef { Arc::new(Float64Array::from(part.values)) });
        columns.extend(parts);
        let batch = RecordBatch::try_new(schema, columns);
        batch.map_err(|error| Error::place("predictions", &error, "convert the data again").caused_by(error))
    }

    /// Converts a batch of the predictions table back to a group. Returns `None` if the schema differs.
    pub fn from_batch(batch: &RecordBatch) -> Option<Self> {
        let (schema, usual) = (batch.schema(), predictions_schema());
        let usual = usual.fields();
        if schema.fields().get(..usual.len()) != Some(usual) {
            return None;
        }
        let numbers =
            |column: usize| Some(batch.column(column).as_primitive_opt::<Float64Type>()?.values().to_vec());
        let parts = (usual.len()..batch.num_columns()).map(|column| {
            Some(PartColumn { name: schema.field(column).name().clone(), values: numbers(column)? })
        });
        Some(PredictedGroup {
            query_ids: batch.column(0).as_string_opt()?.clone(),
            doc_ids: batch.column(1).as_string_opt()?.clone(),
            labels: batch.column(2).as_primitive_opt::<Float32Type>()?.clone(),
            scores: numbers(3)?,
            ranks: batch
                .column(4)
                .as_primitive_opt::<Int32Type>()?
                .values()
                .iter()
                .map(|rank| *rank as u32)
                .collect(),
            parts: parts.collect::<Option<_>>()?,
        })
    }
}

/// Returns the fingerprint of a model, which is the hash of its file.
pub fn model_fingerprint(model: &Location) -> Result<String> {
    let bytes = model.read_all()?.ok_or_else(|| model.absent())?;
    Ok(digest_of(&bytes).to_string())
}

/// Returns the schema of the predictions table without the optional columns for the parts of the model.
pub fn predictions_schema() -> SchemaRef {
    schema_with(std::iter::empty())
}

fn schema_with<'a>(parts: impl Iterator<Item = &'a str>) -> SchemaRef {
    let mut fields = vec![
        Field::new("query_id", DataType::Utf8, false),
        Field::new("doc_id", DataType::Utf8, true),
        Field::new("label", DataType::Float32, true),
        Field::new("score", DataType::Float64, false),
        Field::new("rank", DataType::Int32, false),
    ];
    fields.extend(parts.map(|name| Field::new(name, DataType::Float64, false)));
    Arc::new(Schema::new(fields))
}
