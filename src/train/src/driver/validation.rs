//! Validation sets. Their scores are updated in every round, and all metrics are computed after each round. The rows of
//! a set are shared by all parts that are trained at the same time; each part has scores of its own.

use super::metrics::Metrics;
use super::scores::Scores;
use crate::bins::{BinnedData, Binning, read_rows};
use crate::config::Parameters;
use crate::tree::CodedTree;
use planetree_base::error::{Error, Result};
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_metric::Mean;
use planetree_model::model::{Branch, Tree};
use rayon::prelude::*;
use std::sync::Arc;

/// The rows of a validation set.
pub struct ValidationData {
    /// The name in the log.
    pub name: String,
    features: Arc<Features>,
    metrics: Metrics,
}

/// A validation set with the scores of one part.
pub(crate) struct ValidationSet {
    /// The rows.
    pub data: Arc<ValidationData>,
    scores: Scores,
}

/// The features of a validation set. With static bins, trees split only between bins, so codes (bin numbers) suffice.
/// Otherwise a threshold can lie anywhere between two values, so the values must be kept.
enum Features {
    Coded(BinnedData),
    Values { rows: Vec<LabelledRows>, partitions: Vec<Vec<f32>>, width: usize },
}

impl ValidationData {
    /// Reads a validation set. `thresholds_are_cuts` means that trees split only between bins, so that codes suffice.
    /// `label` maps the labels of the data to those that metrics compare with.
    pub fn load<L: Sync>(
        name: &str,
        source: &LabelledData,
        binning: &Arc<Binning>,
        thresholds_are_cuts: bool,
        parameters: &Parameters<L>,
        label: impl Fn(f32) -> f32,
    ) -> Result<Self> {
        let mut features = if thresholds_are_cuts {
            Features::Coded(BinnedData::by_bins(source, binning)?)
        } else {
            read_values(source, binning)?
        };
        for rows in features.rows_mut() {
            rows.labels.iter_mut().for_each(|old| *old = label(*old));
        }
        let metrics = Metrics::new(parameters, features.rows())?;
        Ok(ValidationData { name: name.to_owned(), metrics, features: Arc::new(features) })
    }

    /// Returns the same rows with the metrics of other parameters.
    pub fn with_metrics<L: Sync>(&self, parameters: &Parameters<L>) -> Result<Self> {
        let metrics = Metrics::new(parameters, self.rows())?;
        Ok(ValidationData { name: self.name.clone(), metrics, features: self.features.clone() })
    }

    /// Returns the labels and queries of all rows.
    pub fn rows(&self) -> &[LabelledRows] {
        self.features.rows()
    }

    /// Computes the metrics of scores.
    pub fn evaluate(&self, scores: &Scores) -> Vec<Mean> {
        self.metrics.evaluate(self.features.rows(), scores)
    }

    /// Frees the query ids, which are not needed for evaluation.
    pub fn forget_queries(&mut self) {
        if let Some(features) = Arc::get_mut(&mut self.features) {
            features.rows_mut().iter_mut().for_each(|rows| rows.query_keys = Vec::new());
        }
    }

    /// Returns the number of the first row whose score is not finite, counted from 1. `None` if all are finite.
    pub fn not_finite(&self, scores: &Scores) -> Option<u64> {
        self.rows().par_iter().enumerate().find_map_first(|(partition, rows)| {
            let row = scores.partition(partition).iter().position(|score| !score.is_finite())?;
            Some(rows.first + row as u64 + 1)
        })
    }
}

impl ValidationSet {
    /// Creates a set with the scores before the first round.
    pub(crate) fn new(data: Arc<ValidationData>, scores: Scores) -> Self {
        ValidationSet { data, scores }
    }

    /// Returns the current scores.
    pub(crate) fn scores(&self) -> &Scores {
        &self.scores
    }

    /// Adds the predictions of a tree to the scores of all rows.
    pub(crate) fn add(&mut self, coded: &CodedTree, tree: &Tree) -> Result<()> {
        match &*self.data.features {
            Features::Coded(data) => self.scores.add_routed(coded, data, None),
            Features::Values { partitions, width, .. } => {
                self.scores.add_values(|partition, row| {
                    value_of(tree, &partitions[partition][row * width..][..*width])
                });
                Ok(())
            }
        }
    }

    /// Computes the metrics of the current scores.
    pub(crate) fn evaluate(&self) -> Vec<Mean> {
        self.data.evaluate(&self.scores)
    }

    /// Returns the predictions of a tree for all rows. `coded` computes the predictions for one partition if the set
    /// was loaded as codes.
    pub(crate) fn values(
        &self,
        tree: &Tree,
        coded: impl Fn(&BinnedData, usize) -> Result<Vec<f64>> + Sync,
    ) -> Result<Scores> {
        let values = (0..self.rows().len()).into_par_iter().map(|partition| match &*self.data.features {
            Features::Coded(data) => coded(data, partition),
            Features::Values { partitions, width, .. } => {
                Ok(partitions[partition].chunks_exact(*width).map(|row| value_of(tree, row)).collect())
            }
        });
        Ok(Scores::of_partitions(values.collect::<Result<_>>()?))
    }

    /// Computes scores query by query. `score` gets the feature values of a query, row by row, and the number of values
    /// per row. The set must have been loaded with its values.
    pub(crate) fn by_query(&self, score: impl Fn(&[f32], usize) -> Vec<f64> + Sync) -> Result<Scores> {
        let Features::Values { rows, partitions, width } = &*self.data.features else {
            return Err(Error::bug("validation", "a set without feature values is scored by query"));
        };
        let of_partition = |(rows, values): (&LabelledRows, &Vec<f32>)| {
            let of_query = |query: std::ops::Range<usize>| {
                score(&values[query.start * width..query.end * width], *width)
            };
            rows.queries().flat_map(of_query).collect()
        };
        Ok(Scores::of_partitions(rows.par_iter().zip(partitions).map(of_partition).collect()))
    }

    /// Returns the binned data if the set was loaded as codes.
    pub(crate) fn coded(&self) -> Option<&BinnedData> {
        match &*self.data.features {
            Features::Coded(data) => Some(data),
            Features::Values { .. } => None,
        }
    }

    /// Returns the labels and queries of all rows.
    pub(crate) fn rows(&self) -> &[LabelledRows] {
        self.data.rows()
    }

    /// Adds predictions to the scores of all rows.
    pub(crate) fn add_all(&mut self, values: &Scores) {
        self.scores.add_values(|partition, row| values.partition(partition)[row]);
    }

    /// Returns the scores of a mean over `trees` trees, whose predictions have been added to the scores.
    pub(crate) fn mean_scores(&self, trees: u32) -> Scores {
        self.scores.divided_by(f64::from(trees.max(1)))
    }
}

impl Features {
    fn rows(&self) -> &[LabelledRows] {
        match self {
            Features::Coded(data) => &data.rows,
            Features::Values { rows, .. } => rows,
        }
    }

    fn rows_mut(&mut self) -> &mut [LabelledRows] {
        match self {
            Features::Coded(data) => &mut data.rows,
            Features::Values { rows, .. } => rows,
        }
    }
}

fn read_values(source: &LabelledData, binning: &Binning) -> Result<Features> {
    let width = source.features();
    let rows = read_rows(source)?;
    source.expect_passes(2);
    let partitions = (0..source.partitions()).into_par_iter().map(|partition| {
        let group = source.open_partition(partition)?;
        let mut values = vec![0f32; group.rows() * width];
        for feature in 0..width {
            let fill = binning.features[feature].fill.unwrap_or(f32::NAN);
            let mut column = source.values(&group, feature)?;
            if !binning.features[feature].is_constant() {
                source.hash(&group, feature, &column);
            }
            binning.normalise(source, feature, &mut column, &rows[partition]);
            for (row, value) in column.into_iter().enumerate() {
                values[row * width + feature] = if value.is_nan() { fill } else { value };
            }
        }
        Ok(values)
    });
    Ok(Features::Values { partitions: partitions.collect::<Result<_>>()?, rows, width })
}

/// Returns the prediction of a tree for a row of feature values.
pub fn value_of(tree: &Tree, row: &[f32]) -> f64 {
    let mut id = 0;
    loop {
        let node = &tree.nodes[id as usize];
        let Some(split) = &node.split else { return node.value };
        let value = row[split.feature as usize];
        let branch = match value {
            value if value.is_nan() => split.missing,
            value if value <= split.threshold => Branch::Left,
            _ => Branch::Right,
        };
        id = match branch {
            Branch::Left => split.left,
            Branch::Right => split.right,
            Branch::Middle => match split.middle {
                Some(middle) => middle,
                None => return node.value,
            },
        };
    }
}
