//! A dataset with what every feature contributes to its scores: a row per document and feature.

use super::{Sink, Source, Wanted, warn};
use arrow::array::{Array, ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_data::dataset::{DatasetReader, GroupReader};
use planetree_model::explain::Explainer;
use planetree_model::model::Model;
use planetree_model::predict::{ColumnPlan, GroupScorer};
use std::ops::Range;
use std::sync::Arc;

/// Contributions that are made at a time.
const VALUES: usize = 1 << 16;
/// `query_id`, `doc_id` and `label`, with which every dataset begins.
const NAMES: usize = 3;

/// See the module.
pub struct ExplainedSource {
    reader: Arc<DatasetReader>,
    explained: RowExplainer,
    scorer: GroupScorer,
    model: String,
    schema: SchemaRef,
}

/// What explains rows of one dataset.
pub struct RowExplainer {
    explainer: Explainer,
    plan: ColumnPlan,
    /// The features that contribute anything, by place and name.
    used: Vec<(usize, String)>,
}

/// Some rows, explained.
pub struct Explained {
    /// `query_id`, `doc_id` and `label`.
    pub names: Vec<ArrayRef>,
    /// The value of every used feature, where the dataset has it.
    values: Vec<Option<Float32Array>>,
    /// Row after row, the contribution of every feature of the model.
    contributions: Vec<f64>,
    rows: usize,
}

impl RowExplainer {
    /// Prepares a model for a dataset.
    pub fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        let explainer = Explainer::new(model)?;
        let plan = ColumnPlan::new(model, explainer.used_features(), reader)?;
        let used = explainer.used_features().map(|feature| feature as usize);
        let used = used.map(|feature| (feature, model.features[feature].name.clone())).collect();
        Ok(RowExplainer { explainer, plan, used })
    }

    /// What the user should know of how model and dataset fit.
    pub fn warning(&self) -> Option<String> {
        self.plan.found.warning()
    }

    /// The names of the features that contribute anything.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.used.iter().map(|(_, name)| name.as_str())
    }

    /// Explains a group's rows, some at a time.
    pub fn explain(
        &self,
        reader: &DatasetReader,
        group: &GroupReader,
        sink: &mut dyn FnMut(Explained) -> Result<()>,
    ) -> Result<()> {
        let odd = || {
            Error::place(
                reader.location(),
                "its columns are not those of a dataset",
                "convert the data again",
            )
        };
        let first = group.columns().checked_sub(reader.manifest().features.len()).ok_or_else(odd)?;
        let mut places: Vec<usize> = (0..NAMES).collect();
        places.extend(self.plan.used.iter().map(|(place, _)| first + place));
        let width = self.explainer.features().max(1);
        group.read_batches(&places, (VALUES / width).max(1), &mut |batch| {
            let values = self.plan.values(&batch.columns()[NAMES..], reader)?;
            let columns = values.by_feature(width);
            let rows = batch.num_rows();
            let mut contributions = vec![0.0; rows * width];
            self.explainer.explain_columns(&columns, 0..rows, &mut contributions);
            let values = self.used.iter().map(|(feature, _)| columns[*feature].cloned()).collect();
            sink(Explained { names: batch.columns()[..NAMES].to_vec(), values, contributions, rows })
        })
    }

    /// The contribution of a row by a used feature, and the feature's value.
    pub fn of(&self, explained: &Explained, row: usize, used: usize) -> (f64, Option<f32>) {
        let width = self.explainer.features().max(1);
        let value = explained.values[used].as_ref().filter(|column| column.is_valid(row));
        (explained.contributions[row * width + self.used[used].0], value.map(|column| column.value(row)))
    }
}

impl ExplainedSource {
    /// The rows of a dataset, explained by a model.
    pub fn new(reader: Arc<DatasetReader>, model: &Model, shown: String) -> Result<Self> {
        let explained = RowExplainer::new(model, &reader)?;
        warn(&reader, explained.warning());
        let scorer = GroupScorer::new(model, &reader)?;
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

    /// A row per document and feature.
    fn rows(&self, explained: &Explained, scores: &[f64]) -> Result<Vec<ArrayRef>> {
        let RowExplainer { explainer, used, .. } = &self.explained;
        let places: Vec<(usize, usize)> =
            (0..explained.rows).flat_map(|row| (0..used.len()).map(move |feature| (row, feature))).collect();
        let each = || places.iter().copied();
        let repeat = UInt32Array::from_iter_values(each().map(|(row, _)| row as u32));
        let refused = |error| Error::place("explain_score", error, "report this: it is a fault of planetree");
        let names = explained.names.iter().map(|column| take(column, &repeat, None).map_err(refused));
        let mut columns = names.collect::<Result<Vec<ArrayRef>>>()?;
        let of = |(row, feature): (usize, usize)| self.explained.of(explained, row, feature);
        columns.push(Arc::new(Float64Array::from_iter_values(each().map(|(row, _)| scores[row]))));
        columns.push(Arc::new(Float64Array::from_value(explainer.expected_value(), repeat.len())));
        columns.push(Arc::new(StringArray::from_iter_values(each().map(|(_, feature)| &used[feature].1))));
        columns.push(Arc::new(each().map(|place| of(place).1).collect::<Float32Array>()));
        columns.push(Arc::new(Float64Array::from_iter_values(each().map(|place| of(place).0))));
        Ok(columns)
    }
}

impl Source for ExplainedSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn shown(&self) -> String {
        format!("explanation of model {}, dataset {}", self.model, self.reader.location())
    }

    fn unit_rows(&self) -> Vec<u64> {
        let files = self.reader.manifest().files.iter();
        let features = self.explained.used.len() as u64;
        files.flat_map(|file| file.row_groups.iter().map(|group| group.rows * features)).collect()
    }

    fn read(&self, units: Range<usize>, wanted: &Wanted, sink: &mut Sink<'_>) -> Result<()> {
        for id in self.reader.groups().drain(units) {
            let group = self.reader.open_group(id)?;
            let scores = self.scorer.scores(&self.reader, &group)?;
            let mut first = 0;
            self.explained.explain(&self.reader, &group, &mut |explained| {
                let rows = first..first + explained.rows;
                first = rows.end;
                let all = self.rows(&explained, &scores[rows])?;
                let columns = wanted.columns.iter().map(|column| all[*column].clone()).collect();
                let batch = RecordBatch::try_new(wanted.schema.clone(), columns);
                sink(batch.map_err(|error| {
                    Error::place("explain_score", error, "report this: it is a fault of planetree")
                })?)
            })?;
        }
        Ok(())
    }
}
