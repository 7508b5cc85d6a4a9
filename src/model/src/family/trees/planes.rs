//! Encodes values as bytes. A tree only tests whether a value is above a threshold, so a value can be replaced by the
//! number of its feature's thresholds that it is above. That number fits in a byte, and vector instructions compare
//! many bytes at a time.
//!
//! Vocabulary:
//!
//! - a *block* is a group of rows that are scored together;
//! - a *threshold chunk* is up to [`CHUNK`] thresholds of one feature, in ascending order;
//! - a *plane* contains one code for each row of a block: the number of thresholds in a chunk that the row's value is
//!   above. There are two kinds of planes. A missing value is above no threshold in one kind, and above all thresholds
//!   in the other.

use super::ensemble::TreeEnsemble;
use crate::family::ModelFeature;
use std::collections::BTreeMap;

/// Number of rows per block.
pub const BLOCK: usize = 128;

/// The codes of a block's rows. A code is the number of thresholds as an unsigned byte with its highest bit flipped,
/// because vector instructions compare signed bytes.
pub(crate) type Plane = [i8; BLOCK];

/// Maximum number of thresholds per chunk. Counts are 0 to 254, and 255 stands for missing values.
const CHUNK: usize = 254;
/// Code of a missing value in planes where it is above all thresholds.
const MISSING: i8 = i8::MAX;
/// The largest code of a value that is not missing.
const ABOVE_ALL: i8 = MISSING - 1;
/// Up to this many thresholds, comparing with every threshold is faster than a binary search.
const LINEAR_SEARCH: usize = 64;

/// Whether a missing value counts as below or above all thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingSide {
    /// A missing value is above no threshold.
    Below,
    /// A missing value is above all thresholds.
    Above,
}

/// A test of whether a row's code in a plane is above a given code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaneTest {
    /// Index of the plane.
    pub plane: u32,
    /// The code to compare with.
    pub code: i8,
}

/// All thresholds of a model, and the planes that its trees use.
#[derive(Debug)]
pub(super) struct Planes {
    /// The thresholds of each feature, in ascending order of the feature indices.
    features: Vec<FeatureChunks>,
    count: u32,
}

#[derive(Debug)]
struct FeatureChunks {
    feature: u32,
    /// The fill value of the feature; NaN if missing values stay missing.
    fill: f32,
    chunks: Vec<ThresholdChunk>,
}

#[derive(Debug)]
struct ThresholdChunk {
    thresholds: Thresholds,
    /// The plane where missing values are above no threshold, if a tree uses it.
    below: Option<u32>,
    /// The plane where missing values are above all thresholds, if a tree uses it.
    above: Option<u32>,
}

#[derive(Debug)]
enum Thresholds {
    Few(Vec<f32>),
    /// The thresholds, padded with infinity, which no value is above.
    Many(Box<[f32; 256]>),
}

/// Collects the distinct thresholds of a feature. Deep forests repeat thresholds many times, so duplicates are removed
/// along the way.
#[derive(Default)]
struct ThresholdCollector {
    /// Length of the prefix of `all` that is sorted and has no duplicates.
    sorted: usize,
    all: Vec<f32>,
}

impl ThresholdCollector {
    fn push(&mut self, threshold: f32) {
        /// Minimum number of new thresholds before sorting again.
        const MIN_NEW: usize = 1024;
        self.all.push(threshold);
        if self.all.len() >= 2 * self.sorted + MIN_NEW {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.all.sort_unstable_by(f32::total_cmp);
        self.all.dedup(); // by value: 0.0 and -0.0 are one threshold
        self.sorted = self.all.len();
    }
}

impl Planes {
    /// Collects the thresholds of all trees. Planes are added on demand, as tests are created.
    pub(super) fn of(ensemble: &TreeEnsemble, features: &[ModelFeature]) -> Self {
        let mut thresholds: BTreeMap<u32, ThresholdCollector> = BTreeMap::new();
        for split in ensemble.splits() {
            thresholds.entry(split.feature).or_default().push(split.threshold);
        }
        let chunked = thresholds.into_iter().map(|(feature, mut thresholds)| {
            thresholds.sort();
            let thresholds = thresholds.all;
            let fill = features.get(feature as usize).and_then(|feature| feature.fill);
            let chunks = thresholds.chunks(CHUNK).map(ThresholdChunk::new).collect();
            FeatureChunks { feature, fill: fill.unwrap_or(f32::NAN), chunks }
        });
        Planes { features: chunked.collect(), count: 0 }
    }

    /// Returns the test of whether a value is above a threshold. The threshold must occur in the model.
    pub(super) fn above(&mut self, feature: u32, threshold: f32, missing: MissingSide) -> PlaneTest {
        let chunk = self.chunk(feature, threshold);
        let code = code_of(chunk.thresholds.below(threshold));
        PlaneTest { plane: self.plane(feature, threshold, missing), code }
    }

    /// Returns the test of whether a value is missing. `threshold` can be any threshold of the feature.
    pub(super) fn missing(&mut self, feature: u32, threshold: f32) -> PlaneTest {
        PlaneTest { plane: self.plane(feature, threshold, MissingSide::Above), code: ABOVE_ALL }
    }

    fn chunk(&mut self, feature: u32, threshold: f32) -> &mut ThresholdChunk {
        let at = self.features.partition_point(|chunks| chunks.feature < feature);
        let chunks = &mut self.features[at].chunks;
        let chunk = chunks.partition_point(|chunk| chunk.thresholds.last() < threshold);
        &mut chunks[chunk]
    }

    fn plane(&mut self, feature: u32, threshold: f32, missing: MissingSide) -> u32 {
        let next = self.count;
        let chunk = self.chunk(feature, threshold);
        let plane = match missing {
            MissingSide::Below => &mut chunk.below,
            MissingSide::Above => &mut chunk.above,
        };
        let plane = *plane.get_or_insert(next);
        self.count += u32::from(plane == next);
        plane
    }

    /// Returns the number of planes.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the indices of the features that have thresholds, in ascending order.
    pub(super) fn features(&self) -> impl Iterator<Item = u32> {
        self.features.iter().map(|chunks| chunks.feature)
    }

    /// Encodes a block of rows. `load` writes the values of a feature to an array, with NaN for missing values.
    #[inline(always)]
    pub(super) fn code(&self, planes: &mut [Plane], mut load: impl FnMut(u32, &mut [f32; BLOCK])) {
        let mut values = [f32::NAN; BLOCK];
        let mut codes = [0; BLOCK];
        for FeatureChunks { feature, fill, chunks } in &self.features {
            load(*feature, &mut values);
            if !fill.is_nan() {
                values.iter_mut().for_each(|value| *value = if value.is_nan() { *fill } else { *value });
            }
            for chunk in chunks {
                chunk.thresholds.code(&values, &mut codes);
                if let Some(below) = chunk.below {
                    planes[below as usize] = codes;
                }
                if let Some(above) = chunk.above {
                    let plane = &mut planes[above as usize];
                    for row in 0..BLOCK {
                        plane[row] = if values[row].is_nan() { MISSING } else { codes[row] };
                    }
                }
            }
        }
    }
}

impl ThresholdChunk {
    fn new(thresholds: &[f32]) -> Self {
        let thresholds = if thresholds.len() <= LINEAR_SEARCH {
            Thresholds::Few(thresholds.to_vec())
        } else {
            let mut table = Box::new([f32::INFINITY; 256]);
            table[..thresholds.len()].copy_from_slice(thresholds);
            Thresholds::Many(table)
        };
        ThresholdChunk { thresholds, below: None, above: None }
    }
}

impl Thresholds {
    fn as_slice(&self) -> &[f32] {
        match self {
            Thresholds::Few(few) => few,
            Thresholds::Many(table) => &table[..CHUNK],
        }
    }

    fn last(&self) -> f32 {
        self.as_slice().last().copied().unwrap_or(f32::INFINITY)
    }

    /// Returns the number of thresholds in this chunk that are below `threshold`.
    fn below(&self, threshold: f32) -> u32 {
        self.as_slice().partition_point(|other| *other < threshold) as u32
    }

    /// Encodes, for each value, the number of thresholds that it is above. NaN is above none.
    #[inline(always)]
    fn code(&self, values: &[f32; BLOCK], codes: &mut Plane) {
        match self {
            Thresholds::Few(few) => linear_search(few, values, codes),
            Thresholds::Many(table) => binary_search(table, values, codes),
        }
    }
}

/// Compares every threshold with every value. The inner loop is over the rows, and its counters are as wide as the
/// values and never checked for overflow, so that compilers vectorise it.
#[inline(always)]
fn linear_search(thresholds: &[f32], values: &[f32; BLOCK], codes: &mut Plane) {
    let mut counts = [0u32; BLOCK];
    for threshold in thresholds {
        for row in 0..BLOCK {
            counts[row] = counts[row].wrapping_add(u32::from(values[row] > *threshold));
        }
    }
    for row in 0..BLOCK {
        codes[row] = code_of(counts[row]);
    }
}

/// Compares every sixteenth threshold with every value, then does a binary search among the fifteen in between.
#[inline(always)]
fn binary_search(table: &[f32; 256], values: &[f32; BLOCK], codes: &mut Plane) {
    let mut counts = [0u32; BLOCK];
    for threshold in table[15..].iter().step_by(16) {
        for row in 0..BLOCK {
            counts[row] = counts[row].wrapping_add(u32::from(values[row] > *threshold) << 4);
        }
    }
    // No value is above the last entry of the table, so counts stay below its length.
    for half in [8, 4, 2, 1] {
        for row in 0..BLOCK {
            let above = values[row] > table[counts[row].wrapping_add(half - 1) as usize % 256];
            counts[row] = counts[row].wrapping_add(if above { half } else { 0 });
        }
    }
    for row in 0..BLOCK {
        codes[row] = code_of(counts[row]);
    }
}

#[inline(always)]
fn code_of(count: u32) -> i8 {
    (count as u8 ^ 0x80) as i8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_code_is_the_number_of_thresholds_below_the_value(
            thresholds in prop::collection::vec(prop::num::f32::ANY.prop_filter("", |x| !x.is_nan()), 1..=CHUNK),
            values in prop::collection::vec(prop::num::f32::ANY, BLOCK),
            same in prop::collection::vec(any::<prop::sample::Index>(), BLOCK / 2),
        ) {
            let mut thresholds = thresholds;
            thresholds.sort_by(f32::total_cmp);
            thresholds.dedup();
            let mut values: [f32; BLOCK] = values.try_into().expect("the vector has BLOCK elements");
            for (value, same) in values.iter_mut().zip(same) {
                *value = *same.get(&thresholds);
            }
            let mut codes = [0; BLOCK];
            ThresholdChunk::new(&thresholds).thresholds.code(&values, &mut codes);
            for (value, code) in values.iter().zip(codes) {
                let count = thresholds.iter().filter(|threshold| value > *threshold).count();
                prop_assert_eq!(i32::from(code) + 128, count as i32);
            }
        }
    }
}
