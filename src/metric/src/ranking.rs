//! Ranks the documents of a query by score, down to a depth.

/// Buffers for ranking, reused between queries.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    best: Vec<(f64, u32)>,
    keys: Vec<u128>,
    order: Vec<u32>,
    ends: Vec<u32>,
}

/// Greatest depth at which insertion into a short sorted list is faster than selection.
const SHORT: usize = 32;

impl Scratch {
    /// Returns the indices of the top `depth` documents, or of all documents if `depth` is `None`, best first.
    /// Documents with equal scores stay in input order; NaN scores come last.
    pub(crate) fn rank(&mut self, scores: &[f64], depth: Option<u32>) -> &[u32] {
        let depth = depth.map_or(scores.len(), |depth| scores.len().min(depth as usize));
        self.order.clear();
        if depth <= SHORT {
            self.keep_best(scores, depth);
            self.order.extend(self.best.iter().map(|(_, place)| place));
        } else {
            self.sort(scores, depth);
            self.order.extend(self.keys.iter().map(|key| *key as u32));
        }
        &self.order
    }

    /// Returns the indices of all documents in the order of [`Scratch::rank`], and the end indices of the runs of
    /// equal scores.
    pub(crate) fn rank_groups(&mut self, scores: &[f64]) -> (&mut [u32], &[u32]) {
        self.sort(scores, scores.len());
        self.order.clear();
        self.order.extend(self.keys.iter().map(|key| *key as u32));
        self.ends.clear();
        let score = |key: &u128| key >> 32;
        let boundary = |pair: &[u128]| score(&pair[0]) != score(&pair[1]);
        let within = self.keys.windows(2).zip(1..).filter(|(pair, _)| boundary(pair)).map(|(_, end)| end);
        self.ends.extend(within.chain((!scores.is_empty()).then_some(scores.len() as u32)));
        (&mut self.order, &self.ends)
    }

    fn keep_best(&mut self, scores: &[f64], depth: usize) {
        let best = &mut self.best;
        best.clear();
        if depth == 0 {
            return;
        }
        let (first, rest) = scores.split_at(depth);
        for (score, place) in first.iter().zip(0_u32..) {
            best.push((f64::NEG_INFINITY, 0));
            sink(best, (comparable(*score), place));
        }
        let mut worst = best[depth - 1].0;
        for (score, place) in rest.iter().zip(depth as u32..) {
            let score = comparable(*score);
            // Most documents of a long query are not among the best, so this check is usually all the work for a
            // document.
            if score > worst {
                sink(best, (score, place));
                worst = best[depth - 1].0;
            }
        }
    }

    /// Fills `keys` with the top `depth` documents in ranked order. A key holds the inverted score in its high bits
    /// and the index of the document in its low bits, so all keys are distinct and an unstable sort suffices.
    fn sort(&mut self, scores: &[f64], depth: usize) {
        let keys = &mut self.keys;
        keys.clear();
        let key = |(score, place): (&f64, u32)| u128::from(descending(*score)) << 32 | u128::from(place);
        keys.extend(scores.iter().zip(0_u32..).map(key));
        if depth < keys.len() {
            keys.select_nth_unstable(depth);
            keys.truncate(depth);
        }
        keys.sort_unstable();
    }
}

/// Replaces the last document of `best` with a new document, and moves the new document ahead of all documents with
/// lower scores.
#[inline]
fn sink(best: &mut [(f64, u32)], document: (f64, u32)) {
    let mut at = best.len() - 1;
    while at > 0 && best[at - 1].0 < document.0 {
        best[at] = best[at - 1];
        at -= 1;
    }
    best[at] = document;
}

/// Normalises a score for comparison: -0 becomes 0, and NaN becomes negative infinity.
#[inline]
fn comparable(score: f64) -> f64 {
    if score.is_nan() { f64::NEG_INFINITY } else { score + 0.0 }
}

/// Converts a score to an integer such that a higher score gives a lower integer.
#[inline]
pub(crate) fn descending(score: f64) -> u64 {
    let bits = comparable(score).to_bits();
    // The bits of negative numbers are already in descending order.
    if bits >> 63 == 1 { bits } else { !bits & !(1 << 63) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Naive reference implementation: a stable sort of all documents.
    fn rank_slowly(scores: &[f64], depth: Option<u32>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.sort_by(|a, b| scores[*b as usize].partial_cmp(&scores[*a as usize]).unwrap());
        order.truncate(depth.map_or(usize::MAX, |depth| depth as usize));
        order
    }

    proptest! {
        #[test]
        fn the_best_come_first_and_ties_keep_their_order(
            scores in proptest::collection::vec(prop_oneof![
                (-3_i8..3).prop_map(|score| f64::from(score) * 0.5),
                Just(-0.0),
                Just(f64::INFINITY),
                Just(f64::NEG_INFINITY),
                Just(-1e-300),
                -1.0..1.0,
            ], 0..200),
            depth in proptest::option::of(0_u32..220),
        ) {
            let mut scratch = Scratch::default();
            scratch.rank(&[3.0, 4.0], None); // leftovers in the buffers must not matter
            prop_assert_eq!(scratch.rank(&scores, depth), rank_slowly(&scores, depth));
            let whole = rank_slowly(&scores, None);
            let (order, ends) = scratch.rank_groups(&scores);
            prop_assert_eq!(&*order, &whole);
            let ended = |end: &usize| *end == whole.len() || {
                scores[whole[*end] as usize] != scores[whole[end - 1] as usize]
            };
            let expected: Vec<u32> = (1..=whole.len()).filter(ended).map(|end| end as u32).collect();
            prop_assert_eq!(ends, expected);
        }
    }

    #[test]
    fn a_score_that_is_no_number_comes_last() {
        let scores = [f64::NAN, 1.0, f64::NAN, -1.0];
        let mut scratch = Scratch::default();
        assert_eq!(scratch.rank(&scores, None), [1, 3, 0, 2]);
        let long: Vec<f64> = scores.iter().copied().cycle().take(80).collect();
        assert_eq!(scratch.rank(&long, Some(40))[..3], [1, 5, 9]);
    }
}
