//! What makes a split a good one, from sums over the rows on either side. Sums are of whole numbers, so that
//! no order of adding changes them; a *score* of some rows is the greater the more they agree, and a split
//! gains what the scores of both sides are above that of the node.

/// Sums over rows and what they are worth.
pub trait Criterion: Sync {
    /// What a row says.
    type Row: Copy + Default + Send + Sync;
    /// Sums over some rows.
    type Sums: Copy + Default + Send + Sync;

    /// Adds a row.
    fn add(sums: &mut Self::Sums, row: Self::Row);

    /// Adds other rows.
    fn plus(sums: &mut Self::Sums, other: &Self::Sums);

    /// Takes rows away.
    fn minus(sums: Self::Sums, other: &Self::Sums) -> Self::Sums;

    /// How many rows there are.
    fn rows(sums: &Self::Sums) -> u32;

    /// Whether two rows say the same.
    fn agree(one: Self::Row, other: Self::Row) -> bool;

    /// How well the rows agree.
    fn score(&self, sums: &Self::Sums) -> f64;

    /// The same for fewer than [`FEW_ROWS`] rows, perhaps quicker.
    #[inline(always)]
    fn score_of_few(&self, sums: &Self::Sums) -> f64 {
        self.score(sums)
    }

    /// What one unit of a score means in a model's gains.
    fn unit(&self) -> f64;

    /// The mean label.
    fn value(&self, sums: &Self::Sums) -> f64;

    /// The weight of the rows.
    fn cover(&self, sums: &Self::Sums) -> f64;
}

/// Units of an entropy of one bit and row. Up to 2^28 rows of 28 bits each still add up without rounding.
const ENTROPY_UNITS: f64 = (1u64 << 19) as f64;
/// Counts below this have their n log n in a table.
pub const FEW_ROWS: usize = 1 << 14;

/// How class counts become a score.
#[derive(Debug, Clone)]
pub enum Purity {
    /// Minus the bits that the labels take: n log n of every class less that of all. The table has it for
    /// small counts, in whole units.
    Entropy(Box<[f64; FEW_ROWS]>),
    /// The rows that would be guessed right: squares of class counts by the count.
    Gini,
}

impl Purity {
    /// By entropy.
    pub fn entropy() -> Self {
        let table: Vec<f64> = (0..FEW_ROWS as u32).map(|count| n_log_n(f64::from(count)).round()).collect();
        Purity::Entropy(table.try_into().expect("as many numbers as were asked for"))
    }
}

fn n_log_n(count: f64) -> f64 {
    if count > 0.0 { count * libm::log2(count) * ENTROPY_UNITS } else { 0.0 }
}

/// Labels as classes, up to `C` of them, every row alike.
#[derive(Debug, Clone)]
pub struct Classes<const C: usize> {
    /// How counts become a score.
    pub purity: Purity,
    /// The label of each class.
    pub labels: [f64; C],
}

impl<const C: usize> Criterion for Classes<C> {
    type Row = u8;
    type Sums = Counts<C>;

    #[inline(always)]
    fn add(sums: &mut Counts<C>, row: u8) {
        // A class is below C; asking is quicker than dividing.
        if let Some(count) = sums.0.get_mut(row as usize) {
            *count += 1;
        }
    }

    #[inline(always)]
    fn plus(sums: &mut Counts<C>, other: &Counts<C>) {
        for class in 0..C {
            sums.0[class] += other.0[class];
        }
    }

    #[inline(always)]
    fn minus(mut sums: Counts<C>, other: &Counts<C>) -> Counts<C> {
        for class in 0..C {
            sums.0[class] -= other.0[class];
        }
        sums
    }

    #[inline(always)]
    fn rows(sums: &Counts<C>) -> u32 {
        sums.0.iter().sum()
    }

    #[inline(always)]
    fn agree(one: u8, other: u8) -> bool {
        one == other
    }

    #[inline(always)]
    fn score(&self, sums: &Counts<C>) -> f64 {
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
    fn score_of_few(&self, sums: &Counts<C>) -> f64 {
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

    fn value(&self, sums: &Counts<C>) -> f64 {
        let sum: f64 = sums.0.iter().zip(&self.labels).map(|(count, label)| f64::from(*count) * label).sum();
        sum / f64::from(Self::rows(sums).max(1))
    }

    fn cover(&self, sums: &Counts<C>) -> f64 {
        f64::from(Self::rows(sums))
    }
}

/// Rows by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts<const C: usize>(pub [u32; C]);

impl<const C: usize> Default for Counts<C> {
    fn default() -> Self {
        Counts([0; C])
    }
}

/// Classes at most.
pub const MOST_CLASSES: usize = 32;

/// Labels as classes, rows by weight.
#[derive(Debug, Clone)]
pub struct WeightedClasses {
    /// How weights become a score; the table of counts is of no use.
    pub purity: Purity,
    /// The label of each class.
    pub labels: [f64; MOST_CLASSES],
    /// Units of a weight of 1.
    pub weight_units: f64,
}

/// Weights by class, and the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassWeights {
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

/// Labels as numbers; rows by weight, or every row alike.
#[derive(Debug, Clone)]
pub struct Variance {
    /// Units of a label of 1 times its weight.
    pub label_units: f64,
    /// Units of a weight of 1.
    pub weight_units: f64,
}

/// Sums of labels and weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moments {
    labels: i64,
    weights: i64,
    rows: u32,
}

impl Criterion for Variance {
    /// The label in units, times the weight, and the weight in units.
    type Row = (i32, i32);
    type Sums = Moments;

    #[inline(always)]
    fn add(sums: &mut Moments, (label, weight): (i32, i32)) {
        sums.labels += i64::from(label);
        sums.weights += i64::from(weight);
        sums.rows += 1;
    }

    #[inline(always)]
    fn plus(sums: &mut Moments, other: &Moments) {
        sums.labels += other.labels;
        sums.weights += other.weights;
        sums.rows += other.rows;
    }

    #[inline(always)]
    fn minus(sums: Moments, other: &Moments) -> Moments {
        Moments {
            labels: sums.labels - other.labels,
            weights: sums.weights - other.weights,
            rows: sums.rows - other.rows,
        }
    }

    #[inline(always)]
    fn rows(sums: &Moments) -> u32 {
        sums.rows
    }

    #[inline(always)]
    fn agree(one: (i32, i32), other: (i32, i32)) -> bool {
        // Equal labels of different weights: l1 w1 / w1 = l2 w2 / w2. A rounding may hide that, which costs time only.
        i64::from(one.0) * i64::from(other.1) == i64::from(other.0) * i64::from(one.1)
    }

    #[inline(always)]
    fn score(&self, sums: &Moments) -> f64 {
        let labels = sums.labels as f64;
        if sums.weights > 0 { labels * labels / sums.weights as f64 } else { 0.0 }
    }

    fn unit(&self) -> f64 {
        self.weight_units / (self.label_units * self.label_units)
    }

    fn value(&self, sums: &Moments) -> f64 {
        if sums.weights == 0 {
            return 0.0;
        }
        sums.labels as f64 / self.label_units / (sums.weights as f64 / self.weight_units)
    }

    fn cover(&self, sums: &Moments) -> f64 {
        sums.weights as f64 / self.weight_units
    }
}
