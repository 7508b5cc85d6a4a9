//! A dataset with the scores that a model gives it: predictions that nobody wrote.

use super::dataset::dataset_schema;
use super::{Sink, Source, Wanted, warn};
use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use planetree_model::model::Model;
use planetree_model::predict::{GroupScorer, ranks};
use std::ops::Range;
use std::sync::Arc;

/// Columns that come before the scores: those that every dataset begins with.
const BEFORE: usize = 3;
/// `score` and `rank`.
const ADDED: usize = 2;

/// See the module.
pub struct ScoredSource {
    reader: Arc<DatasetReader>,
    scorer: GroupScorer,
    model: String,
    schema: SchemaRef,
}

impl ScoredSource {
    /// The rows of a dataset, scored with a model.
    pub fn new(reader: Arc<DatasetReader>, model: &Model, shown: String) -> Result<Self> {
        let scorer = GroupScorer::new(model, &reader)?;
        warn(&reader, scorer.warning());
        let mut fields = beside_scores(&dataset_schema(reader.manifest()), &["score", "rank"]);
        fields.splice(
            BEFORE..BEFORE,
            [Field::new("score", DataType::Float64, false), Field::new("rank", DataType::Int32, false)],
        );
        Ok(ScoredSource { reader, scorer, model: shown, schema: Arc::new(Schema::new(fields)) })
    }
}

/// The columns of a dataset beside others: one that has the same name is called `feature_` and its name.
pub fn beside_scores(dataset: &Schema, others: &[&str]) -> Vec<Field> {
    let renamed = |field: &Field| {
        let is_taken = others.contains(&field.name().as_str());
        if is_taken { field.clone().with_name(format!("feature_{}", field.name())) } else { field.clone() }
    };
    dataset.fields().iter().map(|field| renamed(field)).collect()
}

impl Source for ScoredSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn shown(&self) -> String {
        format!("score of model {}, dataset {}", self.model, self.reader.location())
    }

    fn unit_rows(&self) -> Vec<u64> {
        let files = self.reader.manifest().files.iter();
        files.flat_map(|file| file.row_groups.iter().map(|group| group.rows)).collect()
    }

    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()> {
        let is_added = |column: &&usize| (BEFORE..BEFORE + ADDED).contains(*column);
        let needs_scores = wanted.columns.iter().any(|column| is_added(&column));
        // The dataset's own columns by their places there, and always one, which tells the rows.
        let mut own: Vec<usize> = wanted.columns.iter().filter(|column| !is_added(column)).copied().collect();
        own.iter_mut().filter(|column| **column >= BEFORE).for_each(|column| *column -= ADDED);
        own.push(0);
        own.sort_unstable();
        own.dedup();
        for id in self.reader.groups().drain(units) {
            let group = self.reader.open_group(id)?;
            let scores = match needs_scores {
                true => self.scorer.scores(&self.reader, &group)?,
                false => Vec::new(),
            };
            let ranks = match wanted.columns.contains(&(BEFORE + 1)) {
                true => {
                    let queries = group.read(0..1)?;
                    let queries = queries.column(0).as_string_opt::<i32>();
                    let queries = queries.ok_or_else(|| unlike_its_schema(&self.reader))?;
                    ranks(queries, &scores).into_iter().map(|rank| rank as i32).collect()
                }
                false => Vec::new(),
            };
            let mut first = 0;
            group.read_batches(&own, wanted.batch_rows, &mut |batch| {
                let rows = first..first + batch.num_rows();
                first = rows.end;
                let columns = wanted.columns.iter().map(|column| -> ArrayRef {
                    match column.checked_sub(BEFORE) {
                        Some(0) => Arc::new(Float64Array::from(scores[rows.clone()].to_vec())),
                        Some(1) => Arc::new(Int32Array::from(ranks[rows.clone()].to_vec())),
                        other => {
                            let place = other.map_or(*column, |_| column - ADDED);
                            batch.column(own.partition_point(|own| *own < place)).clone()
                        }
                    }
                });
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let batch =
                    RecordBatch::try_new_with_options(wanted.schema.clone(), columns.collect(), &options);
                sink(batch.map_err(|_| unlike_its_schema(&self.reader))?)
            })?;
        }
        Ok(())
    }
}

fn unlike_its_schema(reader: &DatasetReader) -> Error {
    Error::place(reader.location(), "its columns are not those of a dataset", "convert the data again")
}
