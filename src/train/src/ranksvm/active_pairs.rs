//! The pairs of a query that a ranking SVM learns from: two documents with different labels whose scores differ by less
//! than the margin in the right direction. Such a pair is *active*; others have no loss.
//!
//! Pairs are never listed. The documents that are active with a document are those of lower (or higher) labels among a
//! head (or tail) of the documents in the order of their scores, so sums over them are prefix sums by label, which a
//! Fenwick tree updates while the scores are swept: n log n for a query of n documents.

/// The score difference above which a pair has no loss.
const MARGIN: f64 = 1.0;

/// The active pairs of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct ActivePairs {
    /// The documents in descending order of their scores.
    order: Vec<u32>,
    /// The number of different labels below that of each document.
    grades: Vec<u32>,
    /// Number of different labels.
    levels: usize,
    /// For each place in the order, the number of documents from the first one whose score is above that of the place
    /// minus the margin.
    heads: Vec<u32>,
    /// For each place in the order, the first place whose score is below that of the place plus the margin.
    tails: Vec<u32>,
    /// The number of documents that each document is active with.
    counts: Vec<f64>,
}

/// Buffers that are reused from query to query.
#[derive(Default)]
pub(super) struct PairBuffers {
    /// The different labels, in ascending order.
    labels: Vec<f32>,
    /// Prefix sums by label.
    tree: Vec<f64>,
    ones: Vec<f64>,
    centred: Vec<f64>,
    squares: Vec<f64>,
    lower: [Vec<f64>; 3],
    upper: [Vec<f64>; 2],
}

impl ActivePairs {
    /// Finds the active pairs. Returns the loss: half the sum of the squared shortfalls of the pairs. Sets `gradients` to
    /// the negative derivatives with respect to the scores.
    pub(super) fn update(
        &mut self,
        labels: &[f32],
        scores: &[f64],
        gradients: &mut Vec<f64>,
        buffers: &mut PairBuffers,
    ) -> f64 {
        let documents = scores.len();
        self.sort(labels, scores, buffers);
        let PairBuffers { tree, ones, centred, squares, lower, upper, .. } = buffers;
        // Differences of scores are what counts; small numbers lose fewer digits.
        let centre = scores.iter().sum::<f64>() / documents.max(1) as f64;
        centred.clear();
        centred.extend(scores.iter().map(|score| score - centre));
        squares.clear();
        squares.extend(centred.iter().map(|score| score * score));
        ones.resize(documents, 1.0);
        for (sums, values) in lower.iter_mut().zip([&*ones, &*centred, &*squares]) {
            sums.clear();
            sums.resize(documents, 0.0);
            self.add_lower(values, sums, tree);
        }
        for (sums, values) in upper.iter_mut().zip([&*ones, &*centred]) {
            sums.clear();
            sums.resize(documents, 0.0);
            self.add_upper(values, sums, tree);
        }
        gradients.clear();
        self.counts.clear();
        let mut loss = 0.0;
        for (document, score) in centred.iter().enumerate() {
            let [below, scores_below, squares_below] = std::array::from_fn(|sum| lower[sum][document]);
            let [above, scores_above] = std::array::from_fn(|sum| upper[sum][document]);
            let short = MARGIN - score;
            loss += (below * short * short + 2.0 * short * scores_below + squares_below) / 2.0;
            gradients
                .push(MARGIN * (below - above) - (below + above) * score + (scores_below + scores_above));
            self.counts.push(below + above);
        }
        loss.max(0.0)
    }

    /// Returns twice the number of active pairs.
    pub(super) fn count(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Multiplies a column by the second derivatives of the loss with respect to the scores.
    pub(super) fn multiply(&self, column: &[f64], product: &mut [f64], buffers: &mut PairBuffers) {
        product.fill(0.0);
        self.add_lower(column, product, &mut buffers.tree);
        self.add_upper(column, product, &mut buffers.tree);
        for ((product, value), count) in product.iter_mut().zip(column).zip(&self.counts) {
            *product = count * value - *product;
        }
    }

    fn sort(&mut self, labels: &[f32], scores: &[f64], buffers: &mut PairBuffers) {
        let documents = scores.len();
        let score = |document: u32| scores[document as usize];
        self.order.clear();
        self.order.extend(0..documents as u32);
        self.order.sort_unstable_by(|one, other| score(*other).total_cmp(&score(*one)).then(one.cmp(other)));
        let distinct = &mut buffers.labels;
        distinct.clear();
        distinct.extend_from_slice(labels);
        distinct.sort_unstable_by(f32::total_cmp);
        distinct.dedup();
        self.levels = distinct.len();
        self.grades.clear();
        let grade = |label: &f32| distinct.partition_point(|other| other < label) as u32;
        self.grades.extend(labels.iter().map(grade));
        // The same subtraction decides in both directions, so that both documents of a pair agree on it.
        let is_active = |better: u32, worse: u32| score(better) - score(worse) < MARGIN;
        let mut head = 0;
        self.heads.clear();
        for document in &self.order {
            while head < documents && is_active(*document, self.order[head]) {
                head += 1;
            }
            self.heads.push(head as u32);
        }
        let mut tail = documents;
        self.tails.clear();
        self.tails.resize(documents, 0);
        for (place, document) in self.order.iter().enumerate().rev() {
            while tail > 0 && is_active(self.order[tail - 1], *document) {
                tail -= 1;
            }
            self.tails[place] = tail as u32;
        }
    }

    /// Adds to each document's sum the values of the documents with lower labels that it is active with.
    fn add_lower(&self, values: &[f64], sums: &mut [f64], tree: &mut Vec<f64>) {
        self.clear(tree);
        let mut inserted = 0;
        for (document, head) in self.order.iter().zip(&self.heads) {
            for other in &self.order[inserted..*head as usize] {
                insert(tree, self.grades[*other as usize] as usize, values[*other as usize]);
            }
            inserted = *head as usize;
            sums[*document as usize] += prefix(tree, self.grades[*document as usize] as usize);
        }
    }

    /// Adds to each document's sum the values of the documents with higher labels that it is active with.
    fn add_upper(&self, values: &[f64], sums: &mut [f64], tree: &mut Vec<f64>) {
        self.clear(tree);
        let from_highest = |document: u32| self.levels - 1 - self.grades[document as usize] as usize;
        let mut inserted = self.order.len();
        for (document, tail) in self.order.iter().zip(&self.tails).rev() {
            for other in self.order[*tail as usize..inserted].iter().rev() {
                insert(tree, from_highest(*other), values[*other as usize]);
            }
            inserted = *tail as usize;
            sums[*document as usize] += prefix(tree, from_highest(*document));
        }
    }

    fn clear(&self, tree: &mut Vec<f64>) {
        tree.clear();
        tree.resize(self.levels + 1, 0.0);
    }
}

/// Adds a value to the entry of a grade.
fn insert(tree: &mut [f64], grade: usize, value: f64) {
    let mut place = grade + 1;
    while place < tree.len() {
        tree[place] += value;
        place += place & place.wrapping_neg();
    }
}

/// Returns the sum of the entries below a grade.
fn prefix(tree: &[f64], grade: usize) -> f64 {
    let (mut place, mut sum) = (grade, 0.0);
    while place > 0 {
        sum += tree[place];
        place &= place - 1;
    }
    sum
}

/// Returns the number of pairs of documents with different labels.
pub(super) fn pair_count(labels: &[f32]) -> f64 {
    let mut sorted = labels.to_vec();
    sorted.sort_by(f32::total_cmp);
    let square = |count: usize| (count as f64) * (count as f64);
    let same: f64 = sorted.chunk_by(|one, other| one == other).map(|group| square(group.len())).sum();
    (square(labels.len()) - same) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the loss of all pairs, one by one.
    fn loss_of(labels: &[f32], scores: &[f64]) -> f64 {
        let mut loss = 0.0;
        for better in 0..labels.len() {
            for worse in (0..labels.len()).filter(|worse| labels[*worse] < labels[better]) {
                let short = (1.0 - (scores[better] - scores[worse])).max(0.0);
                loss += short * short / 2.0;
            }
        }
        loss
    }

    fn near(one: f64, other: f64, precision: f64) -> bool {
        (one - other).abs() <= precision * (1.0 + other.abs())
    }

    proptest! {
        #[test]
        fn sums_are_those_of_all_pairs(
            documents in prop::collection::vec((0..5u8, -2.0..2.0f64, -3.0..3.0f64), 0..30), offset in -100.0..100.0f64,
        ) {
            let labels: Vec<f32> = documents.iter().map(|document| f32::from(document.0) / 2.0).collect();
            // Some scores are equal, some differ by exactly the margin.
            let scores: Vec<f64> =
                documents.iter().map(|document| offset.round() + (document.1 * 4.0).round() / 4.0).collect();
            let column: Vec<f64> = documents.iter().map(|document| document.2).collect();
            let (mut pairs, mut gradients) = (ActivePairs::default(), Vec::new());
            let mut buffers = PairBuffers::default();
            prop_assert!(near(pairs.update(&labels, &scores, &mut gradients, &mut buffers), loss_of(&labels, &scores), 1e-10));
            let (mut expected, mut hessian, mut count) =
                (vec![0.0; labels.len()], vec![0.0; labels.len()], 0.0);
            for better in 0..labels.len() {
                for worse in (0..labels.len()).filter(|worse| labels[*worse] < labels[better]) {
                    count += 1.0;
                    let difference = scores[better] - scores[worse];
                    if difference < 1.0 {
                        expected[better] += 1.0 - difference;
                        expected[worse] -= 1.0 - difference;
                        hessian[better] += column[better] - column[worse];
                        hessian[worse] -= column[better] - column[worse];
                    }
                }
            }
            prop_assert_eq!(pair_count(&labels), count);
            let mut product = vec![7.0; labels.len()];
            pairs.multiply(&column, &mut product, &mut buffers);
            for document in 0..labels.len() {
                prop_assert!(near(gradients[document], expected[document], 1e-10));
                prop_assert!(near(product[document], hessian[document], 1e-10));
            }
        }

        #[test]
        fn gradients_are_finite_differences(
            documents in prop::collection::vec((0..3u8, -2.0..2.0f64), 1..12), moved in 0..12usize,
        ) {
            const STEP: f64 = 1e-5;
            let labels: Vec<f32> = documents.iter().map(|document| f32::from(document.0)).collect();
            let scores: Vec<f64> = documents.iter().map(|document| document.1).collect();
            let (mut pairs, mut gradients) = (ActivePairs::default(), Vec::new());
            pairs.update(&labels, &scores, &mut gradients, &mut PairBuffers::default());
            let moved = moved % labels.len();
            let loss = |step: f64| {
                let mut scores = scores.clone();
                scores[moved] += step;
                ActivePairs::default().update(&labels, &scores, &mut Vec::new(), &mut PairBuffers::default())
            };
            prop_assert!(near(-(loss(STEP) - loss(-STEP)) / (2.0 * STEP), gradients[moved], 1e-4));
        }
    }
}
