//! Predictions as a table: a row per document, in the order of the dataset's rows.

use super::stream::PredictedGroup;
use crate::model::Model;
use arrow::array::{Float64Array, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, digest_of};
use planetree_data::dataset::DatasetReader;
use planetree_data::table::provenance::{DATASET, TRAINED_ON};
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// The predictions while they are written.
pub struct PredictionsTable(TableWriter);

impl PredictionsTable {
    /// Prepares to write predictions; nobody sees them before [`PredictionsTable::finish`].
    pub fn create(place: &Location) -> Result<Self> {
        Ok(PredictionsTable(TableWriter::create(place, TableKind::Predictions, predictions_schema())?))
    }

    /// Appends the scores of a row group.
    pub fn write(&mut self, group: PredictedGroup) -> Result<()> {
        self.0.write(&group.into_batch()?)
    }

    /// Completes the table, which says of which model and which dataset the scores are.
    pub fn finish(mut self, place: &Location, model: &Model, dataset: &DatasetReader) -> Result<()> {
        let trained_on: Vec<String> = model.trained_on().map(|digest| digest.to_string()).collect();
        self.0.set_metadata(TRAINED_ON, trained_on.join(","));
        self.finish_unseen(place, [dataset])
    }

    /// The same for scores of trees that have not seen the rows, of several datasets end to end.
    pub fn finish_unseen<'a>(
        mut self,
        model: &Location,
        datasets: impl IntoIterator<Item = &'a DatasetReader>,
    ) -> Result<()> {
        let fingerprints = datasets.into_iter().map(|dataset| Ok(dataset.fingerprint()?.to_string()));
        self.0.set_metadata("planetree.model_fingerprint", model_fingerprint(model)?);
        self.0.set_metadata(DATASET, fingerprints.collect::<Result<Vec<_>>>()?.join(","));
        self.0.finish()
    }
}

impl PredictedGroup {
    /// The rows as the table has them.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let ranks = Int32Array::from_iter_values(self.ranks.iter().map(|rank| *rank as i32));
        let batch = RecordBatch::try_new(
            predictions_schema(),
            vec![
                Arc::new(self.query_ids),
                Arc::new(self.doc_ids),
                Arc::new(self.labels),
                Arc::new(Float64Array::from(self.scores)),
                Arc::new(ranks),
            ],
        );
        batch.map_err(|error| Error::place("predictions", error, "convert the data again"))
    }

    /// The group that rows of the table were made of; `None` if these are none.
    pub fn from_batch(batch: &RecordBatch) -> Option<Self> {
        use arrow::array::AsArray;
        use arrow::datatypes::{Float32Type, Float64Type, Int32Type};
        if batch.schema_ref().fields() != predictions_schema().fields() {
            return None;
        }
        Some(PredictedGroup {
            query_ids: batch.column(0).as_string_opt()?.clone(),
            doc_ids: batch.column(1).as_string_opt()?.clone(),
            labels: batch.column(2).as_primitive_opt::<Float32Type>()?.clone(),
            scores: batch.column(3).as_primitive_opt::<Float64Type>()?.values().to_vec(),
            ranks: batch
                .column(4)
                .as_primitive_opt::<Int32Type>()?
                .values()
                .iter()
                .map(|rank| *rank as u32)
                .collect(),
        })
    }
}

/// What identifies a model: the hash of its file.
pub fn model_fingerprint(model: &Location) -> Result<String> {
    let bytes = model.read_all()?.ok_or_else(|| model.absent())?;
    Ok(digest_of(&bytes).to_string())
}

/// The columns of the predictions.
pub fn predictions_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("query_id", DataType::Utf8, false),
        Field::new("doc_id", DataType::Utf8, true),
        Field::new("label", DataType::Float32, true),
        Field::new("score", DataType::Float64, false),
        Field::new("rank", DataType::Int32, false),
    ]))
}
