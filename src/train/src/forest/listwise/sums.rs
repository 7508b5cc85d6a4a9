//! Defines sums over documents, from which the score of a leaf is computed. They are integers, so they do not depend
//! on the order of addition.

use crate::config::LeafScore;
use crate::tree::{Scale, round};

/// Sums over a set of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ListSums {
    /// Sum of leaf scores times weights, in units.
    pub labels: i64,
    /// Sum of weights, in units.
    pub weights: i64,
    /// Number of rows, including copies.
    pub rows: i64,
}

impl ListSums {
    /// Adds the sums of other documents.
    #[inline]
    pub(super) fn add(&mut self, other: &ListSums) {
        self.labels = self.labels.wrapping_add(other.labels);
        self.weights = self.weights.wrapping_add(other.weights);
        self.rows = self.rows.wrapping_add(other.rows);
    }

    /// Returns the sums without the documents of `other`.
    #[inline]
    pub(super) fn without(&self, other: &ListSums) -> ListSums {
        ListSums {
            labels: self.labels.wrapping_sub(other.labels),
            weights: self.weights.wrapping_sub(other.weights),
            rows: self.rows.wrapping_sub(other.rows),
        }
    }
}

/// Units in which labels and weights are represented as integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LabelUnits {
    /// Number of units that represent a label of 1 with weight 1.
    pub label: f64,
    /// Number of units that represent a weight of 1.
    pub weight: f64,
    /// How a document's label determines the score of its leaf.
    pub leaf_score: LeafScore,
}

/// Number of bits of a label or weight in units, including the sign. The sum of 2^28 such numbers is exact as a
/// 64-bit float, and the sum over a hundred copies of a row still fits in 32 bits.
const BITS: u32 = 24;

impl LabelUnits {
    /// Chooses the units. `most` is the maximum of leaf score times weight. `heaviest` is the maximum weight; `None` if
    /// rows have no weights.
    pub(super) fn of(leaf_score: LeafScore, most: f64, heaviest: Option<f64>) -> Self {
        LabelUnits {
            leaf_score,
            label: Scale::units(most, BITS),
            weight: heaviest.map_or(1.0, |heaviest| Scale::units(heaviest, BITS)),
        }
    }

    /// Returns the leaf score of a label times a weight, in units.
    pub(super) fn label_of(&self, label: f32, weight: f64) -> i32 {
        round(self.leaf_score.of(label) * weight * self.label)
    }

    /// Returns the score of a set of documents, which is the mean of their leaf scores, usually their labels (eq. 9 of
    /// Ibrahim & Carman 2016). Sets with equal means get identical floats.
    #[inline]
    pub(super) fn score(&self, sums: &ListSums) -> f64 {
        let weights = sums.weights as f64 / self.weight;
        if weights > 0.0 { sums.labels as f64 / self.label / weights } else { 0.0 }
    }

    /// Returns the total weight of the documents.
    pub(super) fn cover(&self, sums: &ListSums) -> f64 {
        sums.weights as f64 / self.weight
    }
}
