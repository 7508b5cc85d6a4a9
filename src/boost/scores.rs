//! The score of every training row so far, and the gradients of the next tree. All of it can be
//! rebuilt from the dataset and the model: scores are the base plus the trees' values in order.

use crate::bins::{BinnedData, Rows};
use crate::error::Result;
use crate::tree::{Cell, CodedTree, RowSets, Scale, round};
use rayon::prelude::*;

/// What the gradients of all rows are like.
#[derive(Debug, Clone, Copy, Default)]
pub struct GradientSummary {
    /// The largest magnitude.
    pub most: f64,
    squares: f64,
    weight: f64,
}

impl GradientSummary {
    /// The scale on which all gradients fit, for so many rows.
    pub fn scale(&self, rows: u64, weight_units: f64) -> Scale {
        Scale {
            count_bits: Scale::count_bits(rows),
            gradient: Scale::units(self.most, Scale::gradient_bits(rows)),
            weight: weight_units,
        }
    }

    /// The error of the scores.
    pub fn rmse(&self) -> f64 {
        if self.weight > 0.0 { (self.squares / self.weight).sqrt() } else { 0.0 }
    }
}

/// Scores by partition.
pub struct Scores {
    partitions: Vec<Vec<f64>>,
}

impl Scores {
    /// All rows at one score.
    pub fn constant(rows: &[Rows], score: f64) -> Self {
        Scores { partitions: rows.iter().map(|rows| vec![score; rows.len()]).collect() }
    }

    /// Given scores of all rows, in their order.
    pub fn given(rows: &[Rows], scores: &[f64]) -> Self {
        let of = |rows: &Rows| scores[rows.first as usize..][..rows.len()].to_vec();
        Scores { partitions: rows.iter().map(of).collect() }
    }

    /// What the gradients are like now.
    pub fn summary(&self, rows: &[Rows]) -> GradientSummary {
        let of_partition = |(rows, scores): (&Rows, &Vec<f64>)| {
            let mut summary = GradientSummary::default();
            for ((gradient, weight), (label, score)) in
                gradients(rows, scores).zip(rows.labels.iter().zip(scores))
            {
                summary.most = if gradient.abs() > summary.most { gradient.abs() } else { summary.most };
                let error = f64::from(*label) - score;
                summary.squares += error * error * f64::from(weight);
                summary.weight += f64::from(weight);
            }
            summary
        };
        let parts: Vec<GradientSummary> = rows.par_iter().zip(&self.partitions).map(of_partition).collect();
        parts.into_iter().fold(GradientSummary::default(), |sum, part| GradientSummary {
            most: sum.most.max(part.most),
            squares: sum.squares + part.squares,
            weight: sum.weight + part.weight,
        })
    }

    /// Starts a tree: every row's target, or those of the rows that were drawn.
    pub fn start_tree<C: Cell>(
        &self,
        rows: &[Rows],
        scale: &Scale,
        drawn: Option<&[Vec<u32>]>,
        sets: &mut RowSets<C>,
    ) {
        sets.partitions.par_iter_mut().enumerate().for_each(|(partition, set)| {
            let targets =
                gradients(&rows[partition], &self.partitions[partition]).map(|(gradient, weight)| {
                    C::target(round(gradient * scale.gradient), weight_in_units(weight, scale.weight))
                });
            set.start(targets, drawn.map(|drawn| drawn[partition].as_slice()));
        });
    }

    /// Adds a tree's values to the rows it was grown from, which are sorted by leaf.
    pub fn add_grown<C: Cell>(&mut self, tree: &CodedTree, sets: &RowSets<C>) {
        self.partitions.par_iter_mut().zip(&sets.partitions).for_each(|(scores, set)| {
            for (leaf, value) in tree.leaves() {
                for row in set.places(leaf) {
                    scores[*row as usize] += value;
                }
            }
        });
    }

    /// Adds a tree's values to all rows but the drawn ones.
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

    /// Adds what a function says of each row, by partition and place.
    pub fn add_values(&mut self, value: impl Fn(usize, usize) -> f64 + Sync) {
        self.partitions.par_iter_mut().enumerate().for_each(|(partition, scores)| {
            scores.iter_mut().enumerate().for_each(|(row, score)| *score += value(partition, row));
        });
    }

    /// The scores of a partition.
    pub fn partition(&self, partition: usize) -> &[f64] {
        &self.partitions[partition]
    }
}

/// A weight in units; what weighs anything weighs at least one.
#[inline]
fn weight_in_units(weight: f32, units: f64) -> i32 {
    round(f64::from(weight) * units).max(i32::from(weight > 0.0))
}

/// Gradient and weight of each row under squared loss: the weighted residual.
fn gradients<'a>(rows: &'a Rows, scores: &'a [f64]) -> impl ExactSizeIterator<Item = (f64, f32)> + 'a {
    let weights = rows.weights.as_deref();
    rows.labels.iter().zip(scores).enumerate().map(move |(row, (label, score))| {
        let weight = weights.map_or(1.0, |weights| weights[row]);
        ((f64::from(*label) - score) * f64::from(weight), weight)
    })
}

/// The mean label, each row by its weight, the same in any order of adding.
pub fn mean_label(rows: &[Rows]) -> f64 {
    let mut sums = (0i128, 0i128);
    let largest = rows.iter().flat_map(|rows| &rows.labels).fold(0f32, |most, label| most.max(label.abs()));
    let weights = || rows.iter().flat_map(|rows| rows.weights.iter().flatten());
    let heaviest = weights().fold(0f32, |most, weight| most.max(*weight));
    // Without weights, or with none above 0, every row counts 1.
    let heaviest = if heaviest > 0.0 { heaviest } else { 1.0 };
    let label_units = Scale::units(f64::from(largest), 31) * 1024.0;
    let weight_units = Scale::units(f64::from(heaviest), 31);
    for rows in rows {
        for (row, label) in rows.labels.iter().enumerate() {
            let weight = rows.weights.as_ref().map_or(1.0, |weights| weights[row]);
            let weight = (f64::from(weight) * weight_units).round() as i128;
            sums.0 += (f64::from(*label) * label_units).round() as i128 * weight;
            sums.1 += weight;
        }
    }
    if sums.1 == 0 { 0.0 } else { sums.0 as f64 / sums.1 as f64 / label_units }
}
