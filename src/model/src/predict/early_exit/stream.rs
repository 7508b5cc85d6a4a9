//! Scores a dataset with early exits.

use super::rows::{ExitGroup, ExitRows};
use super::rule::{EarlyExit, ExitScope};
use super::scorer::ExitScorer;
use crate::family::RowValues;
use crate::model::Model;
use crate::predict::group::{PredictedGroup, check_finite, query_bounds, ranked_rows, row_identity};
use crate::predict::group_columns::{BATCH_VALUES, GroupColumns};
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, GroupId, unexpected_columns};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Summary of scoring with early exits.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitReport {
    /// Number of rows.
    pub rows: u64,
    /// Number of trees that were evaluated, over all rows.
    pub evaluated: u64,
    /// Time spent reading and decoding rows, and ranking them.
    pub load: Duration,
    /// Time spent scoring.
    pub score: Duration,
    /// A warning about features or categories that the dataset or the model lacks.
    pub warning: Option<String>,
}

/// Scores a dataset and passes the row groups to `sink` in row order. If exits are pooled, the encoded features that the
/// model uses are held in memory for all rows; otherwise for as many row groups as there are threads.
pub fn predict_with_exits(
    reader: &DatasetReader,
    model: &Model,
    rule: EarlyExit,
    sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
) -> Result<ExitReport> {
    let scorer = ExitScorer::new(model, rule)?;
    let columns = GroupColumns::new(model, reader)?;
    let (load, score) = (Duration::ZERO, Duration::ZERO);
    let mut report = ExitReport { rows: 0, evaluated: 0, load, score, warning: columns.warning() };
    let ids: Vec<GroupId> = reader.groups().into_iter().collect();
    let at_a_time = match rule.scope {
        ExitScope::Pooled => ids.len(),
        ExitScope::Query => rayon::current_num_threads(),
    };
    for ids in ids.chunks(at_a_time.max(1)) {
        let begun = Instant::now();
        let (mut rows, encoding) = ExitRows::load_timed(reader, &columns, &scorer, ids)?;
        let loaded = Instant::now();
        rows.finish()?;
        report.score += encoding + loaded.elapsed();
        report.evaluated += rows.evaluated().map(u64::from).sum::<u64>();
        let scored = Instant::now();
        let predicted = |(id, scores): (&GroupId, Vec<f64>)| {
            let group = reader.open_group(*id)?;
            check_finite(reader, &group, &scores)?;
            ranked_rows(reader, &row_identity(reader, &group)?, scores)
        };
        let predicted: Vec<PredictedGroup> =
            ids.par_iter().zip(rows.scores()).map(predicted).collect::<Result<_>>()?;
        report.load += (loaded - begun).saturating_sub(encoding) + scored.elapsed();
        for group in predicted {
            report.rows += group.scores.len() as u64;
            sink(group)?;
        }
    }
    Ok(report)
}

impl<'a> ExitRows<'a> {
    /// Reads row groups of a dataset.
    pub fn load(
        reader: &DatasetReader,
        columns: &GroupColumns,
        scorer: &'a ExitScorer,
        ids: &[GroupId],
    ) -> Result<Self> {
        Ok(Self::load_timed(reader, columns, scorer, ids)?.0)
    }

    /// Reads row groups of a dataset. Also returns the time spent encoding values, averaged over all threads.
    fn load_timed(
        reader: &DatasetReader,
        columns: &GroupColumns,
        scorer: &'a ExitScorer,
        ids: &[GroupId],
    ) -> Result<(Self, Duration)> {
        let encoding = AtomicU64::new(0);
        let load = |id: &GroupId| {
            let group = reader.open_group(*id)?;
            let bounds = query_bounds(reader, &group)?;
            let mut rows = ExitGroup::new(scorer, bounds.clone());
            // Batches would divide queries, over which features may be normalised.
            let batch_values = if scorer.normaliser.is_some() { usize::MAX } else { BATCH_VALUES };
            let mut loaded = 0;
            columns.each_batch(reader, &group, batch_values, &mut |first, count, columns| {
                let begun = Instant::now();
                let values = RowValues::Columns { columns, first: 0 };
                let normaliser = scorer.normaliser.as_ref();
                let normalised = normaliser.map(|normaliser| normaliser.normalise(values, &bounds));
                let values = normalised.as_ref().map_or(values, |normalised| normalised.rows());
                rows.append(scorer, first, count, values);
                loaded = first + count;
                encoding.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                Ok(())
            })?;
            if loaded != group.rows() {
                return Err(unexpected_columns(reader.location()));
            }
            Ok(rows)
        };
        let groups = ids.par_iter().map(load).collect::<Result<_>>()?;
        let encoding = encoding.into_inner() / rayon::current_num_threads() as u64;
        Ok((ExitRows::new(scorer, groups), Duration::from_nanos(encoding)))
    }
}
