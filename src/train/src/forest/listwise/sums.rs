//! What is added up of documents to score a leaf: whole numbers, so that no order of adding changes a sum.

use crate::tree::Scale;

/// Sums over some documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Of labels times weights, in units.
    pub labels: i64,
    /// Of weights, in units.
    pub weights: i64,
    /// Of rows; one that was drawn twice counts twice.
    pub rows: i64,
}

impl Sums {
    /// Adds other documents.
    #[inline]
    pub fn add(&mut self, other: &Sums) {
        self.labels = self.labels.wrapping_add(other.labels);
        self.weights = self.weights.wrapping_add(other.weights);
        self.rows = self.rows.wrapping_add(other.rows);
    }

    /// What is left without some documents.
    #[inline]
    pub fn without(&self, other: &Sums) -> Sums {
        Sums {
            labels: self.labels.wrapping_sub(other.labels),
            weights: self.weights.wrapping_sub(other.weights),
            rows: self.rows.wrapping_sub(other.rows),
        }
    }
}

/// How labels and weights become whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Units of a label of 1 and weight 1.
    pub label: f64,
    /// Units of a weight of 1.
    pub weight: f64,
}

/// Bits of a label or weight, sign included: 2^28 of them still add up to a number that is exact as a
/// floating-point one, and a row may be drawn a hundred times.
const BITS: u32 = 24;

impl Units {
    /// Units for labels times weights up to `most`, and weights up to `heaviest` if there are any.
    pub fn of(most: f64, heaviest: Option<f64>) -> Self {
        Units {
            label: Scale::units(most, BITS),
            weight: heaviest.map_or(1.0, |heaviest| Scale::units(heaviest, BITS)),
        }
    }

    /// The score of documents: their mean label (eq. 9 of the paper). Equal means are equal numbers.
    #[inline]
    pub fn score(&self, sums: &Sums) -> f64 {
        let weights = sums.weights as f64 / self.weight;
        if weights > 0.0 { sums.labels as f64 / self.label / weights } else { 0.0 }
    }

    /// What documents weigh.
    pub fn cover(&self, sums: &Sums) -> f64 {
        sums.weights as f64 / self.weight
    }
}
