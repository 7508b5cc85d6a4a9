//! Counts inverted pairs: pairs of documents in which the higher label has the lower score.

use super::convention::{Convention, Ties};
use super::ranked::spans;

/// Numbers of document pairs in a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    /// All pairs of documents.
    pub all: u64,
    /// Pairs in which the higher label has the lower score.
    pub inverted: u64,
    /// Pairs with equal scores.
    pub equal_scores: u64,
    /// Pairs with equal labels.
    pub equal_labels: u64,
    /// Pairs with equal scores and equal labels.
    pub equal: u64,
}

/// Returns the number of inverted pairs. A pair with equal scores and different labels counts as half a pair. It
/// counts as 0 if the convention orders ties best first, and as 1 if it orders them worst first.
pub(crate) fn inversions(labels: &[f32], ends: &[u32], convention: &Convention) -> f64 {
    let pairs = count(labels, ends);
    let tied = match convention.ties {
        Ties::Worst => 1.0,
        Ties::Best => 0.0,
        Ties::Input | Ties::Document | Ties::Average | Ties::Last => 0.5,
    };
    pairs.inverted as f64 + tied * (pairs.equal_scores - pairs.equal) as f64
}

/// Counts the pairs of a query. `labels` are in descending order of scores; `ends` are the end indices of the runs of
/// equal scores.
pub(crate) fn count(labels: &[f32], ends: &[u32]) -> Pairs {
    let mut levels = labels.to_vec();
    levels.sort_unstable_by(f32::total_cmp);
    levels.dedup();
    let level = |label: &f32| levels.partition_point(|level| level < label);
    let mut seen = FenwickTree::new(levels.len());
    let mut pairs = Pairs { all: two_of(labels.len()), ..Pairs::default() };
    let mut of_span: Vec<usize> = Vec::new();
    for span in spans(ends) {
        of_span.clear();
        of_span.extend(labels[span.clone()].iter().map(level));
        // Documents seen before this span have higher scores, so each of them with a lower label forms an inverted
        // pair.
        pairs.inverted += of_span.iter().map(|level| seen.below(*level)).sum::<u64>();
        of_span.iter().for_each(|level| seen.add(*level));
        of_span.sort_unstable();
        pairs.equal_scores += two_of(span.len());
        pairs.equal +=
            of_span.chunk_by(|one, other| one == other).map(|equal| two_of(equal.len())).sum::<u64>();
    }
    let each = (0..levels.len()).map(|level| seen.below(level + 1) - seen.below(level));
    pairs.equal_labels = each.map(|count| two_of(count as usize)).sum();
    pairs
}

fn two_of(count: usize) -> u64 {
    let count = count as u64;
    count * count.saturating_sub(1) / 2
}

/// Counts of documents by label, with prefix sums in logarithmic time (Fenwick 1994).
struct FenwickTree {
    sums: Vec<u64>,
}

impl FenwickTree {
    fn new(levels: usize) -> Self {
        FenwickTree { sums: vec![0; levels + 1] }
    }

    fn add(&mut self, level: usize) {
        let mut place = level + 1;
        while place < self.sums.len() {
            self.sums[place] += 1;
            place += place & place.wrapping_neg();
        }
    }

    fn below(&self, level: usize) -> u64 {
        let mut place = level;
        let mut sum = 0;
        while place > 0 {
            sum += self.sums[place];
            place &= place - 1;
        }
        sum
    }
}
