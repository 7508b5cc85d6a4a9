//! What the values of all queries come to: means, how they are spread, the worst queries, segments.

use super::results::Results;
use planetree_metric::{Mean, Metric};
use std::collections::BTreeMap;

/// The percentiles of a summary.
pub const PERCENTILES: [u32; 5] = [5, 25, 50, 75, 95];

/// One metric over all queries.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSummary {
    /// Which.
    pub metric: Metric,
    /// The mean over the queries that count; `None` if none does.
    pub mean: Option<f64>,
    /// Queries that count.
    pub counted: usize,
    /// The mean without queries that have nothing relevant.
    pub mean_without_empty: Option<f64>,
    /// The values below which so many per cent of the queries are, between two values in proportion.
    pub percentiles: Option<[f64; 5]>,
}

/// All metrics over all queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Ranked documents.
    pub rows: u64,
    /// Queries.
    pub queries: usize,
    /// Queries without anything relevant.
    pub empty: usize,
    /// Queries of the ranking that have no judgment and are left out.
    pub unjudged: u64,
    /// Queries of the judgments that have no ranked document.
    pub unranked: u64,
    /// The metrics.
    pub metrics: Vec<MetricSummary>,
    /// The queries with the worst values of the first metric, the worst first, of those with something
    /// relevant.
    pub worst: Vec<usize>,
}

/// The means of one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentSummary {
    /// What its queries have in common; `None` for those without a value.
    pub segment: Option<String>,
    /// Ranked documents.
    pub rows: u64,
    /// Queries.
    pub queries: usize,
    /// Queries without anything relevant.
    pub empty: usize,
    /// The mean of every metric.
    pub means: Vec<Option<f64>>,
}

impl Summary {
    /// Sums up results of some metrics, with a number of worst queries.
    pub fn of(results: &Results, metrics: &[Metric], worst: usize) -> Self {
        let is_empty = |query: &usize| results.relevant[*query] == 0;
        let all = || 0..results.queries();
        let of_metric = |(place, metric): (usize, &Metric)| MetricSummary {
            metric: *metric,
            mean: mean(results, place, metric, all()),
            counted: results.column(place).flatten().count(),
            mean_without_empty: mean(results, place, metric, all().filter(|query| !is_empty(query))),
            percentiles: percentiles(results.column(place).flatten().collect()),
        };
        Summary {
            rows: results.rows,
            queries: results.queries(),
            empty: all().filter(is_empty).count(),
            unjudged: results.unjudged,
            unranked: results.unranked,
            metrics: metrics.iter().enumerate().map(of_metric).collect(),
            worst: metrics.first().map_or(Vec::new(), |metric| worst_queries(results, metric, worst)),
        }
    }
}

impl SegmentSummary {
    /// The means of every segment, in the order of their names; queries without a value last.
    pub fn of(results: &Results, metrics: &[Metric]) -> Vec<Self> {
        let mut segments: BTreeMap<(bool, Option<&str>), Vec<usize>> = BTreeMap::new();
        for (query, segment) in results.segments.iter().enumerate() {
            segments.entry((segment.is_none(), segment.as_deref())).or_default().push(query);
        }
        let of_segment = |((_, segment), queries): ((bool, Option<&str>), Vec<usize>)| SegmentSummary {
            segment: segment.map(str::to_owned),
            rows: queries.iter().map(|query| u64::from(results.documents[*query])).sum(),
            queries: queries.len(),
            empty: queries.iter().filter(|query| results.relevant[**query] == 0).count(),
            means: (0..)
                .zip(metrics)
                .map(|(place, metric)| mean(results, place, metric, queries.iter().copied()))
                .collect(),
        };
        segments.into_iter().map(of_segment).collect()
    }
}

/// The mean of a metric over some queries, as far as they count.
fn mean(
    results: &Results,
    place: usize,
    metric: &Metric,
    queries: impl Iterator<Item = usize>,
) -> Option<f64> {
    let counted =
        queries.filter_map(|query| Some((results.value(query, place)?, f64::from(results.documents[query]))));
    mean_of(*metric, counted)
}

/// The mean of a metric over queries that count, each with its value and its number of documents.
pub fn mean_of(metric: Metric, queries: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut mean = Mean::new(metric);
    for (value, documents) in queries {
        match metric {
            // It is over rows, of which every query has as many squared errors.
            Metric::Rmse => mean.add_weighted(value * value, documents),
            _ => mean.add(value),
        }
    }
    Some(mean.value()).filter(|value| !value.is_nan())
}

fn percentiles(mut values: Vec<f64>) -> Option<[f64; 5]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(PERCENTILES.map(|percent| {
        let place = f64::from(percent) / 100.0 * last as f64;
        let (below, share) = (place.floor() as usize, place.fract());
        let above = values[(below + 1).min(last)];
        values[below] + (above - values[below]) * share
    }))
}

/// Of equal values the earlier query.
fn worst_queries(results: &Results, metric: &Metric, count: usize) -> Vec<usize> {
    let counts = |query: &usize| results.relevant[*query] > 0 && results.value(*query, 0).is_some();
    let mut queries: Vec<usize> = (0..results.queries()).filter(counts).collect();
    let goodness = |query: usize| {
        let value = results.value(query, 0).unwrap_or(0.0);
        if metric.higher_is_better() { value } else { -value }
    };
    queries.sort_by(|one, other| goodness(*one).total_cmp(&goodness(*other)));
    queries.truncate(count);
    queries
}

#[cfg(test)]
mod tests {
    use super::super::results::QueryResult;
    use super::*;

    fn results(queries: &[(&str, usize, usize, Option<f64>)]) -> Results {
        let mut results = Results::new(1);
        for (name, documents, relevant, value) in queries {
            let (documents, relevant) = (*documents, *relevant);
            results.push(&QueryResult { name, documents, relevant, first_row: 0, values: &[*value] });
        }
        results
    }

    const NDCG: Metric = Metric::Ndcg(Some(10));

    #[test]
    fn empty_queries_are_counted_and_can_be_left_out() {
        let results = results(&[
            ("a", 3, 1, Some(0.5)),
            ("b", 2, 0, Some(0.0)),
            ("c", 1, 1, Some(1.0)),
            ("d", 1, 0, None),
        ]);
        let summary = Summary::of(&results, &[NDCG], 1);
        assert_eq!((summary.rows, summary.queries, summary.empty), (7, 4, 2));
        let metric = &summary.metrics[0];
        assert_eq!((metric.mean, metric.counted, metric.mean_without_empty), (Some(0.5), 3, Some(0.75)));
        assert_eq!(summary.worst, [0]);
    }

    #[test]
    fn an_error_is_a_mean_over_rows_and_worst_when_high() {
        let results = results(&[("a", 3, 1, Some(1.0)), ("b", 1, 1, Some(3.0))]);
        let summary = Summary::of(&results, &[Metric::Rmse], 2);
        assert_eq!(summary.metrics[0].mean, Some((12.0_f64 / 4.0).sqrt()));
        assert_eq!(summary.worst, [1, 0]);
    }

    #[test]
    fn percentiles_lie_between_neighbours_in_proportion() {
        assert_eq!(percentiles((0..=20).rev().map(f64::from).collect()), Some([1.0, 5.0, 10.0, 15.0, 19.0]));
        assert_eq!(percentiles(vec![1.0, 0.0]), Some([0.05, 0.25, 0.5, 0.75, 0.95]));
        assert_eq!(percentiles(vec![0.25]), Some([0.25; 5]));
        assert_eq!(percentiles(Vec::new()), None);
    }

    #[test]
    fn segments_are_in_order_and_those_without_a_value_last() {
        let mut results = results(&[("a", 3, 1, Some(0.5)), ("b", 2, 0, Some(0.0)), ("c", 1, 1, Some(1.0))]);
        results.segments = vec![Some("x".to_owned()), None, Some("b".to_owned())];
        let segments = SegmentSummary::of(&results, &[NDCG]);
        let found: Vec<_> =
            segments.iter().map(|segment| (segment.segment.as_deref(), segment.means[0])).collect();
        assert_eq!(found, [(Some("b"), Some(1.0)), (Some("x"), Some(0.5)), (None, Some(0.0))]);
        assert_eq!((segments[2].queries, segments[2].empty, segments[2].rows), (1, 1, 2));
    }
}
