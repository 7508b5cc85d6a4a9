//! Ranks the documents of a query by score, and stores them in padded columns for vectorised access.

use super::delta::DeltaColumns;
use super::unbiased::PositionLosses;
use fearless_simd::{Simd, SimdBase};

/// Vector width: the number of documents that are compared with one document at a time. It is the same on every
/// machine, so that numbers are always added in the same order.
pub(super) const LANES: usize = 8;

/// A vector of [`LANES`] numbers.
pub(super) type F32Lanes<S> = fearless_simd::f32x8<S>;

/// Loads [`LANES`] numbers of a column, starting at index `from`.
#[inline(always)]
pub(super) fn lanes<S: Simd>(simd: S, column: &[f32], from: usize) -> F32Lanes<S> {
    F32Lanes::from_slice(simd, &column[from..from + LANES])
}

/// Buffers of one thread, which are reused for every query.
#[derive(Debug, Default)]
pub struct QueryBuffers {
    /// The current query, ranked by score.
    pub ranked: RankedColumns,
    /// Columns for the deltas of the current query.
    pub columns: DeltaColumns,
    /// Pair losses by position, summed over the queries so far.
    pub losses: PositionLosses,
    /// Softmax of the current query's scores.
    pub shares: Vec<f64>,
    /// Target distribution of the current query.
    pub wanted: Vec<f64>,
}

/// A query ranked by score, best first. Ties keep the input order. All columns are padded with [`LANES`] entries, whose
/// labels are NaN.
#[derive(Debug, Default)]
pub struct RankedColumns {
    keys: Vec<u64>,
    /// Index of each document in the input.
    pub order: Vec<u32>,
    /// Label of each document.
    pub labels: Vec<f32>,
    /// Score of each document minus the best score, which preserves score differences.
    pub scores: Vec<f32>,
    /// Accumulated gradient of each document.
    pub gradients: Vec<f32>,
    /// Accumulated hessian of each document.
    pub hessians: Vec<f32>,
}

impl RankedColumns {
    /// Ranks a query, and sets all gradients and hessians to 0.
    pub fn rank(&mut self, labels: &[f32], scores: &[f64]) {
        /// Lower bound of the relative scores. Computations with lower ones could overflow.
        const FURTHEST: f64 = -1e30;
        let best = scores.iter().fold(f64::NEG_INFINITY, |best, score| best.max(*score));
        let places = 0u32..;
        self.keys.clear();
        self.keys.extend(scores.iter().zip(places).map(|(score, place)| {
            // Relative scores are at most 0, so a larger magnitude means a lower score. Bit patterns of magnitudes
            // have the same order.
            let behind = ((score - best).max(FURTHEST) as f32).abs();
            u64::from(behind.to_bits()) << 32 | u64::from(place)
        }));
        self.keys.sort_unstable();
        self.order.clear();
        self.order.extend(self.keys.iter().map(|key| *key as u32));
        self.scores.clear();
        self.scores.extend(self.keys.iter().map(|key| -f32::from_bits((*key >> 32) as u32)));
        self.labels.clear();
        self.labels.extend(self.order.iter().map(|place| labels[*place as usize]));
        self.labels.extend([f32::NAN; LANES]);
        self.scores.extend([0.0; LANES]);
        for column in [&mut self.gradients, &mut self.hessians] {
            column.clear();
            column.resize(labels.len() + LANES, 0.0);
        }
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Writes the gradients and hessians, multiplied by `factor`, in input order.
    pub fn scatter(&self, factor: f32, out: super::Gradients<'_>) {
        for (rank, place) in self.order.iter().enumerate() {
            out.gradients[*place as usize] = self.gradients[rank] * factor;
            out.hessians[*place as usize] = self.hessians[rank] * factor;
        }
    }
}
