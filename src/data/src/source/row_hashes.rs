//! Hashes of rows over their features and label, accumulated while features are decoded one by one, so that
//! rows of two datasets can be compared without reading either again.

use planetree_base::random::mix;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hashes of the rows of several partitions.
pub struct RowHashes(Vec<Mutex<PartitionHashes>>);

struct PartitionHashes {
    features: Vec<u64>,
    labels: Vec<f32>,
}

impl RowHashes {
    /// Empty hashes for partitions with the given numbers of rows.
    pub fn new(rows: impl Iterator<Item = usize>) -> Self {
        let hashed = |rows| PartitionHashes { features: vec![0; rows], labels: Vec::new() };
        RowHashes(rows.map(|rows| Mutex::new(hashed(rows))).collect())
    }

    /// Adds a feature of a partition. Missing values and zeros add nothing.
    pub fn add(&self, partition: usize, feature: usize, values: &[f32]) {
        let mut hashed = self.lock(partition);
        let key = mix(feature as u64);
        for (hash, value) in hashed.features.iter_mut().zip(values) {
            // Zeros and missing values (NaN) fail this comparison and contribute no bits.
            let bits = if value.abs() > 0.0 { value.to_bits() } else { 0 };
            let product = u128::from(key) * u128::from(bits);
            // Numbers with few digits have zero low bits, so the high half of the product is mixed in.
            *hash = hash.wrapping_add((product as u64).wrapping_add((product >> 64) as u64));
        }
    }

    /// Sets the labels of a partition.
    pub fn set_labels(&self, partition: usize, labels: &[f32]) {
        self.lock(partition).labels = labels.to_vec();
    }

    /// The hashes by partition. A row of only zeros and missing values has hash 0: such rows are alike
    /// without being copies.
    pub fn finish(self) -> Vec<Vec<u64>> {
        let finish = |hashed: Mutex<PartitionHashes>| {
            let PartitionHashes { mut features, labels } =
                hashed.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (hash, label) in features.iter_mut().zip(labels) {
                // Adding 0 turns -0 into 0.
                *hash = if *hash == 0 { 0 } else { mix(*hash ^ mix(u64::from((label + 0.0).to_bits()))) };
            }
            features
        };
        self.0.into_iter().map(finish).collect()
    }

    /// Ignores poisoning: no holder of this lock panics, and sums remain valid if one did.
    fn lock(&self, partition: usize) -> MutexGuard<'_, PartitionHashes> {
        self.0[partition].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
