//! Computes deltas: how much a metric changes when two ranked documents are swapped. Closed forms compute the deltas
//! from columns that are filled once per query. They give the same results as the slower
//! [`Metric::swap_delta`](planetree_metric::Metric::swap_delta).

use super::ranked::{F32Lanes, LANES, RankedColumns, lanes};
use fearless_simd::{Simd, SimdBase};
use planetree_metric::Discount;

/// Columns from which the deltas of a query are computed. Each column has [`LANES`] entries more than the query has
/// documents.
#[derive(Debug, Default)]
pub struct DeltaColumns {
    /// Value of each document in the metric: its gain (NDCG), its stopping probability (ERR), or 1 if it is relevant
    /// (MAP).
    worth: Vec<f32>,
    /// Discount of each rank (NDCG), or 1/rank (ERR, MAP).
    discount: Vec<f32>,
    /// Probability of reaching each rank (ERR), or precision at each rank (MAP).
    before: Vec<f32>,
    /// Cumulative sums, whose differences are the contributions of the ranks between two documents. MAP uses prefix
    /// sums. ERR uses negated suffix sums, which become smaller down the list, so that differences there keep their
    /// precision.
    sum: Vec<f32>,
    /// Factor by which all deltas are multiplied.
    factor: f32,
}

/// Computes how much a metric changes when two documents are swapped.
pub(super) trait Delta: Copy {
    /// Returns the magnitudes of the changes when the document at rank `i` is swapped with each of the documents at the
    /// [`LANES`] ranks from `j` on, where `j` > `i`.
    fn of<S: Simd>(self, simd: S, columns: &DeltaColumns, i: usize, j: usize) -> F32Lanes<S>;
}

/// A delta of 1 for all pairs, so that they have equal weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitDelta;

/// Delta of NDCG: the difference of the gains times the difference of the discounts, divided by the ideal DCG.
#[derive(Debug, Clone, Copy)]
pub(super) struct NdcgDelta;

/// Delta of ERR (Chapelle et al. 2009). The terms between the two ranks all change by the same ratio.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrDelta;

/// Delta of average precision over the whole list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApDelta;

impl Delta for UnitDelta {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, _columns: &DeltaColumns, _i: usize, _j: usize) -> F32Lanes<S> {
        F32Lanes::splat(simd, 1.0)
    }
}

impl Delta for NdcgDelta {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &DeltaColumns, i: usize, j: usize) -> F32Lanes<S> {
        let DeltaColumns { worth, discount, factor, .. } = columns;
        let gains = F32Lanes::splat(simd, worth[i]) - lanes(simd, worth, j);
        let discounts = F32Lanes::splat(simd, discount[i]) - lanes(simd, discount, j);
        gains.abs() * discounts * *factor
    }
}

impl Delta for ErrDelta {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &DeltaColumns, i: usize, j: usize) -> F32Lanes<S> {
        let DeltaColumns { worth, discount, before, sum, .. } = columns;
        let satisfies = worth[i];
        let worths = lanes(simd, worth, j);
        let ratio = (F32Lanes::splat(simd, 1.0) - worths) * (1.0 / (1.0 - satisfies));
        let at_first = (worths - satisfies) * (before[i] * discount[i]);
        let between = (lanes(simd, sum, j) - sum[i + 1]) * (ratio - 1.0);
        let at_second = lanes(simd, before, j) * lanes(simd, discount, j) * (ratio * satisfies - worths);
        (at_first + between + at_second).abs()
    }
}

impl Delta for ApDelta {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, columns: &DeltaColumns, i: usize, j: usize) -> F32Lanes<S> {
        let DeltaColumns { worth, discount, before, sum, factor } = columns;
        // The precision at rank i if the document there were relevant.
        let precision = before[i] + (1.0 - worth[i]) * discount[i];
        let differ = (lanes(simd, worth, j) - worth[i]).abs();
        let change = (lanes(simd, sum, j) - sum[i + 1]) - lanes(simd, before, j) + precision;
        differ * change.abs() * *factor
    }
}

impl DeltaColumns {
    /// Fills the columns for NDCG at a depth. `gain` returns the gain of a label, and `factor` is 1 over the ideal DCG.
    pub fn of_ndcg(
        &mut self,
        ranked: &RankedColumns,
        gain: impl Fn(f32) -> f64,
        depth: Option<u32>,
        factor: f32,
    ) {
        self.fill(ranked, |label| gain(label) as f32);
        self.discounts(ranked.len(), depth, |rank| Discount::Log2.at(rank) as f32);
        self.factor = factor;
    }

    /// Fills the columns for ERR at a depth. `satisfies` returns the stopping probability of a label.
    pub fn of_err(&mut self, ranked: &RankedColumns, satisfies: impl Fn(f32) -> f64, depth: Option<u32>) {
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

    /// Fills the columns for average precision.
    pub fn of_average_precision(&mut self, ranked: &RankedColumns, is_relevant: impl Fn(f32) -> bool) {
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

    fn fill(&mut self, ranked: &RankedColumns, worth: impl Fn(f32) -> f32) {
        let count = ranked.len();
        self.worth.clear();
        self.worth.extend(ranked.labels[..count].iter().map(|label| worth(*label)));
        self.worth.extend([0.0; LANES]);
    }

    /// Computes discounts for the ranks that no earlier query had. The others are reused.
    fn discounts(&mut self, count: usize, depth: Option<u32>, discount: impl Fn(usize) -> f32) {
        let depth = depth.map_or(usize::MAX, |depth| depth as usize);
        let known = self.discount.len();
        self.discount
            .extend((known..count + LANES).map(|rank| if rank < depth { discount(rank) } else { 0.0 }));
    }
}
