//! Scans a dataset and computes the contribution of every feature to the score of every document. There is one row
//! per document and feature.

use super::{BatchSink, ScanRequest, ScanSource, warn};
use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, RecordBatch, StringArray, UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_data::dataset::{DatasetReader, GroupReader, unexpected_columns};
use planetree_model::explain::Explainer;
use planetree_model::model::Model;
use planetree_model::predict::{ColumnPlan, GroupPredictor};
use std::ops::Range;
use std::sync::Arc;

/// Number of contributions computed at once.
const BATCH_CONTRIBUTIONS: usize = 1 << 16;
/// Number of key columns: `query_id`, `doc_id` and `label`.
const KEY_COLUMNS: usize = 3;

/// Source with the contributions of features to the scores of a dataset's rows.
pub(crate) struct ExplainedSource {
    reader: Arc<DatasetReader>,
    explained: RowExplainer,
    scorer: GroupPredictor,
    model: String,
    schema: SchemaRef,
}

/// Computes the contributions of features to the scores of a dataset's rows.
pub(crate) struct RowExplainer {
    explainer: Explainer,
    plan: ColumnPlan,
    /// Index and name of each feature that scores depend on.
    used: Vec<(usize, String)>,
}

/// Contributions and feature values of a batch of rows.
pub(crate) struct ExplainedBatch {
    /// `query_id`, `doc_id` and `label`.
    pub keys: Vec<ArrayRef>,
    /// The values of each used feature; `None` if the dataset does not have the feature.
    values: Vec<Option<Float32Array>>,
    /// The contributions of all features of the model, row by row.
    contributions: Vec<f64>,
    rows: usize,
}

impl RowExplainer {
    /// Prepares to explain the scores that a model gives to the rows of a dataset.
    pub(crate) fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        let explainer = Explainer::new(model)?;
        let plan = ColumnPlan::new(model, explainer.used_features(), reader)?;
        let used = explainer.used_features().map(|feature| feature as usize);
        let used = used.map(|feature| (feature, model.features[feature].name.clone())).collect();
        Ok(RowExplainer { explainer, plan, used })
    }

    /// Returns a warning if the model and the dataset do not match completely.
    pub(crate) fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// Returns the names of the features that scores depend on.
    pub(crate) fn features(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|(_, name)| name.as_str())
    }

    /// Explains the rows of a row group in batches.
    pub(crate) fn explain(
        &self,
        reader: &DatasetReader,
        group: &GroupReader,
        sink: &mut dyn FnMut(ExplainedBatch) -> Result<()>,
    ) -> Result<()> {
        let first = group
            .columns()
            .checked_sub(reader.manifest().features.len())
            .ok_or_else(|| unexpected_columns(reader.location()))?;
        let mut columns: Vec<usize> = (0..KEY_COLUMNS).collect();
        columns.extend(self.plan.used.iter().map(|(feature, _)| first + feature));
        let width = self.explainer.features().max(1);
        let batch_rows = match self.explainer.needs_queries() {
            true => group.rows().max(1), // batches would divide queries
            false => (BATCH_CONTRIBUTIONS / width).max(1),
        };
        group.read_batches(&columns, batch_rows, &mut |batch| {
            let values = self.plan.values(&batch.columns()[KEY_COLUMNS..], reader)?;
            let columns = values.by_feature(width);
            let rows = batch.num_rows();
            let mut contributions = vec![0.0; rows * width];
            let queries = batch
                .column(0)
                .as_string_opt::<i32>()
                .ok_or_else(|| unexpected_columns(reader.location()))?;
            for rows in self.explainer.independent_rows(queries, rows) {
                let out = &mut contributions[rows.start * width..rows.end * width];
                self.explainer.explain_columns(&columns, rows, out);
            }
            let values = self.used.iter().map(|(feature, _)| columns[*feature].cloned()).collect();
            sink(ExplainedBatch {
                keys: batch.columns()[..KEY_COLUMNS].to_vec(),
                values,
                contributions,
                rows,
            })
        })
    }

    /// Returns the contribution and the value of a feature in a row. `used` is the index among the used features.
    pub(crate) fn contribution(
        &self,
        explained: &ExplainedBatch,
        row: usize,
        used: usize,
    ) -> (f64, Option<f32>) {
        let width = self.explainer.features().max(1);
        let value = explained.values[used].as_ref().filter(|column| column.is_valid(row));
        (explained.contributions[row * width + self.used[used].0], value.map(|column| column.value(row)))
    }
}

impl ExplainedSource {
    /// Creates a source that explains the scores of a dataset's rows. `shown` is the name of the model in plans.
    pub(crate) fn new(reader: Arc<DatasetReader>, model: &Model, shown: String) -> Result<Self> {
        let explained = RowExplainer::new(model, &reader)?;
        warn(&reader, explained.warning());
        let scorer = GroupPredictor::new(model, &reader)?;
        let schema = Arc::new(Schema::new(vec![
            Field::new("query_id", DataType::Utf8, false),
            Field::new("doc_id", DataType::Utf8, true),
            Field::new("label", DataType::Float32, true),
            Field::new("score", DataType::Float64, false),
            Field::new("expected", DataType::Float64, false),
            Field::new("feature", DataType::Utf8, false),
            Field::new("value", DataType::Float32, true),
            Field::new("contribution", DataType::Float64, false),
        ]));
        Ok(ExplainedSource { reader, explained, scorer, model: shown, schema })
    }

    /// Returns all columns, with one row per document and feature.
    fn rows(&self, explained: &ExplainedBatch, scores: &[f64]) -> Result<Vec<ArrayRef>> {
        let RowExplainer { explainer, used, .. } = &self.explained;
        let cells: Vec<(usize, usize)> =
            (0..explained.rows).flat_map(|row| (0..used.len()).map(move |feature| (row, feature))).collect();
        let each = || cells.iter().copied();
        let repeat = UInt32Array::from_iter_values(each().map(|(row, _)| row as u32));
        let refused = |error| Error::bug("explain_score", &error).caused_by(error);
        let keys = explained.keys.iter().map(|column| take(column, &repeat, None).map_err(refused));
        let mut columns = keys.collect::<Result<Vec<ArrayRef>>>()?;
        let of = |(row, feature): (usize, usize)| self.explained.contribution(explained, row, feature);
        columns.push(Arc::new(Float64Array::from_iter_values(each().map(|(row, _)| scores[row]))));
        columns.push(Arc::new(Float64Array::from_value(explainer.expected_value(), repeat.len())));
        columns.push(Arc::new(StringArray::from_iter_values(each().map(|(_, feature)| &used[feature].1))));
        columns.push(Arc::new(each().map(|cell| of(cell).1).collect::<Float32Array>()));
        columns.push(Arc::new(Float64Array::from_iter_values(each().map(|cell| of(cell).0))));
        Ok(columns)
    }
}

impl ScanSource for ExplainedSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn description(&self) -> String {
        format!("explanation of model {}, dataset {}", self.model, self.reader.location())
    }

    fn row_group_rows(&self) -> Vec<u64> {
        let files = self.reader.manifest().files.iter();
        let features = self.explained.used.len() as u64;
        files.flat_map(|file| file.row_groups.iter().map(|group| group.rows * features)).collect()
    }

    fn counted_by(&self) -> Option<&DatasetReader> {
        Some(&self.reader)
    }

    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()> {
        for id in self.reader.groups().drain(row_groups) {
            let group = self.reader.open_group(id)?;
            let scores = self.scorer.scores(&self.reader, &group)?;
            let mut first = 0;
            self.explained.explain(&self.reader, &group, &mut |explained| {
                let rows = first..first + explained.rows;
                first = rows.end;
                let all = self.rows(&explained, &scores[rows])?;
                let columns = request.columns.iter().map(|column| all[*column].clone()).collect();
                let batch = RecordBatch::try_new(request.schema.clone(), columns);
                sink(batch.map_err(|error| Error::bug("explain_score", &error).caused_by(error))?)
            })?;
        }
        Ok(())
    }
}
