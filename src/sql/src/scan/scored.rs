//! Scans a dataset and adds the scores of a model, which are computed as the rows are read.

use super::dataset::dataset_schema;
use super::{BatchSink, ScanRequest, ScanSource, warn};
use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, unexpected_columns};
use planetree_model::model::Model;
use planetree_model::predict::{GroupPredictor, ranks};
use std::ops::Range;
use std::sync::Arc;

/// Number of columns before the scores: `query_id`, `doc_id` and `label`.
const KEY_COLUMNS: usize = 3;
/// Number of added columns: `score` and `rank`.
const SCORE_COLUMNS: usize = 2;

/// A dataset with the columns `score` and `rank`.
pub(crate) struct ScoredSource {
    reader: Arc<DatasetReader>,
    scorer: GroupPredictor,
    model: String,
    schema: SchemaRef,
}

impl ScoredSource {
    /// Creates a source that scores a dataset with a model. `shown` is the name of the model in plans.
    pub(crate) fn new(reader: Arc<DatasetReader>, model: &Model, shown: String) -> Result<Self> {
        let scorer = GroupPredictor::new(model, &reader)?;
        warn(&reader, scorer.warning());
        let mut fields = renamed_columns(&dataset_schema(reader.manifest()), &["score", "rank"]);
        fields.splice(
            KEY_COLUMNS..KEY_COLUMNS,
            [Field::new("score", DataType::Float64, false), Field::new("rank", DataType::Int32, false)],
        );
        Ok(ScoredSource { reader, scorer, model: shown, schema: Arc::new(Schema::new(fields)) })
    }
}

/// Returns the columns of a dataset. A column with a reserved name gets the prefix `feature_`.
fn renamed_columns(dataset: &Schema, reserved: &[&str]) -> Vec<Field> {
    let renamed = |field: &Field| {
        let is_reserved = reserved.contains(&field.name().as_str());
        if is_reserved { field.clone().with_name(format!("feature_{}", field.name())) } else { field.clone() }
    };
    dataset.fields().iter().map(|field| renamed(field)).collect()
}

impl ScanSource for ScoredSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn description(&self) -> String {
        format!("score of model {}, dataset {}", self.model, self.reader.location())
    }

    fn row_group_rows(&self) -> Vec<u64> {
        let files = self.reader.manifest().files.iter();
        files.flat_map(|file| file.row_groups.iter().map(|group| group.rows)).collect()
    }

    fn counted_by(&self) -> Option<&DatasetReader> {
        Some(&self.reader)
    }

    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()> {
        let is_added = |column: &&usize| (KEY_COLUMNS..KEY_COLUMNS + SCORE_COLUMNS).contains(*column);
        let needs_scores = request.columns.iter().any(|column| is_added(&column));
        // Indices of the requested columns within the dataset. The first column is always read, because it gives the
        // number of rows.
        let mut own: Vec<usize> =
            request.columns.iter().filter(|column| !is_added(column)).copied().collect();
        own.iter_mut().filter(|column| **column >= KEY_COLUMNS).for_each(|column| *column -= SCORE_COLUMNS);
        own.push(0);
        own.sort_unstable();
        own.dedup();
        for id in self.reader.groups().drain(row_groups) {
            let group = self.reader.open_group(id)?;
            let scores = match needs_scores {
                true => self.scorer.scores(&self.reader, &group)?,
                false => Vec::new(),
            };
            let ranks = match request.columns.contains(&(KEY_COLUMNS + 1)) {
                true => {
                    let queries = group.read(0..1)?;
                    let queries = queries.column(0).as_string_opt::<i32>();
                    let queries = queries.ok_or_else(|| unexpected_columns(self.reader.location()))?;
                    ranks(queries, &scores).into_iter().map(|rank| rank as i32).collect()
                }
                false => Vec::new(),
            };
            let mut first = 0;
            group.read_batches(&own, request.batch_rows, &mut |batch| {
                let rows = first..first + batch.num_rows();
                first = rows.end;
                let columns = request.columns.iter().map(|column| -> ArrayRef {
                    match column.checked_sub(KEY_COLUMNS) {
                        Some(0) => Arc::new(Float64Array::from(scores[rows.clone()].to_vec())),
                        Some(1) => Arc::new(Int32Array::from(ranks[rows.clone()].to_vec())),
                        other => {
                            let index = other.map_or(*column, |_| column - SCORE_COLUMNS);
                            batch.column(own.partition_point(|own| *own < index)).clone()
                        }
                    }
                });
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let batch =
                    RecordBatch::try_new_with_options(request.schema.clone(), columns.collect(), &options);
                sink(batch.map_err(|_| unexpected_columns(self.reader.location()))?)
            })?;
        }
        Ok(())
    }
}
