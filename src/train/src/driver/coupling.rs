//! Parts that are coupled by a softmax: the classes of one run.

use super::scores::Scores;
use crate::objective::log_odds;
use crate::tree::AT_A_TIME;
use planetree_data::source::LabelledRows;
use planetree_model::model::{Link, PartGroup};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A class that is coupled with the other classes of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoupledClass {
    /// The grade whose rows have the label 1. All other rows have the label 0.
    pub grade: i32,
    /// The parts of all classes, by their index in the stage.
    pub members: Range<usize>,
}

impl CoupledClass {
    /// Returns the label that is learned in place of a label of the data.
    pub(crate) fn label(&self, label: f32) -> f32 {
        f32::from(u8::from(f64::from(label) == f64::from(self.grade)))
    }
}

/// Parts of a stage that are coupled by a softmax, with the weight of their expected value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftmaxGroup {
    /// The parts, by their index in the stage.
    pub members: Range<usize>,
    /// The factor of the expected value in the score.
    pub weight: f64,
}

impl SoftmaxGroup {
    /// Returns the groups of a model's parts that a stage trains, given the number of its first part.
    pub(crate) fn of_parts(groups: &[PartGroup], first_part: usize) -> Vec<Self> {
        let own = groups.iter().filter(|group| group.first_part >= first_part);
        let group = |group: &PartGroup| SoftmaxGroup {
            members: group.first_part - first_part..group.range().end - first_part,
            weight: group.weight,
        };
        own.map(group).collect()
    }
}

/// Returns the log odds of each class against all others. `scores` has the scores of all classes for the same rows.
pub(crate) fn odds_of_classes<S: AsRef<Scores> + Sync>(rows: &[LabelledRows], scores: &[S]) -> Vec<Scores> {
    let of_partition = |(partition, rows): (usize, &LabelledRows)| {
        let mut columns = vec![vec![0.0; rows.len()]; scores.len()];
        let mut of_row = vec![0.0; scores.len()];
        for row in 0..rows.len() {
            for (score, scores) in of_row.iter_mut().zip(scores) {
                *score = scores.as_ref().partition(partition)[row];
            }
            log_odds(&mut of_row);
            columns.iter_mut().zip(&of_row).for_each(|(column, odds)| column[row] = *odds);
        }
        columns
    };
    let partitions: Vec<Vec<Vec<f64>>> = rows.par_iter().enumerate().map(of_partition).collect();
    let mut classes = vec![Vec::with_capacity(rows.len()); scores.len()];
    for columns in partitions {
        classes
            .iter_mut()
            .zip(columns)
            .for_each(|(class, column): (&mut Vec<Vec<f64>>, _)| class.push(column));
    }
    classes.into_iter().map(Scores::of_partitions).collect()
}

/// Returns the weighted sum of the expected values of groups, as the model scores them: the softmax of a group's scores,
/// weighted by the values of the classes. `terms` has the weight and the scores of every part.
pub(crate) fn expected_values<S: AsRef<Scores> + Sync>(
    rows: &[LabelledRows],
    constant: f64,
    terms: &[(f64, S)],
    groups: &[SoftmaxGroup],
) -> Scores {
    let of_chunk = |partition: usize, first: usize, sums: &mut [f64]| {
        for group in groups {
            let terms = &terms[group.members.clone()];
            let own =
                |(_, scores): &(f64, S)| scores.as_ref().partition(partition)[first..][..sums.len()].to_vec();
            let mut columns: Vec<Vec<f64>> = terms.iter().map(own).collect();
            Link::Softmax.apply(&mut columns);
            let mut expected = vec![0.0; sums.len()];
            for ((weight, _), column) in terms.iter().zip(&columns) {
                expected.iter_mut().zip(column).for_each(|(sum, value)| *sum += weight * value);
            }
            sums.iter_mut().zip(&expected).for_each(|(sum, value)| *sum += group.weight * value);
        }
    };
    let of_partition = |(partition, rows): (usize, &LabelledRows)| {
        let mut sums = vec![constant; rows.len()];
        let chunks = sums.par_chunks_mut(AT_A_TIME).enumerate();
        chunks.for_each(|(chunk, sums)| of_chunk(partition, chunk * AT_A_TIME, sums));
        sums
    };
    Scores::of_partitions(rows.par_iter().enumerate().map(of_partition).collect())
}
