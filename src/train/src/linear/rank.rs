//! The pairs of a query that a ranking SVM learns from: two documents with different labels whose scores differ by less
//! than the margin in the right direction. Such a pair is *active*; others have no loss.
//!
//! Pairs are never listed. The documents that are active with a document are those of lower (or higher) labels among a
//! head (or tail) of the documents in the order of their scores, so sums over them are prefix sums by label, which a
//! Fenwick tree updates while the scores are swept: n log n for a query of n documents.

/// The score difference above which a pair has no loss.
const MARGIN: f64 = 1.0;

/// The active pairs of a query. The buffers are reused from query to query.
#[derive(Default)]
pub(super) struct ActivePairs {
    /// The documents in descending order of their scores.
    order: Vec<usize>,
    /// The number of different labels below that of each document.
    grades: Vec<usize>,
    /// The different labels, in ascending order.
    labels: Vec<f32>,
    /// For each place in the order, the number of documents from the first one whose score is above that of the place
    /// minus the margin.
    heads: Vec<usize>,
    /// For each place in the order, the first place whose score is below that of the place plus the margin.
    tails: Vec<usize>,
    /// The number of documents that each document is active with.
    counts: Vec<f64>,
    /// Prefix sums by label.
    tree: Vec<f64>,
    centred: Vec<f64>,
    lower: [Vec<f64>; 3],
    upper: [Vec<f64>; 2],
}

impl ActivePairs {
    /// Finds the active pairs. Returns the loss: half the sum of the squared shortfalls of the pairs. Sets `gradients` to
    /// the negative derivatives with respect to the scores.
    pub(super) fn update(&mut self, labels: &[f32], scores: &[f64], gradients: &mut Vec<f64>) -> f64 {
        let documents = scores.len();
        self.sort(labels, scores);
        // Differences of scores are what counts; small numbers lose fewer digits.
        let centre = scores.iter().sum::<f64>() / documents.max(1) as f64;
        let mut centred = std::mem::take(&mut self.centred);
        centred.clear();
        centred.extend(scores.iter().map(|score| score - centre));
        let ones = vec![1.0; documents];
        let squares: Vec<f64> = centred.iter().map(|score| score * score).collect();
        let (mut lower, mut upper) = (std::mem::take(&mut self.lower), std::mem::take(&mut self.upper));
        for (sums, values) in lower.iter_mut().zip([&ones, &centred, &squares]) {
            sums.clear();
            sums.resize(documents, 0.0);
            self.add_lower(values, sums);
        }
        for (sums, values) in upper.iter_mut().zip([&ones, &centred]) {
            sums.clear();
            sums.resize(documents, 0.0);
            self.add_upper(values, sums);
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
        (self.centred, self.lower, self.upper) = (centred, lower, upper);
        loss.max(0.0)
    }

    /// Multiplies a column by the second derivatives of the loss with respect to the scores.
    pub(super) fn multiply(&mut self, column: &[f64], product: &mut [f64]) {
        product.fill(0.0);
        self.add_lower(column, product);
        self.add_upper(column, product);
        for ((product, value), count) in product.iter_mut().zip(column).zip(&self.counts) {
            *product = count * value - *product;
        }
    }

    fn sort(&mut self, labels: &[f32], scores: &[f64]) {
        let documents = scores.len();
        self.order.clear();
        self.order.extend(0..documents);
        self.order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
        self.labels.clear();
        self.labels.extend_from_slice(labels);
        self.labels.sort_by(f32::total_cmp);
        self.labels.dedup();
        self.grades.clear();
        let grades = labels.iter().map(|label| self.labels.partition_point(|other| other < label));
        self.grades.extend(grades);
        // The same subtraction decides in both directions, so that both documents of a pair agree on it.
        let is_active = |better: usize, worse: usize| scores[better] - scores[worse] < MARGIN;
        let mut head = 0;
        self.heads.clear();
        for document in &self.order {
            while head < documents && is_active(*document, self.order[head]) {
                head += 1;
            }
            self.heads.push(head);
        }
        let mut tail = documents;
        self.tails.clear();
        self.tails.resize(documents, 0);
        for (place, document) in self.order.iter().enumerate().rev() {
            while tail > 0 && is_active(self.order[tail - 1], *document) {
                tail -= 1;
            }
            self.tails[place] = tail;
        }
    }

    /// Adds to each document's sum the values of the documents with lower labels that it is active with.
    fn add_lower(&mut self, values: &[f64], sums: &mut [f64]) {
        self.clear_tree();
        let mut inserted = 0;
        for (place, document) in self.order.iter().enumerate() {
            for other in &self.order[inserted..self.heads[place]] {
                insert(&mut self.tree, self.grades[*other], values[*other]);
            }
            inserted = self.heads[place];
            sums[*document] += prefix(&self.tree, self.grades[*document]);
        }
    }

    /// Adds to each document's sum the values of the documents with higher labels that it is active with.
    fn add_upper(&mut self, values: &[f64], sums: &mut [f64]) {
        self.clear_tree();
        let highest = self.labels.len().saturating_sub(1);
        let mut inserted = self.order.len();
        for (place, document) in self.order.iter().enumerate().rev() {
            for other in self.order[self.tails[place]..inserted].iter().rev() {
                insert(&mut self.tree, highest - self.grades[*other], values[*other]);
            }
            inserted = self.tails[place];
            sums[*document] += prefix(&self.tree, highest - self.grades[*document]);
        }
    }

    fn clear_tree(&mut self) {
        self.tree.clear();
        self.tree.resize(self.labels.len() + 1, 0.0);
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
            prop_assert!(near(pairs.update(&labels, &scores, &mut gradients), loss_of(&labels, &scores), 1e-10));
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
            pairs.multiply(&column, &mut product);
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
            pairs.update(&labels, &scores, &mut gradients);
            let moved = moved % labels.len();
            let loss = |step: f64| {
                let mut scores = scores.clone();
                scores[moved] += step;
                ActivePairs::default().update(&labels, &scores, &mut Vec::new())
            };
            prop_assert!(near(-(loss(STEP) - loss(-STEP)) / (2.0 * STEP), gradients[moved], 1e-4));
        }
    }
}
