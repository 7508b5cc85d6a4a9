//! Hashes of rows by their features and label, added up while features are decoded one by one, so that rows of
//! two datasets can be compared without reading either again.

use planetree_base::random::mix;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of the rows of some partitions so far.
pub struct RowHashes(Vec<Mutex<Hashed>>);

struct Hashed {
    features: Vec<u64>,
    labels: Vec<f32>,
}

impl RowHashes {
    /// Nothing is known of the rows of each partition.
    pub fn new(rows: impl Iterator<Item = usize>) -> Self {
        let hashed = |rows| Hashed { features: vec![0; rows], labels: Vec::new() };
        RowHashes(rows.map(|rows| Mutex::new(hashed(rows))).collect())
    }

    /// Adds a feature of a partition. Missing values count as 0 and add nothing.
    pub fn add(&self, partition: usize, feature: usize, values: &[f32]) {
        let mut hashed = self.lock(partition);
        let key = mix(feature as u64);
        for (hash, value) in hashed.features.iter_mut().zip(values) {
            // Neither zeros nor what is missing are above 0: they are no bits at all.
            let bits = if value.abs() > 0.0 { value.to_bits() } else { 0 };
            let product = u128::from(key) * u128::from(bits);
            // Numbers of few digits have low bits of 0; the high half fills those of the product.
            *hash = hash.wrapping_add((product as u64).wrapping_add((product >> 64) as u64));
        }
    }

    /// Sets the labels of a partition.
    pub fn set_labels(&self, partition: usize, labels: &[f32]) {
        self.lock(partition).labels = labels.to_vec();
    }

    /// The hashes by partition; 0 for a row of nothing but zeros and missing values, which is like others of its
    /// kind for other reasons.
    pub fn finish(self) -> Vec<Vec<u64>> {
        let finish = |hashed: Mutex<Hashed>| {
            let Hashed { mut features, labels } = hashed.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (hash, label) in features.iter_mut().zip(labels) {
                // Adding 0 makes both zeros one.
                *hash = if *hash == 0 { 0 } else { mix(*hash ^ mix(u64::from((label + 0.0).to_bits()))) };
            }
            features
        };
        self.0.into_iter().map(finish).collect()
    }

    /// No holder of this lock panics, and if one did, the sums would still be sums.
    fn lock(&self, partition: usize) -> MutexGuard<'_, Hashed> {
        self.0[partition].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
