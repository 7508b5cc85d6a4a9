//! Scores a dataset with early exits.

use super::rows::{ExitGroup, ExitRows, ExitScorer};
use super::rule::{EarlyExit, ExitScope};
use crate::model::Model;
use crate::predict::group::{
    GroupPredictor, PredictedGroup, check_finite, query_bounds, ranked_rows, row_identity,
};
use arrow::array::{Array, Float32Array};
use arrow::compute::concat;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::{DatasetReader, GroupId, unexpected_columns};
use rayon::prelude::*;

/// Summary of scoring with early exits.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitReport {
    /// Number of rows.
    pub rows: u64,
    /// Number of trees that were evaluated, over all rows.
    pub evaluated: u64,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Scores a dataset and passes the row groups to `sink` in row order. If exits are pooled, the features that the model
/// uses are held in memory for all rows; otherwise for as many row groups as there are threads.
pub fn predict_with_exits(
    reader: &DatasetReader,
    model: &Model,
    rule: EarlyExit,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<ExitReport> {
    let scorer = ExitScorer::new(model, rule)?;
    let predictor = GroupPredictor::new(model, reader)?;
    let mut report = ExitReport { rows: 0, evaluated: 0, warning: predictor.warning() };
    let ids: Vec<GroupId> = reader.groups().into_iter().collect();
    let at_a_time = match rule.scope {
        ExitScope::Pooled => ids.len(),
        ExitScope::Query => rayon::current_num_threads(),
    };
    for ids in ids.chunks(at_a_time.max(1)) {
        let mut rows = ExitRows::load(reader, &predictor, &scorer, ids)?;
        rows.finish()?;
        report.evaluated += rows.evaluated().map(u64::from).sum::<u64>();
        for (id, scores) in ids.iter().zip(rows.scores()) {
            let group = reader.open_group(*id)?;
            check_finite(reader, &group, &scores)?;
            report.rows += scores.len() as u64;
            sink(ranked_rows(reader, &row_identity(reader, &group)?, scores)?)?;
        }
    }
    Ok(report)
}

impl<'a> ExitRows<'a> {
    /// Reads row groups of a dataset.
    pub fn load(
        reader: &DatasetReader,
        predictor: &GroupPredictor,
        scorer: &'a ExitScorer,
        ids: &[GroupId],
    ) -> Result<Self> {
        let load = |id: &GroupId| {
            let group = reader.open_group(*id)?;
            let mut batches: Vec<Vec<Option<Float32Array>>> = Vec::new();
            predictor.each_batch(reader, &group, usize::MAX, &mut |_, _, columns| {
                batches.push(columns.iter().map(|column| column.cloned()).collect());
                Ok(())
            })?;
            let width = batches.first().map_or(0, Vec::len);
            let columns = (0..width).map(|feature| {
                let parts: Option<Vec<&dyn Array>> = batches
                    .iter()
                    .map(|batch| batch[feature].as_ref().map(|column| column as &dyn Array))
                    .collect();
                let Some(parts) = parts else { return Ok(None) };
                let whole =
                    concat(&parts).map_err(|error| Error::bug("early exit", &error).caused_by(error))?;
                Ok(Some(Float32Array::from(whole.to_data())))
            });
            let columns: Vec<Option<Float32Array>> = columns.collect::<Result<_>>()?;
            if columns.iter().flatten().any(|column| column.len() != group.rows()) {
                return Err(unexpected_columns(reader.location()));
            }
            Ok(ExitGroup::new(scorer, columns, query_bounds(reader, &group)?))
        };
        Ok(ExitRows::new(scorer, ids.par_iter().map(load).collect::<Result<_>>()?))
    }
}
