//! Scores one row group of a dataset.

use super::group_columns::{BATCH_VALUES, GroupColumns};
use super::rank::ranks;
use super::scorer::Scorer;
use crate::family::RowValues;
use crate::model::{Model, ModelClasses};
use arrow::array::{Array, AsArray, Float32Array, RecordBatch, StringArray};
use arrow::datatypes::Float32Type;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::{DatasetReader, GroupId, GroupReader, unexpected_columns};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The predictions for one row group, with one entry per row.
#[derive(Debug)]
pub struct PredictedGroup {
    /// Query ids.
    pub query_ids: StringArray,
    /// Document ids. Null for rows without a document id.
    pub doc_ids: StringArray,
    /// Labels. Null for rows without a label.
    pub labels: Float32Array,
    /// Scores.
    pub scores: Vec<f64>,
    /// Ranks within the query, counted from 1.
    pub ranks: Vec<u32>,
    /// The normalised values of the parts. Empty unless they are requested.
    pub parts: Vec<PartColumn>,
}

/// The values of a part of the model, as a column of the predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct PartColumn {
    /// Column name.
    pub name: String,
    /// Normalised values, before they are multiplied by the weight of the part.
    pub values: Vec<f64>,
}

/// Returns the column names of a model's parts: `part.NAME`, followed by `.2`, `.3` and so on if the name is repeated.
/// Those of a model of classes are followed by the probabilities of its classes.
pub fn part_columns(model: &Model) -> Vec<String> {
    let mut taken = HashSet::new();
    let unique = |name: &str| {
        let plain = format!("part.{name}");
        let numbered = (2..).map(|number| format!("{plain}.{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or(plain)
    };
    let mut columns: Vec<String> = model.parts.iter().map(|part| part.name.as_str()).map(unique).collect();
    columns.extend(model.classes().iter().flat_map(ModelClasses::columns));
    columns
}

/// Scores the row groups of a dataset, one at a time.
pub struct GroupPredictor {
    scorer: Scorer,
    columns: GroupColumns,
    /// Column names of the parts and classes. Empty unless their values are requested.
    parts: Vec<String>,
    classes: Option<ModelClasses>,
}

/// The scores of a row group, and the values of the parts if they are requested.
pub(super) struct GroupScores {
    pub scores: Vec<f64>,
    pub parts: Vec<PartColumn>,
}

impl GroupPredictor {
    /// Prepares a model for a dataset, which must have the features of the model.
    pub fn new(model: &Model, reader: &DatasetReader) -> Result<Self> {
        let (scorer, columns) = (Scorer::new(model)?, GroupColumns::new(model, reader)?);
        Ok(GroupPredictor { scorer, columns, parts: Vec::new(), classes: None })
    }

    /// Prepares a model like [`GroupPredictor::new`]. If `parts` is true, predictions also contain the values of the
    /// parts.
    pub fn with_parts(model: &Model, reader: &DatasetReader, parts: bool) -> Result<Self> {
        let (parts, classes) =
            if parts { (part_columns(model), model.classes()) } else { (Vec::new(), None) };
        Ok(GroupPredictor { parts, classes, ..Self::new(model, reader)? })
    }

    /// Returns a warning about features or categories that the dataset or the model lacks.
    pub fn warning(&self) -> Option<String> {
        self.columns.warning()
    }

    /// Scores and ranks the rows of a group.
    pub fn predict(&self, reader: &DatasetReader, id: GroupId) -> Result<TimedGroup<PredictedGroup>> {
        self.finish(reader, id, &|group, scores| complete(reader, group, scores))
    }

    /// Returns the scores of the rows in a group.
    pub fn scores(&self, reader: &DatasetReader, group: &GroupReader) -> Result<Vec<f64>> {
        Ok(self.score(reader, group)?.0.scores)
    }

    /// Returns the scores of the rows in a group, and the values of the parts and classes if they were requested.
    pub fn scores_and_parts(
        &self,
        reader: &DatasetReader,
        group: &GroupReader,
    ) -> Result<(Vec<f64>, Vec<PartColumn>)> {
        let GroupScores { scores, parts } = self.score(reader, group)?.0;
        Ok((scores, parts))
    }

    /// Scores a group and passes the scores to `finish`. Returns its result and timings.
    pub(super) fn finish<T>(
        &self,
        reader: &DatasetReader,
        id: GroupId,
        finish: &dyn Fn(&GroupReader, GroupScores) -> Result<T>,
    ) -> Result<TimedGroup<T>> {
        let started = Instant::now();
        let group = reader.open_group(id)?;
        let (scores, score) = self.score(reader, &group)?;
        let result = finish(&group, scores)?;
        Ok(TimedGroup { result, rows: group.rows(), load: started.elapsed() - score, score })
    }

    /// Scores a group. Also returns the time spent scoring.
    fn score(&self, reader: &DatasetReader, group: &GroupReader) -> Result<(GroupScores, Duration)> {
        let (scores, spent) = match self.parts.is_empty() && !self.scorer.needs_queries() {
            true => self.score_rows(reader, group)?,
            false => self.score_parts(reader, group)?,
        };
        check_finite(reader, group, &scores.scores)?;
        Ok((scores, spent))
    }

    /// Scores the rows of a group batch by batch. No score may depend on other rows.
    fn score_rows(&self, reader: &DatasetReader, group: &GroupReader) -> Result<(GroupScores, Duration)> {
        let (mut scores, mut spent) = (vec![0.0; group.rows()], Duration::ZERO);
        self.columns.each_batch(reader, group, BATCH_VALUES, &mut |first, rows, columns| {
            let started = Instant::now();
            self.scorer.score_columns(columns, &mut scores[first..first + rows]);
            spent += started.elapsed();
            Ok(())
        })?;
        Ok((GroupScores { scores, parts: Vec::new() }, spent))
    }

    /// Computes the values of every part for the whole group, and then the scores from these values. Rows are read
    /// batch by batch. If a part compares documents, all rows are read at once, because batches would divide queries.
    fn score_parts(&self, reader: &DatasetReader, group: &GroupReader) -> Result<(GroupScores, Duration)> {
        let (rows, mut spent) = (group.rows(), Duration::ZERO);
        let bounds = query_bounds(reader, group)?;
        let mut values = vec![vec![0.0; rows]; self.scorer.parts().len()];
        let is_whole = self.scorer.parts().iter().any(|part| part.compares_documents());
        let batch_values = if is_whole { usize::MAX } else { BATCH_VALUES };
        self.columns.each_batch(reader, group, batch_values, &mut |first, rows, columns| {
            let started = Instant::now();
            for (part, values) in self.scorer.parts().iter().zip(&mut values) {
                let columns = RowValues::Columns { columns, first: 0 };
                part.values(columns, &bounds, &mut values[first..first + rows])?;
            }
            spent += started.elapsed();
            Ok(())
        })?;
        let started = Instant::now();
        let mut scores = vec![0.0; rows];
        self.scorer.combine(&mut values, &bounds, &mut scores);
        let classes = self.classes.as_ref().map(|classes| classes.probabilities(&values, rows));
        spent += started.elapsed();
        let columns = self.parts.iter().cloned().zip(values.into_iter().chain(classes.into_iter().flatten()));
        let parts = columns.map(|(name, values)| PartColumn { name, values }).collect();
        Ok((GroupScores { scores, parts }, spent))
    }
}

/// The result for a row group, with timings.
#[derive(Debug)]
pub struct TimedGroup<T> {
    /// The result.
    pub result: T,
    /// Number of rows.
    pub rows: usize,
    /// Time spent reading and decoding.
    pub load: Duration,
    /// Time spent scoring.
    pub score: Duration,
}

/// Returns the index of the first row of each query in a group, followed by the number of rows in the group.
pub(super) fn query_bounds(reader: &DatasetReader, group: &GroupReader) -> Result<Vec<usize>> {
    let queries = group.read(0..1)?;
    let queries = queries.column(0).as_string_opt::<i32>();
    Ok(bounds_of(queries.ok_or_else(|| unexpected_columns(reader.location()))?))
}

/// Returns the index of the first row of each query, followed by the number of rows.
pub fn bounds_of(queries: &StringArray) -> Vec<usize> {
    let rows = queries.len();
    let starts = (0..rows).filter(|row| *row == 0 || queries.value(*row) != queries.value(row - 1));
    starts.chain([rows]).collect()
}

/// Returns an error if a score is not finite. This happens if the sum of finite values overflows.
pub(super) fn check_finite(reader: &DatasetReader, group: &GroupReader, scores: &[f64]) -> Result<()> {
    let Some(row) = scores.iter().position(|score| !score.is_finite()) else { return Ok(()) };
    let rows = row_identity(reader, group)?;
    let query = rows
        .column(0)
        .as_string_opt::<i32>()
        .ok_or_else(|| unexpected_columns(reader.location()))?
        .value(row);
    Err(Error::place(
        reader.location(),
        format_args!("the score of row {} (query {query}) {NOT_FINITE}", group.first_row() + row as u64 + 1),
        "check the leaf values or weights of the model, or train it with a lower learning_rate",
    ))
}

/// The end of an error message about a score.
pub const NOT_FINITE: &str = "is not finite: the sum of the tree values or weighted features overflows";

/// Adds the identifying columns and the ranks to the scores of a group.
pub(super) fn complete(
    reader: &DatasetReader,
    group: &GroupReader,
    scores: GroupScores,
) -> Result<PredictedGroup> {
    let GroupScores { scores, parts } = scores;
    Ok(PredictedGroup { parts, ..ranked_rows(reader, &row_identity(reader, group)?, scores)? })
}

/// Reads the query ids, document ids and labels of a group.
pub fn row_identity(reader: &DatasetReader, group: &GroupReader) -> Result<RecordBatch> {
    /// The first columns of every dataset.
    const COLUMNS: [&str; 3] = ["query_id", "doc_id", "label"];
    if !group.names().starts_with(&COLUMNS) {
        return Err(unexpected_columns(reader.location()));
    }
    group.read(0..COLUMNS.len())
}

/// Combines rows, as returned by [`row_identity`], with their scores and ranks.
pub(super) fn ranked_rows(
    reader: &DatasetReader,
    rows: &RecordBatch,
    scores: Vec<f64>,
) -> Result<PredictedGroup> {
    let text = |column: usize| rows.column(column).as_string_opt::<i32>().cloned();
    let labels = rows.column(2).as_primitive_opt::<Float32Type>().cloned();
    let (Some(query_ids), Some(doc_ids), Some(labels)) = (text(0), text(1), labels) else {
        return Err(unexpected_columns(reader.location()));
    };
    let ranks = ranks(&query_ids, &scores);
    Ok(PredictedGroup { query_ids, doc_ids, labels, scores, ranks, parts: Vec::new() })
}
