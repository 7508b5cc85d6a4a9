//! Holds the scores of all members of a blend for the same rows.

use super::no_labels;
use planetree_base::error::Result;
use planetree_base::least_squares::LeastSquares;
use planetree_data::dataset::DatasetReader;
use planetree_model::model::{BlendMember, Normalisation};
use planetree_model::predict::{predict, scores_of};

/// The rows of the validation data, with the normalised scores of every member.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BlendScores {
    /// Where the rows come from, for messages.
    pub place: String,
    /// Names of the members.
    pub members: Vec<String>,
    /// Query ids, one per query.
    pub queries: Vec<String>,
    /// The first row of every query, followed by the number of rows.
    pub bounds: Vec<u32>,
    /// Document ids; `None` if not all rows have one.
    pub documents: Option<Vec<String>>,
    /// Labels; NaN for rows without a label.
    pub labels: Vec<f32>,
    /// For each member, its normalised scores, one per row.
    pub values: Vec<Vec<f64>>,
}

impl BlendScores {
    /// Scores a dataset with all models.
    pub fn of_models(members: &[BlendMember], reader: &DatasetReader) -> Result<Self> {
        let mut scores = BlendScores { place: reader.location().to_string(), ..BlendScores::default() };
        let Some((first, others)) = members.split_first() else { return Ok(scores) };
        let mut values = Vec::new();
        let mut documents: Vec<Option<String>> = Vec::new();
        let threads = rayon::current_num_threads();
        predict(reader, &first.model, threads, &mut |group| {
            for (query, label) in group.query_ids.iter().zip(&group.labels) {
                scores.push(query.unwrap_or_default(), label);
            }
            documents.extend(group.doc_ids.iter().map(|document| document.map(str::to_owned)));
            values.extend_from_slice(&group.scores);
            Ok(())
        })?;
        scores.documents = documents.into_iter().collect();
        scores.finish()?;
        scores.add(&first.name, values, first.normalisation);
        for member in others {
            scores.add(&member.name, scores_of(reader, &member.model)?, member.normalisation);
        }
        Ok(scores)
    }

    /// Appends a row.
    pub(super) fn push(&mut self, query: &str, label: Option<f32>) {
        if self.queries.last().map(String::as_str) != Some(query) {
            self.queries.push(query.to_owned());
            self.bounds.push(self.labels.len() as u32);
        }
        self.labels.push(label.unwrap_or(f32::NAN));
    }

    /// Completes the rows. Returns an error if none of them has a label.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.bounds.push(self.labels.len() as u32);
        if self.labels.iter().all(|label| label.is_nan()) {
            return Err(no_labels(&self.place));
        }
        Ok(())
    }

    /// Adds the scores of a member.
    pub(super) fn add(&mut self, name: &str, mut values: Vec<f64>, normalisation: Normalisation) {
        normalise(&mut values, &self.bounds, normalisation);
        self.members.push(name.to_owned());
        self.values.push(values);
    }

    /// Returns the rows of every query.
    pub fn query_rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
    }

    /// Returns whether a member ranks nothing: all documents of every query have the same value.
    pub fn is_constant(&self, member: usize) -> bool {
        let values = &self.values[member];
        self.query_rows().all(|rows| values[rows].windows(2).all(|pair| pair[0] == pair[1]))
    }

    /// Fits the labels of all rows that have one by the values of members and a constant.
    pub(super) fn least_squares(&self, members: &[usize]) -> LeastSquares {
        let has_label = |label: &f32| if label.is_nan() { 0.0 } else { 1.0 };
        let weights: Vec<f64> = self.labels.iter().map(has_label).collect();
        let labels: Vec<f64> =
            self.labels.iter().map(|label| if label.is_nan() { 0.0 } else { f64::from(*label) }).collect();
        let columns: Vec<&[f64]> = members.iter().map(|member| self.values[*member].as_slice()).collect();
        LeastSquares::fit(&columns, &labels, Some(&weights))
    }

    /// Returns the weighted sum of all members' values, added in order.
    pub fn combined(&self, weights: &[f64], intercept: f64) -> Vec<f64> {
        let mut sum = vec![intercept; self.labels.len()];
        for (values, weight) in self.values.iter().zip(weights) {
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }
}

/// Normalises values within queries. Queries begin and end at `bounds`.
pub(super) fn normalise(values: &mut [f64], bounds: &[u32], normalisation: Normalisation) {
    for query in bounds.windows(2) {
        normalisation.apply(&mut values[query[0] as usize..query[1] as usize]);
    }
}
