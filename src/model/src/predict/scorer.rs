//! Scores rows with a model. A score is the intercept plus `weight * value` of every term, added in order. A term is a
//! part or a group of parts (`terms.rs`).
//!
//! The values of a part do not depend on the other parts. If a model has a single part with weight 1, no normalisation
//! and no intercept, its scores are the values of the part, and no further pass over the scores is needed.

use super::terms::PreparedTerms;
use crate::family::{PartScorer, RowValues};
use crate::model::{Model, Normalisation};
use arrow::array::Float32Array;
use fearless_simd::Level;
use planetree_base::error::Result;
use planetree_base::storage::interrupt;

/// A model prepared for scoring many rows.
#[derive(Debug)]
pub struct Scorer {
    intercept: f64,
    parts: Vec<PreparedPart>,
    /// How the values of groups are computed. `None` if the model has no groups.
    terms: Option<PreparedTerms>,
    /// Whether the scores are the values of a single part, without further arithmetic.
    is_plain: bool,
    needs_queries: bool,
    /// Number of features of the model, including those that scores do not depend on.
    features: usize,
    /// The features that scores depend on, in ascending order.
    used: Vec<u32>,
}

/// A part of a model, prepared for scoring.
#[derive(Debug)]
pub(super) struct PreparedPart {
    weight: f64,
    normalisation: Normalisation,
    compares_documents: bool,
    scorer: Box<dyn PartScorer>,
}

impl PreparedPart {
    /// Returns whether the values of a document depend on the other documents of its query even before normalisation.
    pub(super) fn compares_documents(&self) -> bool {
        self.compares_documents
    }

    /// Computes the values of the part before normalisation. Queries begin and end at `bounds`, which are used only if
    /// the part compares documents.
    pub(super) fn values(&self, rows: RowValues<'_>, bounds: &[usize], values: &mut [f64]) -> Result<()> {
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
    /// Prepares a model. It must be valid, as a trained or read model always is. Returns an error if the value of the
    /// model is only one term of a score (see [`Model::check_complete`]).
    pub fn new(model: &Model) -> Result<Self> {
        Self::for_level(model, Level::new())
    }

    /// Prepares a model for the given vector instructions.
    pub(super) fn for_level(model: &Model, level: Level) -> Result<Self> {
        model.check_complete(&model.origin)?;
        let parts = model.parts.iter().map(|part| PreparedPart {
            weight: part.weight,
            normalisation: part.normalisation,
            compares_documents: part.family.compares_documents(),
            scorer: part.family.scorer(&model.features, level),
        });
        Ok(Scorer {
            intercept: model.intercept,
            parts: parts.collect(),
            terms: (!model.groups.is_empty()).then(|| PreparedTerms::of(model)),
            is_plain: model.is_plain(),
            needs_queries: model.needs_queries(),
            features: model.features.len(),
            used: model.used_features().into_iter().collect(),
        })
    }

    /// Returns the indices of the features that scores depend on, in ascending order. Other features are not read.
    pub fn used_features(&self) -> impl Iterator<Item = u32> {
        self.used.iter().copied()
    }

    /// Returns whether the score of a document depends on the other documents of its query.
    pub fn needs_queries(&self) -> bool {
        self.needs_queries
    }

    /// Returns the prepared parts of the model.
    pub(super) fn parts(&self) -> &[PreparedPart] {
        &self.parts
    }

    /// Scores rows. `rows` is in row-major order, with one value per feature of the model. NaN and values beyond the
    /// end of `rows` count as missing, and the model's fill values are applied. If scores depend on the other documents
    /// of a query, the rows must be all documents of one query.
    pub fn score(&self, rows: &[f32], scores: &mut [f64]) {
        self.score_query(RowValues::Matrix { values: rows, width: self.features }, scores);
    }

    /// Scores rows. `columns` has one entry per feature of the model. Nulls, NaN, values beyond the end of a column and
    /// all values of a feature without a column count as missing, and the model's fill values are applied. If scores
    /// depend on the other documents of a query, the rows must be all documents of one query.
    pub fn score_columns(&self, columns: &[Option<&Float32Array>], scores: &mut [f64]) {
        self.score_query(RowValues::Columns { columns, first: 0 }, scores);
    }

    /// Scores rows of several queries like [`Scorer::score_columns`]. Queries begin and end at `bounds`. The first
    /// bound is 0, and the last bound is the number of rows.
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
        match &self.terms {
            Some(terms) => terms.add_to(scores, values, bounds),
            None => self.parts.iter().zip(values).for_each(|(part, values)| add(scores, part.weight, values)),
        }
    }

    fn score_query(&self, rows: RowValues<'_>, scores: &mut [f64]) {
        if self.is_plain {
            return self.parts[0].scorer.score(rows, scores);
        }
        if self.terms.is_some() {
            let mut values = vec![vec![0.0; scores.len()]; self.parts.len()];
            self.parts.iter().zip(&mut values).for_each(|(part, values)| part.scorer.score(rows, values));
            return self.combine(&mut values, &[0, scores.len()], scores);
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

pub(super) fn add(scores: &mut [f64], weight: f64, values: &[f64]) {
    scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
}
