//! Loads predictions into memory, from any file that can be evaluated.

use super::predictions::Predictions;
use super::rows::RowView;
use super::text_predictions;
use crate::plan::BATCH_ROWS;
use arrow::array::Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use std::collections::HashSet;

/// The rows of a file of predictions, in order.
#[derive(Debug, Clone)]
pub struct LoadedPredictions {
    /// The file.
    pub location: Location,
    /// Query ids, one per query.
    pub queries: Vec<String>,
    /// The first row of every query, followed by the number of rows.
    pub bounds: Vec<u32>,
    /// Document ids, one per row; `None` for rows without one.
    pub documents: Vec<Option<String>>,
    /// Labels, one per row; NaN for rows without one.
    pub labels: Vec<f32>,
    /// Scores, one per row.
    pub scores: Vec<f64>,
    /// Fingerprints of the predicted datasets and of the training datasets, separated by commas; `None` if unknown.
    pub fingerprints: [Option<String>; 2],
}

/// Loads predictions. Returns an error if the rows of a query are not contiguous or a score is not finite.
pub fn load_predictions(location: &Location) -> Result<LoadedPredictions> {
    let mut fingerprints = [None, None];
    let readers = match text_predictions::format_of(location)? {
        Some(format) => vec![text_predictions::reader(location, format, None)],
        None => {
            let predictions = Predictions::open(location, None)?;
            fingerprints.clone_from(&predictions.fingerprints);
            predictions.readers(BATCH_ROWS)
        }
    };
    let mut rows = LoadedPredictions {
        location: location.clone(),
        queries: Vec::new(),
        bounds: Vec::new(),
        documents: Vec::new(),
        labels: Vec::new(),
        scores: Vec::new(),
        fingerprints,
    };
    for reader in readers {
        for batch in reader()? {
            interrupt::check()?;
            rows.add(&RowView::of(&batch?))?;
        }
    }
    rows.bounds.push(rows.scores.len() as u32);
    if rows.scores.is_empty() {
        return Err(Error::place(location, "no rows", "choose a file that contains rows"));
    }
    let mut names = HashSet::new();
    match rows.queries.iter().find(|query| !names.insert(query.as_str())) {
        None => Ok(rows),
        Some(query) => Err(Error::place(
            location,
            format_args!("the rows of query {query:?} are not contiguous"),
            "sort the rows by query",
        )),
    }
}

impl LoadedPredictions {
    fn add(&mut self, view: &RowView<'_>) -> Result<()> {
        for row in 0..view.query_ids.len() {
            let query = view.query_ids.value(row);
            if self.queries.last().map(String::as_str) != Some(query) {
                self.queries.push(query.to_owned());
                self.bounds.push(self.scores.len() as u32);
            }
            let score = view.scores.value(row);
            if !score.is_finite() {
                return Err(Error::place(
                    &self.location,
                    format_args!("the score of row {} (query {query:?}) is {score}", self.scores.len() + 1),
                    "replace scores that are not finite",
                ));
            }
            self.documents.push(view.doc_ids.is_valid(row).then(|| view.doc_ids.value(row).to_owned()));
            self.labels.push(if view.labels.is_valid(row) { view.labels.value(row) } else { f32::NAN });
            self.scores.push(score);
        }
        Ok(())
    }
}
