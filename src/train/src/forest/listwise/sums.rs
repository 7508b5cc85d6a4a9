//! Integer sums over documents that give the score of a leaf, independent of the order of addition.

use crate::tree::Scale;

/// Sums over documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListSums {
    /// Sum of labels times weights, in units.
    pub labels: i64,
    /// Sum of weights, in units.
    pub weights: i64,
    /// Number of rows, including copies.
    pub rows: i64,
}

impl ListSums {
    /// Adds other documents.
    #[inline]
    pub fn add(&mut self, other: &ListSums) {
        self.labels = self.labels.wrapping_add(other.labels);
        self.weights = self.weights.wrapping_add(other.weights);
        self.rows = self.rows.wrapping_add(other.rows);
    }

    /// Removes documents.
    #[inline]
    pub fn without(&self, other: &ListSums) -> ListSums {
        ListSums {
            labels: self.labels.wrapping_sub(other.labels),
            weights: self.weights.wrapping_sub(other.weights),
            rows: self.rows.wrapping_sub(other.rows),
        }
    }
}

/// Quantisation of labels and weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelUnits {
    /// Units per label of 1 and weight 1.
    pub label: f64,
    /// Units per weight of 1.
    pub weight: f64,
}

/// Bits of a label or weight, sign included: 2^28 of them still add up to a number that is exact as a
/// floating-point one, and a row may be drawn a hundred times.
const BITS: u32 = 24;

impl LabelUnits {
    /// Units for labels times weights up to `most`, and weights up to `heaviest` if there are any.
    pub fn of(most: f64, heaviest: Option<f64>) -> Self {
        LabelUnits {
            label: Scale::units(most, BITS),
            weight: heaviest.map_or(1.0, |heaviest| Scale::units(heaviest, BITS)),
        }
    }

    /// The score of documents: their mean label (eq. 9 of the paper). Equal means are equal numbers.
    #[inline]
    pub fn score(&self, sums: &ListSums) -> f64 {
        let weights = sums.weights as f64 / self.weight;
        if weights > 0.0 { sums.labels as f64 / self.label / weights } else { 0.0 }
    }

    /// The weight of the documents.
    pub fn cover(&self, sums: &ListSums) -> f64 {
        sums.weights as f64 / self.weight
    }
}
