//! Holds the current score of every row. Scores can be recomputed from the dataset and the model as the base score
//! plus the values of the trees, added in order.

use crate::bins::BinnedData;
use crate::tree::{AT_A_TIME, Cell, CodedTree, NodeId, RowSets, Scale};
use planetree_base::error::Result;
use planetree_data::source::LabelledRows;
use rayon::prelude::*;

/// The scores of all rows, by partition.
#[derive(Debug, Clone)]
pub struct Scores {
    partitions: Vec<Vec<f64>>,
}

impl Scores {
    /// Gives all rows the same score.
    pub fn constant(rows: &[LabelledRows], score: f64) -> Self {
        Scores { partitions: rows.iter().map(|rows| vec![score; rows.len()]).collect() }
    }

    /// Splits a list of the scores of all rows by partition.
    pub fn given(rows: &[LabelledRows], scores: &[f64]) -> Self {
        let of = |rows: &LabelledRows| scores[rows.first as usize..][..rows.len()].to_vec();
        Scores { partitions: rows.iter().map(of).collect() }
    }

    /// Creates scores from lists that are already split by partition.
    pub fn of_partitions(partitions: Vec<Vec<f64>>) -> Self {
        Scores { partitions }
    }

    /// Returns all scores divided by a number.
    pub fn divided_by(&self, number: f64) -> Self {
        let divide = |scores: &Vec<f64>| scores.iter().map(|score| score / number).collect();
        Scores { partitions: self.partitions.par_iter().map(divide).collect() }
    }

    /// Returns a weighted sum of scores of the same rows. The terms are added to a constant, in order.
    pub fn combined<S: AsRef<Scores> + Sync>(
        rows: &[LabelledRows],
        constant: f64,
        terms: &[(f64, S)],
    ) -> Self {
        let mut sum = Scores::constant(rows, constant);
        sum.partitions.par_iter_mut().enumerate().for_each(|(partition, sum)| {
            sum.par_chunks_mut(AT_A_TIME).enumerate().for_each(|(chunk, sum)| {
                for (weight, scores) in terms {
                    let scores = &scores.as_ref().partitions[partition][chunk * AT_A_TIME..];
                    sum.iter_mut().zip(scores).for_each(|(sum, score)| *sum += weight * score);
                }
            });
        });
        sum
    }

    /// Adds a tree to the scores of the rows that it was grown from. These rows are already sorted by leaf.
    pub fn add_grown<C: Cell>(&mut self, tree: &CodedTree, sets: &RowSets<C>) {
        let leaves: Vec<(NodeId, f64)> = tree.leaves().collect();
        self.partitions.par_iter_mut().zip(&sets.partitions).for_each(|(scores, set)| {
            scores.par_chunks_mut(AT_A_TIME).enumerate().for_each(|(chunk, scores)| {
                let first = chunk * AT_A_TIME;
                for (leaf, value) in &leaves {
                    for row in set.places(*leaf, first..first + scores.len()) {
                        scores[row as usize - first] += value;
                    }
                }
            });
        });
    }

    /// Adds a tree to the scores of all rows except those in `but`. The tree routes each row to its leaf.
    pub fn add_routed(
        &mut self,
        tree: &CodedTree,
        data: &BinnedData,
        but: Option<&[Vec<u32>]>,
    ) -> Result<()> {
        self.partitions.par_iter_mut().enumerate().try_for_each(|(partition, scores)| {
            let codes = data.codes(partition, &tree.columns(&data.binning))?;
            let router = tree.router(&data.binning, &codes);
            let mut but = but.map_or(&[][..], |but| &but[partition]).iter().copied().peekable();
            for (row, score) in scores.iter_mut().enumerate() {
                if but.next_if_eq(&(row as u32)).is_none() {
                    *score += router.value(row as u32);
                }
            }
            Ok(())
        })
    }

    /// Adds `value(partition, row)` to the score of each row.
    pub fn add_values(&mut self, value: impl Fn(usize, usize) -> f64 + Sync) {
        self.partitions.par_iter_mut().enumerate().for_each(|(partition, scores)| {
            scores.iter_mut().enumerate().for_each(|(row, score)| *score += value(partition, row));
        });
    }

    /// Returns the scores of a partition.
    pub fn partition(&self, partition: usize) -> &[f64] {
        &self.partitions[partition]
    }
}

impl AsRef<Scores> for Scores {
    fn as_ref(&self) -> &Scores {
        self
    }
}

/// Returns the weighted mean of a function of the labels. The result does not depend on the order of addition.
pub fn mean_of(rows: &[LabelledRows], number: impl Fn(f32) -> f32) -> f64 {
    let mut sums = (0i128, 0i128);
    let labels = rows.iter().flat_map(|rows| &rows.labels);
    let largest = labels.fold(0f32, |most, label| most.max(number(*label).abs()));
    let weights = || rows.iter().flat_map(|rows| rows.weights.iter().flatten());
    let heaviest = weights().fold(0f32, |most, weight| most.max(*weight));
    // If there are no weights, or all weights are 0, every row has weight 1.
    let heaviest = if heaviest > 0.0 { heaviest } else { 1.0 };
    let label_units = Scale::units(f64::from(largest), 31) * 1024.0;
    let weight_units = Scale::units(f64::from(heaviest), 31);
    for rows in rows {
        for (row, label) in rows.labels.iter().enumerate() {
            let weight = rows.weights.as_ref().map_or(1.0, |weights| weights[row]);
            let weight = (f64::from(weight) * weight_units).round() as i128;
            sums.0 += (f64::from(number(*label)) * label_units).round() as i128 * weight;
            sums.1 += weight;
        }
    }
    if sums.1 == 0 { 0.0 } else { (sums.0 as f64 / sums.1 as f64).round() / label_units }
}
