//! Scores rows with a model: `intercept + weight * value` of every part, in order.
//!
//! The values of a part are the same whether it is alone or one of several. A model of one part without weight and
//! intercept scores to the bit as its part, without further passes over the scores.

use crate::family::{PartScorer, RowValues};
use crate::model::{Model, Normalisation, Part};
use arrow::array::Float32Array;
use fearless_simd::Level;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;

/// A model prepared for scoring many rows.
#[derive(Debug)]
pub struct Scorer {
    intercept: f64,
    parts: Vec<PreparedPart>,
    /// Whether scores are the values of the only part.
    is_plain: bool,
    needs_queries: bool,
    /// Number of features of the model, used or not.
    features: usize,
    /// The features that scores depend on, in ascending order.
    used: Vec<u32>,
}

/// A part of a model, prepared.
#[derive(Debug)]
pub(super) struct PreparedPart {
    weight: f64,
    normalisation: Normalisation,
    compares_documents: bool,
    scorer: Box<dyn PartScorer>,
}

impl PreparedPart {
    /// Whether values depend on the other documents of the query before they are normalised.
    pub fn compares_documents(&self) -> bool {
        self.compares_documents
    }

    /// Computes values that are not yet normalised. Queries begin and end at `bounds`, which matter only if documents
    /// are compared.
    pub fn values(&self, rows: RowValues<'_>, bounds: &[usize], values: &mut [f64]) -> Result<()> {
        if !self.compares_documents {
            self.scorer.score(rows, values);
            return Ok(());
        }
        for query in bounds.windows(2) {
            interrupt::check()?;
            self.scorer.score(rows.skip(query[0]), &mut values[query[0]..query[1]]);
        }
        Ok(())
    }
}

impl Scorer {
    /// Prepares a model. It must be valid, as a trained or read model always is.
    pub fn new(model: &Model) -> Self {
        Self::for_level(model, Level::new())
    }

    /// Prepares a model for given vector instructions.
    pub(super) fn for_level(model: &Model, level: Level) -> Self {
        let parts = model.parts.iter().map(|part| PreparedPart {
            weight: part.weight,
            normalisation: part.normalisation,
            compares_documents: part.family.compares_documents(),
            scorer: part.family.scorer(&model.features, level),
        });
        Scorer {
            intercept: model.intercept,
            parts: parts.collect(),
            is_plain: model.is_plain(),
            needs_queries: model.parts.iter().any(Part::needs_queries),
            features: model.features.len(),
            used: model.used_features().into_iter().collect(),
        }
    }

    /// The features that scores depend on, in ascending order. Other features are not read.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        self.used.iter().copied()
    }

    /// Whether the score of a document depends on the other documents of its query.
    pub fn needs_queries(&self) -> bool {
        self.needs_queries
    }

    /// The parts of the model.
    pub(super) fn parts(&self) -> &[PreparedPart] {
        &self.parts
    }

    /// Scores rows in row-major order, each with a value for every feature of the model. Missing values are NaN;
    /// the model's fill values are applied. Values beyond the end of `rows` count as missing. If scores depend on the
    /// other documents of a query, the rows are the documents of one query.
    pub fn score(&self, rows: &[f32], scores: &mut [f64]) {
        self.score_query(RowValues::Matrix { values: rows, width: self.features }, scores);
    }

    /// Scores rows given as columns, one for every feature of the model. Missing values are null or NaN; the model's
    /// fill values are applied. A feature without a column is missing, and so are values beyond the end of a column. If
    /// scores depend on the other documents of a query, the rows are the documents of one query.
    pub fn score_columns(&self, columns: &[Option<&Float32Array>], scores: &mut [f64]) {
        self.score_query(RowValues::Columns { columns, first: 0 }, scores);
    }

    /// The same for rows of several queries, which begin and end at `bounds`: the first bound is 0, the last is the
    /// number of rows.
    pub fn score_queries(
        &self,
        columns: &[Option<&Float32Array>],
        bounds: &[usize],
        scores: &mut [f64],
    ) -> Result<()> {
        if !self.needs_queries() {
            self.score_columns(columns, scores);
            return Ok(());
        }
        let mut values = vec![vec![0.0; scores.len()]; self.parts.len()];
        for (part, values) in self.parts.iter().zip(&mut values) {
            part.values(RowValues::Columns { columns, first: 0 }, bounds, values)?;
        }
        self.combine(&mut values, bounds, scores);
        Ok(())
    }

    /// Normalises the values of all parts within the queries, and computes the scores from them.
    pub(super) fn combine(&self, values: &mut [Vec<f64>], bounds: &[usize], scores: &mut [f64]) {
        for (part, values) in self.parts.iter().zip(values.iter_mut()) {
            for query in bounds.windows(2) {
                part.normalisation.apply(&mut values[query[0]..query[1]]);
            }
        }
        if self.is_plain {
            scores.copy_from_slice(&values[0]);
            return;
        }
        scores.fill(self.intercept);
        for (part, values) in self.parts.iter().zip(values) {
            add(scores, part.weight, values);
        }
    }

    fn score_query(&self, rows: RowValues<'_>, scores: &mut [f64]) {
        if self.is_plain {
            return self.parts[0].scorer.score(rows, scores);
        }
        let mut values = vec![0.0; scores.len()];
        scores.fill(self.intercept);
        for part in &self.parts {
            part.scorer.score(rows, &mut values);
            part.normalisation.apply(&mut values);
            add(scores, part.weight, &values);
        }
    }
}

fn add(scores: &mut [f64], weight: f64, values: &[f64]) {
    scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
}
