//! A metric over a partition, with what depends on the labels alone worked out once.

use super::mean::Mean;
use super::ranking::Scratch;
use super::{Metric, err, ndcg, rmse};

/// A metric that knows the queries of one partition.
#[derive(Debug, Clone)]
pub struct Prepared {
    metric: Metric,
    /// For NDCG: the DCG of every query's best order.
    ideal: Vec<f64>,
}

impl Metric {
    /// Works out what does not change from round to round. Query `q` has the rows from
    /// `query_bounds[q]` up to `query_bounds[q + 1]`.
    pub fn prepare(&self, labels: &[f32], query_bounds: &[u32]) -> Prepared {
        let mut scratch = Scratch::default();
        let ideal = match self {
            Metric::Ndcg(depth) => {
                queries(query_bounds).map(|rows| ndcg::ideal(&labels[rows], *depth, &mut scratch)).collect()
            }
            Metric::Rmse | Metric::Err(_) => Vec::new(),
        };
        Prepared { metric: *self, ideal }
    }
}

impl Prepared {
    /// Which metric it is.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The value of query number `query`, whose labels and scores are given. Higher is not always
    /// better: see [`Metric::higher_is_better`].
    pub fn of_query(&self, query: usize, labels: &[f32], scores: &[f64], scratch: &mut Scratch) -> f64 {
        match self.metric.looks_at() {
            Some(depth) => self.of_order(query, labels, scratch.rank(scores, depth)),
            None => rmse::rmse(labels, scores),
        }
    }

    fn of_order(&self, query: usize, labels: &[f32], order: &[u32]) -> f64 {
        match self.metric {
            Metric::Ndcg(depth) => ndcg::ndcg(order, labels, depth, self.ideal[query]),
            Metric::Err(depth) => err::err(order, labels, depth),
            Metric::Rmse => 0.0, // orders do not matter to it, `add_rows` does its work
        }
    }
}

/// The means of the metrics over one partition, whose means merge with those of other partitions.
/// `metrics` were prepared with the same labels and bounds.
pub fn evaluate(metrics: &[Prepared], labels: &[f32], scores: &[f64], query_bounds: &[u32]) -> Vec<Mean> {
    let mut means: Vec<Mean> = metrics.iter().map(|prepared| Mean::new(prepared.metric)).collect();
    let mut orderly: Vec<(&Prepared, &mut Mean)> = Vec::new();
    for (prepared, mean) in metrics.iter().zip(&mut means) {
        match prepared.metric {
            Metric::Rmse => add_rows(mean, labels, scores),
            Metric::Ndcg(_) | Metric::Err(_) => orderly.push((prepared, mean)),
        }
    }
    // One order serves them all: what the deepest looks at begins with what the others look at.
    let depths = orderly.iter().filter_map(|(prepared, _)| prepared.metric.looks_at());
    let Some(deepest) = depths.reduce(|left, right| left.zip(right).map(|(a, b)| a.max(b))) else {
        return means;
    };
    let mut scratch = Scratch::default();
    for (query, rows) in queries(query_bounds).enumerate() {
        let order = scratch.rank(&scores[rows.clone()], deepest);
        for (prepared, mean) in &mut orderly {
            mean.add(prepared.of_order(query, &labels[rows.clone()], order));
        }
    }
    means
}

fn add_rows(mean: &mut Mean, labels: &[f32], scores: &[f64]) {
    labels.iter().zip(scores).for_each(|(label, score)| mean.add(rmse::squared_error(*label, *score)));
}

/// The rows of every query.
fn queries(bounds: &[u32]) -> impl Iterator<Item = std::ops::Range<usize>> {
    bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METRICS: [Metric; 6] = [
        Metric::Ndcg(Some(10)),
        Metric::Rmse,
        Metric::Ndcg(Some(3)),
        Metric::Err(None),
        Metric::Ndcg(None),
        Metric::Err(Some(5)),
    ];

    fn evaluate_all(metrics: &[Metric], labels: &[f32], scores: &[f64], query_bounds: &[u32]) -> Vec<Mean> {
        let prepared: Vec<Prepared> =
            metrics.iter().map(|metric| metric.prepare(labels, query_bounds)).collect();
        evaluate(&prepared, labels, scores, query_bounds)
    }

    proptest! {
        #[test]
        fn together_they_are_what_each_is_alone_query_by_query(
            queries in proptest::collection::vec(
                proptest::collection::vec(((0_u8..5).prop_map(f32::from), -1.0..1.0), 0..70), 0..8),
        ) {
            let mut bounds = vec![0_u32];
            bounds.extend(queries.iter().scan(0, |end, query| { *end += query.len() as u32; Some(*end) }));
            let (labels, scores): (Vec<f32>, Vec<f64>) = queries.iter().flatten().copied().unzip();
            let together = evaluate_all(&METRICS, &labels, &scores, &bounds);
            let mut scratch = Scratch::default();
            for (metric, mean) in METRICS.iter().zip(together) {
                let mut slow = Mean::new(*metric);
                if *metric == Metric::Rmse {
                    labels.iter().zip(&scores).for_each(|(l, s)| slow.add((s - f64::from(*l)).powi(2)));
                } else {
                    for query in &queries {
                        let (labels, scores): (Vec<f32>, Vec<f64>) = query.iter().copied().unzip();
                        slow.add(metric.of_query(&labels, &scores, &mut scratch));
                    }
                }
                prop_assert_eq!(&mean, &slow, "{}", metric);
                prop_assert_eq!(&evaluate_all(&[*metric], &labels, &scores, &bounds)[0], &mean);
            }
        }
    }

    #[test]
    fn partitions_merge_to_the_whole() {
        let labels: Vec<f32> = (0..600).map(|row| (row * 7 % 5) as f32).collect();
        let scores: Vec<f64> = (0..600).map(|row| f64::from(row * 31 % 101) / 7.0).collect();
        let bounds: Vec<u32> = (0..=20).map(|query| query * 30).collect();
        let whole = evaluate_all(&METRICS, &labels, &scores, &bounds);
        let mut merged: Vec<Mean> = METRICS.iter().map(|metric| Mean::new(*metric)).collect();
        for (from, to) in [(10, 20), (0, 3), (3, 10)] {
            let rows = from * 30..to * 30;
            let bounds: Vec<u32> = bounds[from..=to].iter().map(|bound| bound - bounds[from]).collect();
            let part = evaluate_all(&METRICS, &labels[rows.clone()], &scores[rows], &bounds);
            merged.iter_mut().zip(&part).for_each(|(mean, other)| mean.merge(other));
        }
        assert_eq!(whole, merged);
    }

    #[test]
    fn prepared_or_not_a_query_has_the_same_value() {
        let (labels, scores) = ([0.0, 2.0, 1.0, 1.0, 0.0], [0.5, 0.1, 0.9, 0.2, 0.2]);
        let mut scratch = Scratch::default();
        for metric in METRICS {
            let prepared = metric.prepare(&labels, &[0, 3, 5]);
            for (query, rows) in [(0, 0..3), (1, 3..5)] {
                let (labels, scores) = (&labels[rows.clone()], &scores[rows]);
                let value = prepared.of_query(query, labels, scores, &mut scratch);
                assert_eq!(value, metric.of_query(labels, scores, &mut scratch), "{metric} {query}");
            }
        }
    }
}
