//! Collects the documents of all queries for pooled metrics, which have one value for all documents together instead of
//! one value per query. The documents are sorted at the end, so the value does not depend on how they were divided.

use super::Metric;
use super::auc::AreaRules;
use super::convention::{Convention, Width};
use super::query::QueryRows;
use super::ranking::descending;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Scores and relevance of the documents of many queries.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Pool {
    rules: AreaRules,
    rows: Vec<PooledRow>,
}

/// A document: a key that sorts scores in descending order, and its weight, which has a minus sign if the document is
/// irrelevant.
type PooledRow = (u64, f64);

impl Metric {
    /// Whether the metric has one value for the documents of all queries together, and none for a query.
    pub fn is_pooled(&self) -> bool {
        matches!(self, Metric::AucPooled | Metric::PartialAucPooled(..))
    }

    /// Returns the reason why the metric has no value for a dataset.
    pub fn why_undefined(&self) -> &'static str {
        match self {
            Metric::AucPooled | Metric::PartialAucPooled(..) => {
                "it needs both relevant and irrelevant documents (see relevant= in the convention)"
            }
            Metric::Auc | Metric::PartialAuc(..) => "no query has both relevant and irrelevant documents",
            _ => "no query has a value",
        }
    }
}

impl Pool {
    /// Adds the documents of a query, each with the weight of the query.
    pub fn add(&mut self, rows: &QueryRows<'_>, convention: &Convention, weight: f64) {
        self.rules = AreaRules::of(convention);
        self.rows.extend(rows.labels.iter().zip(rows.scores).map(|(label, score)| {
            let score = match convention.scores {
                Width::Float64 => *score,
                Width::Float32 => f64::from(*score as f32),
            };
            (descending(score), if convention.is_relevant(*label) { weight } else { -weight })
        }));
    }

    /// Adds the documents of another pool.
    pub fn append(&mut self, other: &Pool) {
        if !other.rows.is_empty() {
            self.rules = other.rules;
            self.rows.extend_from_slice(&other.rows);
        }
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the documents in these ranges, counted in the order in which they were added.
    pub fn select(&self, ranges: impl Iterator<Item = Range<usize>>) -> Pool {
        Pool { rules: self.rules, rows: ranges.flat_map(|range| &self.rows[range]).copied().collect() }
    }

    /// Returns the value of a pooled metric; `None` unless there are both relevant and irrelevant documents, and for
    /// metrics that are not pooled.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let percents = match metric {
            Metric::AucPooled => (0, 100),
            Metric::PartialAucPooled(from, to) => (*from, *to),
            _ => return None,
        };
        let sorted = self.sorted();
        let runs = sorted.chunk_by(|one, other| one.0 == other.0).map(|run| {
            run.iter().fold((0.0, 0.0), |(relevant, irrelevant), (_, weight)| {
                match weight.is_sign_negative() {
                    true => (relevant, irrelevant - weight),
                    false => (relevant + weight, irrelevant),
                }
            })
        });
        self.rules.area(&runs.collect::<Vec<_>>(), percents)
    }

    /// Returns the documents in an order that depends on the documents alone, so that sums of weights do, too.
    fn sorted(&self) -> Vec<PooledRow> {
        let mut rows = self.rows.clone();
        rows.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        rows
    }
}

/// Pools are equal if they have the same documents, in any order.
impl PartialEq for Pool {
    fn eq(&self, other: &Self) -> bool {
        (self.rules == other.rules || self.is_empty()) && self.sorted() == other.sorted()
    }
}

impl Eq for Pool {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool_of(rows: &[(f32, f64, f64)], convention: &Convention) -> Pool {
        let mut pool = Pool::default();
        for (label, score, weight) in rows {
            let rows = QueryRows { labels: &[*label], scores: &[*score], documents: None, judged: None };
            pool.add(&rows, convention, *weight);
        }
        pool
    }

    /// Mean over all pairs of a relevant and an irrelevant document: 1 if they are in the right order, half if tied.
    fn pair_by_pair(rows: &[(f32, f64, f64)]) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for (_, high, weight) in rows.iter().filter(|row| row.0 >= 1.0) {
            for (_, low, other) in rows.iter().filter(|row| row.0 < 1.0) {
                sum += weight
                    * other
                    * if high > low {
                        1.0
                    } else if high == low {
                        0.5
                    } else {
                        0.0
                    };
                all += weight * other;
            }
        }
        (all > 0.0).then(|| sum / all)
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs_in_the_right_order(
            rows in proptest::collection::vec(
                ((0_u8..3).prop_map(f32::from), (-4_i8..4).prop_map(f64::from), prop_oneof![Just(1.0), 0.5..3.0]), 0..60),
            cut in 0_usize..60,
        ) {
            let standard = Convention::default();
            let whole = pool_of(&rows, &standard);
            let auc = whole.value(&Metric::AucPooled);
            match (auc, pair_by_pair(&rows)) {
                (Some(area), Some(pairs)) => prop_assert!((area - pairs).abs() < 1e-12, "{area} {pairs}"),
                (area, pairs) => prop_assert_eq!(area, pairs),
            }
            let (left, right) = rows.split_at(cut.min(rows.len()));
            let mut merged = pool_of(right, &standard);
            merged.append(&pool_of(left, &standard));
            prop_assert_eq!(&merged, &whole);
            for metric in [Metric::AucPooled, Metric::PartialAucPooled(0, 5), Metric::PartialAucPooled(20, 70)] {
                prop_assert_eq!(merged.value(&metric).map(f64::to_bits), whole.value(&metric).map(f64::to_bits));
            }
            let part = |from, to| whole.value(&Metric::PartialAucPooled(from, to)).unwrap_or(0.0);
            let sum = part(0, 5) + part(5, 60) + part(60, 100);
            prop_assert!((sum - auc.unwrap_or(0.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn bounds_of_the_thesis() {
        let standard = Convention::default();
        let standardised: Convention = "pauc=standardised".parse().unwrap();
        let rows = |score: fn(u16) -> f64| -> Vec<(f32, f64, f64)> {
            (0..1000).map(|row| (f32::from(row % 2), score(row), 1.0)).collect()
        };
        let (perfect, random) = (rows(|row| f64::from(row % 2)), rows(|_| 0.0));
        let metric = Metric::PartialAucPooled(0, 5);
        let value = |rows: &[(f32, f64, f64)], convention: &Convention| {
            pool_of(rows, convention).value(&metric).unwrap()
        };
        assert!((value(&perfect, &standard) - 0.05).abs() < 1e-15);
        assert!((value(&random, &standard) - 0.00125).abs() < 1e-15);
        assert!((value(&perfect, &standardised) - 1.0).abs() < 1e-15);
        assert!((value(&random, &standardised) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn undefined_without_both_kinds_of_documents() {
        let standard = Convention::default();
        for labels in [&[][..], &[0.0, 0.0], &[1.0, 2.0]] {
            let rows: Vec<_> = labels.iter().map(|label| (*label, 0.5, 1.0)).collect();
            assert_eq!(pool_of(&rows, &standard).value(&Metric::AucPooled), None);
        }
    }

    #[test]
    fn some_queries_of_a_pool() {
        let rows = [(1.0, 0.9, 1.0), (0.0, 0.1, 1.0), (1.0, 0.0, 1.0), (0.0, 0.5, 1.0)];
        let pool = pool_of(&rows, &Convention::default());
        assert_eq!(pool.value(&Metric::AucPooled), Some(0.5));
        assert_eq!(pool.select(std::iter::once(0..2)).value(&Metric::AucPooled), Some(1.0));
        assert_eq!(pool.select(std::iter::once(2..4)).value(&Metric::AucPooled), Some(0.0));
    }
}
