//! Collects the candidate splits of a node on one feature, with the scores of both sides. A cut sends documents
//! to the left if their code (bin number) is at most a given value.

use super::sums::{LabelUnits, ListSums};
use crate::bins::{FeatureBins, MissingBranch};
use crate::driver::ForestSplit;
use crate::forest::cut_rules::between;

/// Sums of labels, weights and rows in a node, for each code of one feature. The sums of several partitions can be
/// added.
#[derive(Clone, Default)]
pub(super) struct CandidateSums {
    sums: Vec<ListSums>,
    /// Bit set of the codes that occur.
    present: Vec<u64>,
}

impl CandidateSums {
    /// Returns the sums for a code, to add documents to them.
    #[inline]
    pub(super) fn at(&mut self, code: u32) -> &mut ListSums {
        self.present[code as usize / 64] |= 1 << (code % 64);
        &mut self.sums[code as usize]
    }

    /// Adds the sums of another partition.
    pub(super) fn merge(&mut self, other: &CandidateSums) {
        other.each(|code, sums| self.at(code).add(sums));
    }

    /// Sets the sums to zero, so that they can be reused for another node and a feature with this many codes.
    pub(super) fn reset(&mut self, codes: usize) {
        for (word, bits) in self.present.iter_mut().enumerate() {
            while *bits != 0 {
                self.sums[word * 64 + bits.trailing_zeros() as usize] = ListSums::default();
                *bits &= *bits - 1;
            }
        }
        if codes > self.sums.len() {
            self.sums.resize(codes, ListSums::default());
            self.present.resize(codes.div_ceil(64), 0);
        }
    }

    /// Calls `visit` for each code that occurs, in ascending order.
    fn each(&self, mut visit: impl FnMut(u32, &ListSums)) {
        for (word, bits) in self.present.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let code = word * 64 + bits.trailing_zeros() as usize;
                visit(code as u32, &self.sums[code]);
                bits &= bits - 1;
            }
        }
    }

    fn has(&self, code: u32) -> bool {
        self.present.get(code as usize / 64).is_some_and(|bits| bits >> (code % 64) & 1 == 1)
    }
}

/// The cuts of a node by one feature, with missing values on a given side.
#[derive(Default)]
pub(super) struct Cuts {
    /// Index of the feature among the features sampled for the node.
    pub place: usize,
    /// Last code on the left of each cut. The entry in `above` is the first code on the right that occurs in the
    /// node, or `None` if there are only missing values on the right.
    codes: Vec<u32>,
    above: Vec<Option<u32>>,
    missing_left: bool,
    /// Score of the left side of each cut.
    pub left: Vec<f64>,
    /// Score of the right side of each cut.
    pub right: Vec<f64>,
    /// For each code that occurs, the index of the first cut that has the documents with this code on the left.
    first: Vec<u32>,
}

impl Cuts {
    /// Collects the cuts with enough rows on both sides. Cuts whose two sides have equal scores change no ranking and
    /// are omitted.
    pub(super) fn take(
        &mut self,
        sums: &CandidateSums,
        total: &ListSums,
        (missing, missing_left): (Option<u32>, bool),
        min_rows: i64,
        units: &LabelUnits,
    ) {
        self.codes.clear();
        self.above.clear();
        self.left.clear();
        self.right.clear();
        self.missing_left = missing_left;
        self.first.resize(sums.sums.len().max(self.first.len()), 0);
        let mut left = ListSums::default();
        if let Some(missing) = missing.filter(|_| missing_left) {
            left = sums.sums[missing as usize];
            self.first[missing as usize] = 0;
        }
        let least = min_rows.max(1);
        sums.each(|code, of_code| {
            let is_missing = Some(code) == missing;
            if is_missing && missing_left {
                return;
            }
            self.first[code as usize] = self.codes.len() as u32;
            if is_missing {
                return; // missing values have the last code
            }
            if self.above.len() < self.codes.len() {
                self.above.push(Some(code));
            }
            left.add(of_code);
            let right = total.without(&left);
            if left.rows.min(right.rows) >= least {
                let (left, right) = (units.score(&left), units.score(&right));
                if left != right {
                    self.codes.push(code);
                    self.left.push(left);
                    self.right.push(right);
                }
            }
        });
        self.above.resize(self.codes.len(), None); // above the last code there are only missing values
    }

    /// Removes all cuts but the one that separates missing values from all others, which are on its left.
    pub(super) fn keep_apart(&mut self, missing: Option<u32>) {
        let kept = self.codes.len() - usize::from(self.above.last() == Some(&None));
        self.codes.drain(..kept);
        self.above.drain(..kept);
        self.left.drain(..kept);
        self.right.drain(..kept);
        self.first.fill(0);
        if let Some(missing) = missing {
            self.first[missing as usize] = self.codes.len() as u32;
        }
    }

    /// Returns the number of cuts.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Returns whether there are no cuts.
    pub(super) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Returns the index of the first cut that has the documents with this code on the left.
    #[inline]
    pub(super) fn first(&self, code: u32) -> u32 {
        self.first[code as usize]
    }

    /// Converts a cut to a split of a tree. The caller sets the feature, gain and children.
    pub(super) fn split(&self, cut: usize, bins: &FeatureBins, every_value: bool) -> ForestSplit {
        let (code, threshold) = place(bins, self.codes[cut], self.above[cut], every_value);
        ForestSplit {
            feature: 0,
            code,
            threshold,
            missing: MissingBranch::of_side(self.missing_left),
            left: 0,
            gain: 0.0,
        }
    }
}

/// Returns the code and threshold of a cut between two codes that occur in a node. `above` is `None` if there are only
/// missing values above the cut. If every value has a code, the threshold is the midpoint between the two values.
pub(super) fn place(bins: &FeatureBins, below: u32, above: Option<u32>, every_value: bool) -> (u32, f32) {
    match above {
        None => (bins.bins() as u32 - 1, f32::MAX),
        Some(above) => {
            let (code, threshold) = between(bins, below, above);
            (code, if every_value { threshold } else { bins.cuts[code as usize] })
        }
    }
}

/// Returns whether the node has missing values.
pub(super) fn has_missing(sums: &CandidateSums, missing: Option<u32>) -> bool {
    missing.is_some_and(|code| sums.has(code))
}
