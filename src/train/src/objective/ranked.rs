//! A query in the order of its scores, column by column, ready to be read eight documents at a time.

use super::delta::Columns;
use super::unbiased::Tally;
use fearless_simd::{Simd, SimdBase};

/// Documents that are compared with one at a time. It is the same on every machine, and so is the
/// order in which their pulls are added.
pub const LANES: usize = 8;

/// A number for each of them.
pub type Lanes<S> = fearless_simd::f32x8<S>;

/// The numbers of a column from a place on.
#[inline(always)]
pub fn lanes<S: Simd>(simd: S, column: &[f32], from: usize) -> Lanes<S> {
    Lanes::from_slice(simd, &column[from..from + LANES])
}

/// What is used again from query to query by one thread.
#[derive(Debug, Default)]
pub struct Room {
    /// The query at hand.
    pub ranked: Ranked,
    /// What its delta looks up.
    pub columns: Columns,
    /// What the queries so far found out.
    pub tally: Tally,
    /// The distribution that a query's scores make.
    pub shares: Vec<f64>,
    /// The one that is wanted.
    pub wanted: Vec<f64>,
}

/// A query in the order of its scores, best first; equal scores stay in the order of the input. All
/// columns go on for [`LANES`] places behind the last document, with labels that are no numbers.
#[derive(Debug, Default)]
pub struct Ranked {
    keys: Vec<u64>,
    /// The place of each document in the input.
    pub order: Vec<u32>,
    /// Their labels.
    pub labels: Vec<f32>,
    /// Their scores, less the best one's, which changes no difference.
    pub scores: Vec<f32>,
    /// Their gradients so far.
    pub gradients: Vec<f32>,
    /// Their hessians so far.
    pub hessians: Vec<f32>,
}

impl Ranked {
    /// Ranks a query; nothing pulls yet.
    pub fn rank(&mut self, labels: &[f32], scores: &[f64]) {
        /// Beyond it differences of differences would overflow.
        const FURTHEST: f64 = -1e30;
        let best = scores.iter().fold(f64::NEG_INFINITY, |best, score| best.max(*score));
        let places = 0u32..;
        self.keys.clear();
        self.keys.extend(scores.iter().zip(places).map(|(score, place)| {
            // Not above 0, so that larger bits mean lower scores.
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
        for pulls in [&mut self.gradients, &mut self.hessians] {
            pulls.clear();
            pulls.resize(labels.len() + LANES, 0.0);
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Gives gradients and hessians, times a factor, to the documents in their own order.
    pub fn hand_out(&self, factor: f32, pulls: super::Pulls<'_>) {
        for (rank, place) in self.order.iter().enumerate() {
            pulls.gradients[*place as usize] = self.gradients[rank] * factor;
            pulls.hessians[*place as usize] = self.hessians[rank] * factor;
        }
    }
}
