//! Defines split criteria, which are computed from sums over the rows on each side. The sums are integers, so the
//! order of addition does not matter. The *score* of a set of rows measures purity: it is higher the more the labels
//! of the rows agree. The gain of a split is the sum of the scores of both sides minus the score of the node.

/// A split criterion: which sums over rows it needs, and how it scores them.
pub(super) trait Criterion: Send + Sync {
    /// Target of a row, such as its class.
    type Row: Copy + Default + Send + Sync;
    /// Sums over a set of rows.
    type Sums: Copy + Default + Send + Sync;

    /// Adds a row to the sums.
    fn add(sums: &mut Self::Sums, row: Self::Row);

    /// Adds other sums to these sums.
    fn plus(sums: &mut Self::Sums, other: &Self::Sums);

    /// Returns these sums minus other sums.
    fn minus(sums: Self::Sums, other: &Self::Sums) -> Self::Sums;

    /// Returns the number of rows.
    fn rows(sums: &Self::Sums) -> u32;

    /// Returns whether two rows have the same label.
    fn agree(one: Self::Row, other: Self::Row) -> bool;

    /// Returns the purity of the rows.
    fn score(&self, sums: &Self::Sums) -> f64;

    /// Like [`Criterion::score`], but for fewer than [`FEW_ROWS`] rows, which may be faster.
    #[inline(always)]
    fn score_of_few(&self, sums: &Self::Sums) -> f64 {
        self.score(sums)
    }

    /// Returns the largest rounding error of the gain of a split of these rows, in units of the score.
    fn gain_error(&self, _total: &Self::Sums) -> f64 {
        0.0
    }

    /// Returns the factor that converts a score to the gain that is stored in a model.
    fn unit(&self) -> f64;

    /// Returns the value of a leaf with these rows: the mean label, or the mean of the classes' scores.
    fn value(&self, sums: &Self::Sums) -> f64;

    /// Returns the total weight of the rows.
    fn cover(&self, sums: &Self::Sums) -> f64;
}

/// Number of units that represent one bit of entropy of one row. Scores are whole numbers of units, and even the
/// score of 2^28 rows with 28 bits each is exact as a 64-bit float.
const ENTROPY_UNITS: f64 = (1u64 << 19) as f64;
/// For counts below this number, n log n is looked up in a table.
pub(super) const FEW_ROWS: usize = 1 << 14;

/// Measure of purity, computed from the number of rows per class.
#[derive(Debug, Clone)]
pub(super) enum Purity {
    /// Negative entropy in bits: the sum of n log n over the classes minus n log n of the total. The table contains n
    /// log n for small n, in whole units.
    Entropy(Box<[f64; FEW_ROWS]>),
    /// Expected number of correct guesses if labels are guessed at random in proportion to the classes: the sum of the
    /// squared class counts divided by the total count.
    Gini,
}

impl Purity {
    /// Creates the entropy measure with its table.
    pub(super) fn entropy() -> Self {
        let table: Vec<f64> = (0..FEW_ROWS as u32).map(|count| n_log_n(f64::from(count)).round()).collect();
        Purity::Entropy(table.try_into().expect("the table has FEW_ROWS entries"))
    }
}

fn n_log_n(count: f64) -> f64 {
    if count > 0.0 { count * libm::log2(count) * ENTROPY_UNITS } else { 0.0 }
}

/// Criterion that treats labels as up to `C` classes. All rows have the same weight.
#[derive(Debug, Clone)]
pub(super) struct Classes<const C: usize> {
    /// How purity is measured.
    pub purity: Purity,
    /// Score of each class, which is its label unless other leaf scores are chosen.
    pub labels: [f64; C],
}

impl<const C: usize> Criterion for Classes<C> {
    type Row = u8;
    type Sums = ClassCounts<C>;

    #[inline(always)]
    fn add(sums: &mut ClassCounts<C>, row: u8) {
        // A class is always below C. This check is cheaper than a remainder.
        if let Some(count) = sums.0.get_mut(row as usize) {
            *count += 1;
        }
    }

    #[inline(always)]
    fn plus(sums: &mut ClassCounts<C>, other: &ClassCounts<C>) {
        for class in 0..C {
            sums.0[class] += other.0[class];
        }
    }

    #[inline(always)]
    fn minus(mut sums: ClassCounts<C>, other: &ClassCounts<C>) -> ClassCounts<C> {
        for class in 0..C {
            sums.0[class] -= other.0[class];
        }
        sums
    }

    #[inline(always)]
    fn rows(sums: &ClassCounts<C>) -> u32 {
        sums.0.iter().sum()
    }

    #[inline(always)]
    fn agree(one: u8, other: u8) -> bool {
        one == other
    }

    fn gain_error(&self, _total: &ClassCounts<C>) -> f64 {
        match self.purity {
            // The scores of the node and of both sides have a rounded term for the total and for each class.
            Purity::Entropy(_) => 3.0 * (C + 1) as f64 / 2.0,
            Purity::Gini => 0.0,
        }
    }

    #[inline(always)]
    fn score(&self, sums: &ClassCounts<C>) -> f64 {
        match &self.purity {
            Purity::Entropy(table) => {
                let look_up = |count: u32| match table.get(count as usize) {
                    Some(units) => *units,
                    None => n_log_n(f64::from(count)).round(),
                };
                let mut score = -look_up(Self::rows(sums));
                for count in sums.0 {
                    score += look_up(count);
                }
                score
            }
            Purity::Gini => {
                let squares: u64 = sums.0.iter().map(|count| u64::from(*count) * u64::from(*count)).sum();
                squares as f64 / f64::from(Self::rows(sums).max(1))
            }
        }
    }

    #[inline(always)]
    fn score_of_few(&self, sums: &ClassCounts<C>) -> f64 {
        match &self.purity {
            Purity::Entropy(table) => {
                let look_up = |count: u32| table[count as usize % FEW_ROWS];
                let mut score = -look_up(Self::rows(sums));
                for count in sums.0 {
                    score += look_up(count);
                }
                score
            }
            Purity::Gini => self.score(sums),
        }
    }

    fn unit(&self) -> f64 {
        match self.purity {
            Purity::Entropy(_) => 1.0 / ENTROPY_UNITS,
            Purity::Gini => 1.0,
        }
    }

    fn value(&self, sums: &ClassCounts<C>) -> f64 {
        let sum: f64 = sums.0.iter().zip(&self.labels).map(|(count, label)| f64::from(*count) * label).sum();
        sum / f64::from(Self::rows(sums).max(1))
    }

    fn cover(&self, sums: &ClassCounts<C>) -> f64 {
        f64::from(Self::rows(sums))
    }
}

/// Number of rows per class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClassCounts<const C: usize>(pub [u32; C]);

impl<const C: usize> Default for ClassCounts<C> {
    fn default() -> Self {
        ClassCounts([0; C])
    }
}

/// Maximum number of classes.
pub(super) const MOST_CLASSES: usize = 32;

/// Criterion that treats labels as classes, with weighted rows.
#[derive(Debug, Clone)]
pub(super) struct WeightedClasses {
    /// How purity is measured. The table of [`Purity::Entropy`] is not used.
    pub purity: Purity,
    /// Label of each class.
    pub labels: [f64; MOST_CLASSES],
    /// Scale of the fixed-point weights: a weight of 1 is stored as this number.
    pub weight_units: f64,
}

/// Sum of weights per class, and the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClassWeights {
    weights: [u64; MOST_CLASSES],
    rows: u32,
}

impl WeightedClasses {
    fn total(sums: &ClassWeights) -> u64 {
        sums.weights.iter().sum()
    }
}

impl Criterion for WeightedClasses {
    type Row = (u8, u32);
    type Sums = ClassWeights;

    #[inline]
    fn add(sums: &mut ClassWeights, (class, weight): (u8, u32)) {
        sums.weights[class as usize % MOST_CLASSES] += u64::from(weight);
        sums.rows += 1;
    }

    #[inline]
    fn plus(sums: &mut ClassWeights, other: &ClassWeights) {
        for class in 0..MOST_CLASSES {
            sums.weights[class] += other.weights[class];
        }
        sums.rows += other.rows;
    }

    #[inline]
    fn minus(mut sums: ClassWeights, other: &ClassWeights) -> ClassWeights {
        for class in 0..MOST_CLASSES {
            sums.weights[class] -= other.weights[class];
        }
        sums.rows -= other.rows;
        sums
    }

    #[inline]
    fn rows(sums: &ClassWeights) -> u32 {
        sums.rows
    }

    #[inline]
    fn agree(one: (u8, u32), other: (u8, u32)) -> bool {
        one.0 == other.0
    }

    fn gain_error(&self, total: &ClassWeights) -> f64 {
        match self.purity {
            Purity::Entropy(_) => n_log_n(Self::total(total) as f64 / self.weight_units).abs() * 1e-12,
            Purity::Gini => 0.0,
        }
    }

    fn score(&self, sums: &ClassWeights) -> f64 {
        let weight = |units: u64| units as f64 / self.weight_units;
        let total = Self::total(sums);
        match self.purity {
            Purity::Entropy(_) => sums
                .weights
                .iter()
                .fold(-n_log_n(weight(total)), |score, units| score + n_log_n(weight(*units))),
            Purity::Gini if total == 0 => 0.0,
            Purity::Gini => {
                let squares: f64 = sums.weights.iter().map(|units| weight(*units) * weight(*units)).sum();
                squares / weight(total)
            }
        }
    }

    fn unit(&self) -> f64 {
        match self.purity {
            Purity::Entropy(_) => 1.0 / ENTROPY_UNITS,
            Purity::Gini => 1.0,
        }
    }

    fn value(&self, sums: &ClassWeights) -> f64 {
        let total = Self::total(sums);
        let weighted = sums.weights.iter().zip(&self.labels).map(|(units, label)| *units as f64 * label);
        if total == 0 { 0.0 } else { weighted.sum::<f64>() / total as f64 }
    }

    fn cover(&self, sums: &ClassWeights) -> f64 {
        Self::total(sums) as f64 / self.weight_units
    }
}

/// Criterion that treats labels as numbers, with or without row weights.
#[derive(Debug, Clone)]
pub(super) struct Variance {
    /// Number of units that represent a label of 1 with weight 1.
    pub label_units: f64,
    /// Scale of the fixed-point weights: a weight of 1 is stored as this number.
    pub weight_units: f64,
}

/// Sums of labels and weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LabelMoments {
    labels: i64,
    weights: i64,
    rows: u32,
}

impl Criterion for Variance {
    /// Label times weight, and weight, both in units.
    type Row = (i32, i32);
    type Sums = LabelMoments;

    #[inline(always)]
    fn add(sums: &mut LabelMoments, (label, weight): (i32, i32)) {
        sums.labels += i64::from(label);
        sums.weights += i64::from(weight);
        sums.rows += 1;
    }

    #[inline(always)]
    fn plus(sums: &mut LabelMoments, other: &LabelMoments) {
        sums.labels += other.labels;
        sums.weights += other.weights;
        sums.rows += other.rows;
    }

    #[inline(always)]
    fn minus(sums: LabelMoments, other: &LabelMoments) -> LabelMoments {
        LabelMoments {
            labels: sums.labels - other.labels,
            weights: sums.weights - other.weights,
            rows: sums.rows - other.rows,
        }
    }

    #[inline(always)]
    fn rows(sums: &LabelMoments) -> u32 {
        sums.rows
    }

    #[inline(always)]
    fn agree(one: (i32, i32), other: (i32, i32)) -> bool {
        // Compares the labels of rows with different weights: l1 w1 / w1 = l2 w2 / w2. If rounding hides that they are
        // equal, this only costs time.
        i64::from(one.0) * i64::from(other.1) == i64::from(other.0) * i64::from(one.1)
    }

    #[inline(always)]
    fn score(&self, sums: &LabelMoments) -> f64 {
        let labels = sums.labels as f64;
        if sums.weights > 0 { labels * labels / sums.weights as f64 } else { 0.0 }
    }

    fn unit(&self) -> f64 {
        self.weight_units / (self.label_units * self.label_units)
    }

    fn value(&self, sums: &LabelMoments) -> f64 {
        if sums.weights == 0 {
            return 0.0;
        }
        sums.labels as f64 / self.label_units / (sums.weights as f64 / self.weight_units)
    }

    fn cover(&self, sums: &LabelMoments) -> f64 {
        sums.weights as f64 / self.weight_units
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_with_the_same_classes_gain_at_most_the_rounding_error() {
        let criterion = Classes::<3> { purity: Purity::entropy(), labels: [0.0, 1.0, 2.0] };
        let mut most = 0.0f64;
        for counts in (1..60u32).map(|seed| [seed, seed * seed % 17, seed * 7 % 23]) {
            for factor in [1, 2, 3, 7, 40, 900] {
                let left = ClassCounts(counts);
                let right = ClassCounts(counts.map(|count| count * factor));
                let mut total = left;
                Classes::plus(&mut total, &right);
                let gain = criterion.score(&left) + criterion.score(&right) - criterion.score(&total);
                assert!(gain <= criterion.gain_error(&total), "{counts:?} {factor}: {gain}");
                most = most.max(gain);
            }
        }
        assert!(most > 0.0, "no gain was rounded up");
    }
}
