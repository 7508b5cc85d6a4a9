//! What swapping two ranked documents would change in a metric, by closed forms from columns that are
//! filled once a query. Each is equal to what [`Metric::swap_delta`](planetree_metric::Metric::swap_delta) finds
//! slowly.

use super::ranked::{LANES, Lanes, Ranked, lanes};
use fearless_simd::{Simd, SimdBase};
use planetree_metric::Discount;

/// Columns of a query that deltas look up, [`LANES`] longer than the query.
#[derive(Debug, Default)]
pub struct Columns {
    /// Of each document: its gain, its probability to satisfy, or 1 if it is relevant.
    worth: Vec<f32>,
    /// Of each rank: its discount, or 1/rank.
    discount: Vec<f32>,
    /// ERR: the chance that nobody was satisfied before a rank. MAP: relevant documents up to the
    /// rank, by the rank.
    before: Vec<f32>,
    /// Whose difference is what the ranks between two contribute. MAP: what all before a rank do. ERR: what all
    /// from a rank on do, below zero; these shrink with what is left to contribute, so that far down the list
    /// a difference keeps its digits.
    sum: Vec<f32>,
    /// What every delta is multiplied by.
    factor: f32,
}

/// The change of a metric by a swap.
pub trait Delta: Copy {
    /// Its size for the documents at rank `i` and at the ranks from `j` on, which is behind `i`.
    fn of<S: Simd>(self, simd: S, columns: &Columns, i: usize, j: usize) -> Lanes<S>;
}

/// All pairs count alike.
#[derive(Debug, Clone, Copy)]
pub struct One;

/// NDCG: the difference of gains by the difference of discounts, by the ideal DCG.
#[derive(Debug, Clone, Copy)]
pub struct Ndcg;

/// ERR (Chapelle et al. 2009), whose terms between the two ranks change by a common ratio.
#[derive(Debug, Clone, Copy)]
pub struct Err;

/// Average precision over the whole list.
#[derive(Debug, Clone, Copy)]
pub struct AveragePrecision;

impl Delta for One {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, _columns: &Columns, _i: usize, _j: usize) -> Lanes<S> {
        Lanes::splat(simd, 1.0)
    }
}

impl Delta for Ndcg {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &Columns, i: usize, j: usize) -> Lanes<S> {
        let Columns { worth, discount, factor, .. } = columns;
        let gains = Lanes::splat(simd, worth[i]) - lanes(simd, worth, j);
        let discounts = Lanes::splat(simd, discount[i]) - lanes(simd, discount, j);
        gains.abs() * discounts * *factor
    }
}

impl Delta for Err {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &Columns, i: usize, j: usize) -> Lanes<S> {
        let Columns { worth, discount, before, sum, .. } = columns;
        let satisfies = worth[i];
        let worths = lanes(simd, worth, j);
        let ratio = (Lanes::splat(simd, 1.0) - worths) * (1.0 / (1.0 - satisfies));
        let at_first = (worths - satisfies) * (before[i] * discount[i]);
        let between = (lanes(simd, sum, j) - sum[i + 1]) * (ratio - 1.0);
        let at_second = lanes(simd, before, j) * lanes(simd, discount, j) * (ratio * satisfies - worths);
        (at_first + between + at_second).abs()
    }
}

impl Delta for AveragePrecision {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &Columns, i: usize, j: usize) -> Lanes<S> {
        let Columns { worth, discount, before, sum, factor } = columns;
        // The precision at rank i with a relevant document there.
        let precision = before[i] + (1.0 - worth[i]) * discount[i];
        let differ = (lanes(simd, worth, j) - worth[i]).abs();
        let change = (lanes(simd, sum, j) - sum[i + 1]) - lanes(simd, before, j) + precision;
        differ * change.abs() * *factor
    }
}

impl Columns {
    /// For NDCG to a depth: `gain` of a label, and one by the ideal DCG.
    pub fn of_ndcg(&mut self, ranked: &Ranked, gain: impl Fn(f32) -> f64, depth: Option<u32>, factor: f32) {
        self.fill(ranked, |label| gain(label) as f32);
        self.discounts(ranked.len(), depth, |rank| Discount::Log2.at(rank) as f32);
        self.factor = factor;
    }

    /// For ERR to a depth: `satisfies` is the probability that a label satisfies.
    pub fn of_err(&mut self, ranked: &Ranked, satisfies: impl Fn(f32) -> f64, depth: Option<u32>) {
        self.fill(ranked, |label| satisfies(label) as f32);
        self.discounts(ranked.len(), depth, |rank| 1.0 / (rank as f32 + 1.0));
        self.before.clear();
        let mut unsatisfied = 1.0f64;
        for worth in &self.worth {
            self.before.push(unsatisfied as f32);
            unsatisfied *= 1.0 - f64::from(*worth);
        }
        self.sum.clear();
        self.sum.resize(self.worth.len(), 0.0);
        let mut rest = 0.0f64;
        for rank in (0..self.worth.len()).rev() {
            let [unsatisfied, worth, discount] =
                [&self.before, &self.worth, &self.discount].map(|of| f64::from(of[rank]));
            rest -= unsatisfied * worth * discount;
            self.sum[rank] = rest as f32;
        }
        self.factor = 1.0;
    }

    /// For average precision: which labels are relevant.
    pub fn of_average_precision(&mut self, ranked: &Ranked, is_relevant: impl Fn(f32) -> bool) {
        self.fill(ranked, |label| if is_relevant(label) { 1.0 } else { 0.0 });
        self.discounts(ranked.len(), None, |rank| 1.0 / (rank as f32 + 1.0));
        self.before.clear();
        self.sum.clear();
        let (mut relevant, mut sum) = (0.0f64, 0.0f64);
        for (rank, worth) in self.worth.iter().enumerate() {
            let (worth, rank) = (f64::from(*worth), rank as f64 + 1.0);
            self.sum.push(sum as f32);
            relevant += worth;
            sum += worth / rank;
            self.before.push((relevant / rank) as f32);
        }
        self.factor = if relevant > 0.0 { (1.0 / relevant) as f32 } else { 0.0 };
    }

    fn fill(&mut self, ranked: &Ranked, worth: impl Fn(f32) -> f32) {
        let count = ranked.len();
        self.worth.clear();
        self.worth.extend(ranked.labels[..count].iter().map(|label| worth(*label)));
        self.worth.extend([0.0; LANES]);
    }

    /// The discounts of ranks, which stay from query to query.
    fn discounts(&mut self, count: usize, depth: Option<u32>, discount: impl Fn(usize) -> f32) {
        let depth = depth.map_or(usize::MAX, |depth| depth as usize);
        let known = self.discount.len();
        self.discount
            .extend((known..count + LANES).map(|rank| if rank < depth { discount(rank) } else { 0.0 }));
    }
}
