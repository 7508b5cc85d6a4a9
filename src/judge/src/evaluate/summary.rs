//! Summarises the results of all queries: means, percentiles, worst queries, and means per segment (group of
//! queries).

use super::results::Results;
use planetree_metric::{Mean, Metric};
use std::collections::BTreeMap;

/// Percentiles that a summary contains.
pub const PERCENTILES: [u32; 5] = [5, 25, 50, 75, 95];

/// Summary of one metric over all queries.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSummary {
    /// The metric.
    pub metric: Metric,
    /// Mean over the counted queries; `None` if there are none. A query is counted unless the rules for the metric
    /// exclude it. For a pooled metric, its value over the documents of all queries; `None` if it is undefined.
    pub mean: Option<f64>,
    /// Number of counted queries; all queries for a pooled metric that is defined.
    pub counted: usize,
    /// Mean over the counted queries that have relevant documents; `None` if there are none.
    pub mean_without_empty: Option<f64>,
    /// Values at [`PERCENTILES`], linearly interpolated; `None` if no query is counted.
    pub percentiles: Option<[f64; 5]>,
}

/// Summary of all metrics over all queries.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationSummary {
    /// Number of ranked documents.
    pub rows: u64,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries without relevant documents.
    pub empty: usize,
    /// Number of ranked queries without judgments, which are skipped.
    pub unjudged: u64,
    /// Number of judged queries without ranked documents.
    pub unranked: u64,
    /// Summary of each metric, in the order of the metrics.
    pub metrics: Vec<MetricSummary>,
    /// Indices of the queries with the worst values of the first metric, the worst first. Queries without relevant
    /// documents are left out.
    pub worst: Vec<usize>,
}

/// The summary of one segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SegmentSummary {
    /// Value of the column that defines the segments; `None` for queries without a value.
    pub segment: Option<String>,
    /// Number of ranked documents.
    pub rows: u64,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries without relevant documents.
    pub empty: usize,
    /// Mean of each metric; `None` if no query is counted.
    pub means: Vec<Option<f64>>,
}

impl EvaluationSummary {
    /// Summarises results, and lists up to `worst` of the worst queries.
    pub fn of(results: &Results, metrics: &[Metric], worst: usize) -> Self {
        let is_empty = |query: &usize| results.relevant[*query] == 0;
        let all = || 0..results.queries();
        let of_metric = |(column, metric): (usize, &Metric)| MetricSummary {
            metric: *metric,
            mean: mean(results, column, metric, all()),
            counted: match metric.is_pooled() {
                true => results.pooled(metric, all()).map_or(0, |_| results.queries()),
                false => results.column(column).flatten().count(),
            },
            mean_without_empty: mean(results, column, metric, all().filter(|query| !is_empty(query))),
            percentiles: percentiles(results.column(column).flatten().collect()),
        };
        EvaluationSummary {
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
    /// Summarises every segment. Segments are sorted by name; queries without a segment come last.
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
                .map(|(column, metric)| mean(results, column, metric, queries.iter().copied()))
                .collect(),
        };
        segments.into_iter().map(of_segment).collect()
    }
}

/// Returns the mean of a metric over those of the given queries that are not excluded from the mean.
fn mean(
    results: &Results,
    column: usize,
    metric: &Metric,
    queries: impl Iterator<Item = usize>,
) -> Option<f64> {
    if metric.is_pooled() {
        return results.pooled(metric, queries);
    }
    let counted = queries
        .filter_map(|query| Some((results.value(query, column)?, f64::from(results.documents[query]))));
    mean_of(*metric, counted)
}

/// Returns the mean of a metric over queries. For each query, `queries` contains its value and its number of
/// documents.
pub fn mean_of(metric: Metric, queries: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut mean = Mean::new(metric);
    for (value, documents) in queries {
        match metric {
            // RMSE is a mean over rows: each query contributes its mean squared error once per document.
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
        let position = f64::from(percent) / 100.0 * last as f64;
        let (below, fraction) = (position.floor() as usize, position.fract());
        let above = values[(below + 1).min(last)];
        values[below] + (above - values[below]) * fraction
    }))
}

/// Returns the `count` worst queries. The sort is stable, so of two queries with equal values the earlier one comes
/// first.
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
    use planetree_metric::{Convention, QueryRows};

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
    fn empty_queries_are_counted_and_excluded_from_the_second_mean() {
        let results = results(&[
            ("a", 3, 1, Some(0.5)),
            ("b", 2, 0, Some(0.0)),
            ("c", 1, 1, Some(1.0)),
            ("d", 1, 0, None),
        ]);
        let summary = EvaluationSummary::of(&results, &[NDCG], 1);
        assert_eq!((summary.rows, summary.queries, summary.empty), (7, 4, 2));
        let metric = &summary.metrics[0];
        assert_eq!((metric.mean, metric.counted, metric.mean_without_empty), (Some(0.5), 3, Some(0.75)));
        assert_eq!(summary.worst, [0]);
    }

    #[test]
    fn rmse_is_a_mean_over_rows_and_worst_when_high() {
        let results = results(&[("a", 3, 1, Some(1.0)), ("b", 1, 1, Some(3.0))]);
        let summary = EvaluationSummary::of(&results, &[Metric::Rmse], 2);
        assert_eq!(summary.metrics[0].mean, Some((12.0_f64 / 4.0).sqrt()));
        assert_eq!(summary.worst, [1, 0]);
    }

    #[test]
    fn pooled_metrics_use_the_documents_of_the_queries() {
        let metric = Metric::AucPooled;
        let queries = [([1.0, 0.0], [0.9, 0.1]), ([0.0, 0.0], [2.0, 3.0]), ([1.0, 0.0], [0.0, 0.5])];
        let mut results = Results::new(1);
        for (number, (labels, scores)) in queries.iter().enumerate() {
            let relevant = usize::from(labels[0] > 0.0);
            let name = &["c", "b", "a"][number];
            let first_row = 10 - number as u64;
            results.push(&QueryResult { name, documents: 2, relevant, first_row, values: &[None] });
            let rows = QueryRows { labels, scores, documents: None, judged: None };
            results.pool.add(&rows, &Convention::default(), 1.0);
        }
        results.segments = vec![Some("x".to_owned()), Some("x".to_owned()), Some("y".to_owned())];
        for results in [&results, &results.in_input_order()] {
            let summary = EvaluationSummary::of(results, &[metric], 3);
            let all = &summary.metrics[0];
            assert_eq!((all.mean, all.mean_without_empty, all.counted), (Some(0.25), Some(0.5), 3));
            assert_eq!((all.percentiles, summary.worst.len()), (None, 0));
            let segments = SegmentSummary::of(results, &[metric]);
            let means: Vec<_> = segments.iter().map(|segment| segment.means[0]).collect();
            assert_eq!(means, [Some(1.0 / 3.0), Some(0.0)]);
        }
    }

    #[test]
    fn percentiles_are_interpolated() {
        assert_eq!(percentiles((0..=20).rev().map(f64::from).collect()), Some([1.0, 5.0, 10.0, 15.0, 19.0]));
        assert_eq!(percentiles(vec![1.0, 0.0]), Some([0.05, 0.25, 0.5, 0.75, 0.95]));
        assert_eq!(percentiles(vec![0.25]), Some([0.25; 5]));
        assert_eq!(percentiles(Vec::new()), None);
    }

    #[test]
    fn segments_are_sorted_and_missing_values_come_last() {
        let mut results = results(&[("a", 3, 1, Some(0.5)), ("b", 2, 0, Some(0.0)), ("c", 1, 1, Some(1.0))]);
        results.segments = vec![Some("x".to_owned()), None, Some("b".to_owned())];
        let segments = SegmentSummary::of(&results, &[NDCG]);
        let found: Vec<_> =
            segments.iter().map(|segment| (segment.segment.as_deref(), segment.means[0])).collect();
        assert_eq!(found, [(Some("b"), Some(1.0)), (Some("x"), Some(0.5)), (None, Some(0.0))]);
        assert_eq!((segments[2].queries, segments[2].empty, segments[2].rows), (1, 1, 2));
    }
}
