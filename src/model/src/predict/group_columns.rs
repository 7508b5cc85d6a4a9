//! Reads the features of a row group that a model uses.

use super::columns::ColumnPlan;
use crate::family::trees::BLOCK;
use crate::model::Model;
use arrow::array::Float32Array;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;
use planetree_data::dataset::{DatasetReader, GroupReader, unexpected_columns};

/// The features of a dataset that a model uses.
pub struct GroupColumns(ColumnPlan);

/// A function that scores a batch. Its arguments are the index of the first row, the number of rows and the columns by
/// feature.
pub(crate) type BatchScorer<'a> = dyn FnMut(usize, usize, &[Option<&Float32Array>]) -> Result<()> + 'a;

/// Number of values per batch. It is small enough that the values are still in the cache when they are scored, and that
/// a group with many features needs little memory.
pub(crate) const BATCH_VALUES: usize = 1 << 20;

impl GroupColumns {
    /// Finds the features of a model in a dataset.
    pub fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        Ok(GroupColumns(ColumnPlan::new(model, model.used_features().into_iter(), reader)?))
    }

    /// Returns a warning about features or categories that the dataset or the model lacks.
    pub fn warning(&self) -> Option<String> {
        self.0.found.warning()
    }

    /// Decodes the columns that the model uses, about `batch_values` values at a time, and passes each batch to `sink`.
    pub(crate) fn each_batch(
        &self,
        reader: &DatasetReader,
        group: &GroupReader,
        batch_values: usize,
        sink: &mut BatchScorer<'_>,
    ) -> Result<()> {
        let features = &reader.manifest().features;
        let names = group.names();
        let first = names.len().checked_sub(features.len()).filter(|first| names[*first..] == *features);
        let first = first.ok_or_else(|| unexpected_columns(reader.location()))?;
        let plan = &self.0;
        if plan.used.is_empty() {
            return sink(0, group.rows(), &[]);
        }
        let width = plan.used.iter().map(|(_, feature)| feature + 1).max().unwrap_or(0);
        let columns: Vec<usize> = plan.used.iter().map(|(column, _)| first + column).collect();
        let batch_rows = (batch_values / columns.len()).min(group.rows()).max(1).next_multiple_of(BLOCK);
        let mut done = 0;
        group.read_batches(&columns, batch_rows, &mut |batch| {
            interrupt::check()?;
            let values = plan.values(batch.columns(), reader)?;
            let rows = batch.num_rows();
            if done + rows > group.rows() {
                return Err(unexpected_columns(reader.location()));
            }
            sink(done, rows, &values.by_feature(width))?;
            done += rows;
            Ok(())
        })
    }
}
