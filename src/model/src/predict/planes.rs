//! Values to codes. A tree asks of a value only whether it is above a threshold, so what matters is
//! how many of its feature's thresholds the value is above. That number fits in a byte, and bytes are
//! compared many at a time.
//!
//! - a *block* is some rows that are scored together;
//! - a *piece* is up to [`PIECE`] thresholds of one feature, in ascending order;
//! - a *plane* is the codes of a block's rows for one piece: how many of its thresholds each value is
//!   above. A missing value is above none in a plane of the one kind, above all in one of the other.

use crate::model::Model;
use std::collections::BTreeMap;

/// Rows of a block.
pub const BLOCK: usize = 128;

/// Codes of a block's rows: the count as an unsigned byte with its highest bit flipped, because
/// machines compare signed bytes.
pub type Plane = [i8; BLOCK];

/// Thresholds of a piece: counts go up to this, and one more number stands for missing values.
const PIECE: usize = 254;
/// The code of a missing value, where it counts as above all thresholds.
const MISSING: i8 = i8::MAX;
/// Only a missing value's code is above this.
const ABOVE_ALL: i8 = MISSING - 1;
/// Up to this many thresholds are compared one by one; that is many rows at a time.
const FEW: usize = 64;

/// Which side of every threshold a missing value is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Above none.
    Below,
    /// Above all.
    Above,
}

/// A question to a row: is its code in this plane above this one?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test {
    /// Which plane.
    pub plane: u32,
    /// Which code.
    pub code: i8,
}

/// All thresholds of a model, and the planes that its trees look at.
#[derive(Debug)]
pub struct Planes {
    /// In the order of the features.
    features: Vec<FeaturePieces>,
    count: u32,
}

#[derive(Debug)]
struct FeaturePieces {
    feature: u32,
    /// What stands for a missing value; NaN if it stays missing.
    fill: f32,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    thresholds: Thresholds,
    /// The plane where missing values are above no threshold, if a tree looks at it.
    below: Option<u32>,
    /// The plane where they are above all.
    above: Option<u32>,
}

#[derive(Debug)]
enum Thresholds {
    Few(Vec<f32>),
    /// Filled up with infinity, which no value is above.
    Many(Box<[f32; 256]>),
}

/// Thresholds of a feature as they are found: deep forests have the same ones again and again.
#[derive(Default)]
struct Found {
    /// Up to here ascending and different.
    settled: usize,
    all: Vec<f32>,
}

impl Found {
    fn push(&mut self, threshold: f32) {
        /// Thresholds that are sorted together at least.
        const LEAST: usize = 1024;
        self.all.push(threshold);
        if self.all.len() >= 2 * self.settled + LEAST {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.all.sort_unstable_by(f32::total_cmp);
        self.all.dedup(); // by value: the two zeros are one threshold
        self.settled = self.all.len();
    }
}

impl Planes {
    /// The thresholds of a model's trees; there are no planes until tests ask for them.
    pub fn of(model: &Model) -> Self {
        let mut thresholds: BTreeMap<u32, Found> = BTreeMap::new();
        let nodes = model.trees.iter().flat_map(|tree| &tree.nodes);
        for split in nodes.filter_map(|node| node.split.as_ref()) {
            thresholds.entry(split.feature).or_default().push(split.threshold);
        }
        let features = thresholds.into_iter().map(|(feature, mut thresholds)| {
            thresholds.settle();
            let thresholds = thresholds.all;
            let fill = model.features.get(feature as usize).and_then(|feature| feature.fill);
            let pieces = thresholds.chunks(PIECE).map(Piece::new).collect();
            FeaturePieces { feature, fill: fill.unwrap_or(f32::NAN), pieces }
        });
        Planes { features: features.collect(), count: 0 }
    }

    /// The test whether a value is above a threshold of the model.
    pub fn above(&mut self, feature: u32, threshold: f32, missing: Missing) -> Test {
        let piece = self.piece(feature, threshold);
        let code = code_of(piece.thresholds.below(threshold));
        Test { plane: self.plane(feature, threshold, missing), code }
    }

    /// The test whether a value is missing; `threshold` is any of its feature.
    pub fn missing(&mut self, feature: u32, threshold: f32) -> Test {
        Test { plane: self.plane(feature, threshold, Missing::Above), code: ABOVE_ALL }
    }

    fn piece(&mut self, feature: u32, threshold: f32) -> &mut Piece {
        let at = self.features.partition_point(|pieces| pieces.feature < feature);
        let pieces = &mut self.features[at].pieces;
        let piece = pieces.partition_point(|piece| piece.thresholds.last() < threshold);
        &mut pieces[piece]
    }

    fn plane(&mut self, feature: u32, threshold: f32, missing: Missing) -> u32 {
        let next = self.count;
        let piece = self.piece(feature, threshold);
        let plane = match missing {
            Missing::Below => &mut piece.below,
            Missing::Above => &mut piece.above,
        };
        let plane = *plane.get_or_insert(next);
        self.count += u32::from(plane == next);
        plane
    }

    /// How many planes there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The features that have planes, in ascending order.
    pub fn features(&self) -> impl Iterator<Item = u32> {
        self.features.iter().map(|pieces| pieces.feature)
    }

    /// Codes a block. `load` puts a feature's values in their places, NaN where they are missing.
    #[inline(always)]
    pub fn code(&self, planes: &mut [Plane], mut load: impl FnMut(u32, &mut [f32; BLOCK])) {
        let mut values = [f32::NAN; BLOCK];
        let mut codes = [0; BLOCK];
        for FeaturePieces { feature, fill, pieces } in &self.features {
            load(*feature, &mut values);
            if !fill.is_nan() {
                values.iter_mut().for_each(|value| *value = if value.is_nan() { *fill } else { *value });
            }
            for piece in pieces {
                piece.thresholds.code(&values, &mut codes);
                if let Some(below) = piece.below {
                    planes[below as usize] = codes;
                }
                if let Some(above) = piece.above {
                    let plane = &mut planes[above as usize];
                    for row in 0..BLOCK {
                        plane[row] = if values[row].is_nan() { MISSING } else { codes[row] };
                    }
                }
            }
        }
    }
}

impl Piece {
    fn new(thresholds: &[f32]) -> Self {
        let thresholds = if thresholds.len() <= FEW {
            Thresholds::Few(thresholds.to_vec())
        } else {
            let mut table = Box::new([f32::INFINITY; 256]);
            table[..thresholds.len()].copy_from_slice(thresholds);
            Thresholds::Many(table)
        };
        Piece { thresholds, below: None, above: None }
    }
}

impl Thresholds {
    fn as_slice(&self) -> &[f32] {
        match self {
            Thresholds::Few(few) => few,
            Thresholds::Many(table) => &table[..PIECE],
        }
    }

    fn last(&self) -> f32 {
        self.as_slice().last().copied().unwrap_or(f32::INFINITY)
    }

    /// How many thresholds are below this one.
    fn below(&self, threshold: f32) -> u32 {
        self.as_slice().partition_point(|other| *other < threshold) as u32
    }

    /// Counts for every value how many thresholds it is above; for NaN that is none.
    #[inline(always)]
    fn code(&self, values: &[f32; BLOCK], codes: &mut Plane) {
        match self {
            Thresholds::Few(few) => count_one_by_one(few, values, codes),
            Thresholds::Many(table) => count_by_halves(table, values, codes),
        }
    }
}

/// Compares every threshold with every value. (Loops over rows are innermost and count in lanes as wide
/// as a value, which is what compilers turn into vector instructions.)
#[inline(always)]
fn count_one_by_one(thresholds: &[f32], values: &[f32; BLOCK], codes: &mut Plane) {
    let mut counts = [0u32; BLOCK];
    for threshold in thresholds {
        for row in 0..BLOCK {
            counts[row] += u32::from(values[row] > *threshold);
        }
    }
    for row in 0..BLOCK {
        codes[row] = code_of(counts[row]);
    }
}

/// Compares every sixteenth threshold with every value, and then halves the fifteen in between.
#[inline(always)]
fn count_by_halves(table: &[f32; 256], values: &[f32; BLOCK], codes: &mut Plane) {
    let mut counts = [0u32; BLOCK];
    for threshold in table[15..].iter().step_by(16) {
        for row in 0..BLOCK {
            counts[row] += 16 * u32::from(values[row] > *threshold);
        }
    }
    // No value is above the table's last number, so that counts stay below its length.
    for half in [8, 4, 2, 1] {
        for row in 0..BLOCK {
            let above = values[row] > table[(counts[row] + half - 1) as usize % 256];
            counts[row] += half * u32::from(above);
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
        fn a_code_counts_the_thresholds_below(
            thresholds in prop::collection::vec(prop::num::f32::ANY.prop_filter("", |x| !x.is_nan()), 1..=PIECE),
            values in prop::collection::vec(prop::num::f32::ANY, BLOCK),
            same in prop::collection::vec(any::<prop::sample::Index>(), BLOCK / 2),
        ) {
            let mut thresholds = thresholds;
            thresholds.sort_by(f32::total_cmp);
            thresholds.dedup();
            let mut values: [f32; BLOCK] = values.try_into().expect("as many as asked for");
            for (value, same) in values.iter_mut().zip(same) {
                *value = *same.get(&thresholds);
            }
            let mut codes = [0; BLOCK];
            Piece::new(&thresholds).thresholds.code(&values, &mut codes);
            for (value, code) in values.iter().zip(codes) {
                let count = thresholds.iter().filter(|threshold| value > *threshold).count();
                prop_assert_eq!(i32::from(code) + 128, count as i32);
            }
        }
    }
}
