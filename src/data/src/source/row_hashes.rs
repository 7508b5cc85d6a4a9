//! Computes hashes of rows from their features and label, while the features are decoded one by one. The hashes serve
//! to find rows that two datasets have in common without reading the datasets again.

use planetree_base::random::mix;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Row hashes of several partitions.
pub(super) struct RowHashes(Vec<Mutex<PartitionHashes>>);

struct PartitionHashes {
    features: Vec<u64>,
    labels: Vec<f32>,
}

impl RowHashes {
    /// Creates the hashes for partitions with the given numbers of rows, before any feature is added.
    pub(super) fn new(rows: impl Iterator<Item = usize>) -> Self {
        let hashed = |rows| PartitionHashes { features: vec![0; rows], labels: Vec::new() };
        RowHashes(rows.map(|rows| Mutex::new(hashed(rows))).collect())
    }

    /// Adds the values of one feature to the hashes of a partition. Missing values and zeros do not change the
    /// hashes.
    pub(super) fn add(&self, partition: usize, feature: usize, values: &[f32]) {
        let mut hashed = self.lock(partition);
        let key = mix(feature as u64);
        for (hash, value) in hashed.features.iter_mut().zip(values) {
            // Zeros and missing values (NaN) fail this comparison and do not contribute.
            let bits = if value.abs() > 0.0 { value.to_bits() } else { 0 };
            let product = u128::from(key) * u128::from(bits);
            // The bit pattern of many numbers, such as small integers, ends in zeros, so the low half of the product
            // ends in zeros, too. The high half is added to use all bits.
            *hash = hash.wrapping_add((product as u64).wrapping_add((product >> 64) as u64));
        }
    }

    /// Sets the labels of a partition's rows.
    pub(crate) fn set_labels(&self, partition: usize, labels: &[f32]) {
        self.lock(partition).labels = labels.to_vec();
    }

    /// Returns the row hashes of each partition. A row with only zeros and missing values has the hash 0, which marks
    /// it as unsuitable for comparison, because such rows are equal without being copies of each other.
    pub(super) fn finish(self) -> Vec<Vec<u64>> {
        let finish = |hashed: Mutex<PartitionHashes>| {
            let PartitionHashes { mut features, labels } =
                hashed.into_inner().unwrap_or_else(PoisonError::into_inner);
            for (hash, label) in features.iter_mut().zip(labels) {
                // Adding 0 turns -0 into 0, so that both give the same hash.
                *hash = if *hash == 0 { 0 } else { mix(*hash ^ mix(u64::from((label + 0.0).to_bits()))) };
            }
            features
        };
        self.0.into_iter().map(finish).collect()
    }

    /// Locks the hashes of a partition. Poisoning is ignored, because the sums remain valid even if a thread
    /// panicked.
    fn lock(&self, partition: usize) -> MutexGuard<'_, PartitionHashes> {
        self.0[partition].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
