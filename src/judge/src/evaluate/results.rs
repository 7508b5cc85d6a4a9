//! Stores the results of all queries by column.

use super::overlap::Overlap;
use planetree_metric::{Metric, Pool};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_128;

/// Results of several queries, stored by column. Results of consecutive parts of the input can be appended to each
/// other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Number of metrics.
    width: usize,
    names: String,
    /// End of each query's name in `names`, in bytes.
    ends: Vec<usize>,
    /// Number of ranked documents of each query.
    pub documents: Vec<u32>,
    /// Number of relevant documents of each query.
    pub relevant: Vec<u32>,
    /// Number of each query's first row in the input.
    first_rows: Vec<u64>,
    /// Values of all metrics, query by query; NaN if the query is excluded from the mean of the metric.
    values: Vec<f64>,
    /// DCG of each query, if requested.
    pub dcg: Vec<f64>,
    /// Ideal DCG of each query, if requested.
    pub ideal_dcg: Vec<f64>,
    /// The segment of each query, if requested.
    pub segments: Vec<Option<String>>,
    /// The ranked documents of all queries in order, if a metric is pooled.
    pub pool: Pool,
    /// The ranking as lines of a TREC run, if requested.
    pub run: Vec<u8>,
    /// Number of ranked rows.
    pub rows: u64,
    /// Number of queries without judgments, which are skipped.
    pub unjudged: u64,
    /// Number of queries with judgments but no ranked documents.
    pub unranked: u64,
    /// What the ranking and separate judgments have in common. It is not serialised, because such rankings are evaluated in
    /// one process.
    #[serde(skip)]
    pub overlap: Overlap,
    /// Whether the model was trained on the ranked rows. Only the driver knows this, so it is not serialised.
    #[serde(skip)]
    pub seen_in_training: bool,
}

/// The results of one query.
pub struct QueryResult<'a> {
    /// Name of the query.
    pub name: &'a str,
    /// Number of ranked documents.
    pub documents: usize,
    /// Number of relevant documents.
    pub relevant: usize,
    /// Number of the query's first row in the input.
    pub first_row: u64,
    /// Value of each metric; `None` if the query is excluded from the mean.
    pub values: &'a [Option<f64>],
}

impl Results {
    /// Creates empty results for `width` metrics.
    pub fn new(width: usize) -> Self {
        Results { width, ..Results::default() }
    }

    /// Returns the number of queries.
    pub fn queries(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of metrics.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the name of a query.
    pub fn name(&self, query: usize) -> &str {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.names[start..self.ends[query]]
    }

    /// Returns the names of all queries, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        (0..self.queries()).map(|query| self.name(query))
    }

    /// Returns the value of a metric for a query; `None` if the query is excluded from the mean.
    pub fn value(&self, query: usize, metric: usize) -> Option<f64> {
        Some(self.values[query * self.width + metric]).filter(|value| !value.is_nan())
    }

    /// Returns the values of a metric for all queries.
    pub fn column(&self, metric: usize) -> impl Iterator<Item = Option<f64>> {
        (0..self.queries()).map(move |query| self.value(query, metric))
    }

    /// Appends the results of one query.
    pub fn push(&mut self, query: &QueryResult<'_>) {
        self.names.push_str(query.name);
        self.ends.push(self.names.len());
        self.documents.push(u32::try_from(query.documents).unwrap_or(u32::MAX));
        self.relevant.push(u32::try_from(query.relevant).unwrap_or(u32::MAX));
        self.first_rows.push(query.first_row);
        self.values.extend(query.values.iter().map(|value| value.unwrap_or(f64::NAN)));
        self.rows += query.documents as u64;
    }

    /// Appends the results of the next part of the input.
    pub fn append(&mut self, mut other: Results) {
        let shift = self.names.len();
        self.names.push_str(&other.names);
        self.ends.extend(other.ends.iter().map(|end| shift + end));
        self.documents.append(&mut other.documents);
        self.relevant.append(&mut other.relevant);
        self.first_rows.append(&mut other.first_rows);
        self.values.append(&mut other.values);
        self.dcg.append(&mut other.dcg);
        self.ideal_dcg.append(&mut other.ideal_dcg);
        self.segments.append(&mut other.segments);
        self.pool.append(&other.pool);
        self.rows += other.rows;
        self.unjudged += other.unjudged;
        self.unranked += other.unranked;
        self.overlap.append(other.overlap);
    }

    /// Whether the lengths of all columns are consistent. This is checked for results from other processes.
    pub fn is_valid(&self) -> bool {
        let queries = self.queries();
        let fits = |length: usize| length == 0 || length == queries;
        let names_fit = self.ends.is_sorted()
            && self.ends.last().copied().unwrap_or_default() == self.names.len()
            && self.ends.iter().all(|end| self.names.is_char_boundary(*end));
        names_fit
            && [&self.documents, &self.relevant].iter().all(|it| it.len() == queries)
            && self.first_rows.len() == queries
            && Some(self.values.len()) == queries.checked_mul(self.width)
            && [self.dcg.len(), self.ideal_dcg.len(), self.segments.len()].into_iter().all(fits)
            && (self.pool.is_empty()
                || self.pool.len() as u64
                    == self.documents.iter().map(|count| u64::from(*count)).sum::<u64>())
    }

    /// Returns the value of a pooled metric over the documents of some queries; `None` if it is undefined.
    pub(crate) fn pooled(&self, metric: &Metric, queries: impl Iterator<Item = usize>) -> Option<f64> {
        self.pool_of(queries).value(metric)
    }

    /// Returns the documents of some queries.
    fn pool_of(&self, queries: impl Iterator<Item = usize>) -> Pool {
        let ends = self.documents.iter().scan(0, |end, documents| {
            *end += *documents as usize;
            Some(*end)
        });
        let ends: Vec<usize> = ends.take_while(|end| *end <= self.pool.len()).collect();
        self.pool.select(queries.filter_map(|query| {
            let end = *ends.get(query)?;
            Some(end - self.documents[query] as usize..end)
        }))
    }

    /// Returns the same results with the queries in the order of their first rows.
    pub(crate) fn in_input_order(&self) -> Results {
        let mut order: Vec<usize> = (0..self.queries()).collect();
        order.sort_by_key(|query| self.first_rows[*query]);
        let mut sorted = Results::new(self.width);
        sorted.pool = self.pool_of(order.iter().copied());
        for query in order {
            let values: Vec<_> = (0..self.width).map(|metric| self.value(query, metric)).collect();
            sorted.push(&QueryResult {
                name: self.name(query),
                documents: self.documents[query] as usize,
                relevant: self.relevant[query] as usize,
                first_row: self.first_rows[query],
                values: &values,
            });
            sorted.dcg.extend(self.dcg.get(query));
            sorted.ideal_dcg.extend(self.ideal_dcg.get(query));
            sorted.segments.extend(self.segments.get(query).cloned());
        }
        (sorted.unjudged, sorted.unranked) = (self.unjudged, self.unranked);
        sorted.overlap = self.overlap.clone();
        sorted
    }
}

/// The queries seen so far, identified by hashes of their names.
#[derive(Default)]
pub struct SeenQueries(HashSet<u128>);

impl SeenQueries {
    /// Records a query. Returns `true` if the query was not seen before.
    pub(crate) fn is_new(&mut self, name: &str) -> bool {
        self.0.insert(xxh3_128(name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::compact::{from_bytes, to_bytes};

    fn push(results: &mut Results, name: &str, first_row: u64, values: &[Option<f64>]) {
        let query = QueryResult { name, documents: 3, relevant: 1, first_row, values };
        results.push(&query);
        results.dcg.push(first_row as f64);
    }

    #[test]
    fn appended_results_are_sorted_into_input_order() {
        let mut first = Results::new(2);
        push(&mut first, "b", 9, &[Some(0.5), None]);
        push(&mut first, "", 3, &[Some(0.25), Some(1.0)]);
        let mut second = Results::new(2);
        push(&mut second, "long", 6, &[None, Some(0.0)]);
        first.append(second);
        assert_eq!(first.names().collect::<Vec<_>>(), ["b", "", "long"]);
        assert_eq!(first.column(1).collect::<Vec<_>>(), [None, Some(1.0), Some(0.0)]);
        let sorted = first.in_input_order();
        assert_eq!(sorted.names().collect::<Vec<_>>(), ["", "long", "b"]);
        assert_eq!(sorted.column(0).collect::<Vec<_>>(), [Some(0.25), None, Some(0.5)]);
        assert_eq!((sorted.dcg, sorted.rows), (vec![3.0, 6.0, 9.0], 9));
    }

    #[test]
    fn results_round_trip_and_truncation_is_an_error() {
        let mut results = Results::new(2);
        push(&mut results, "b", 9, &[Some(0.5), Some(-0.0)]);
        push(&mut results, "ü", 300, &[Some(0.25), Some(1.0)]);
        results.segments = vec![None, Some("de".to_owned())];
        (results.run, results.unjudged, results.unranked) = (b"b Q0 d 1".to_vec(), 3, 4);
        for results in [results, Results::new(1)] {
            let bytes = to_bytes(&results);
            assert_eq!(from_bytes::<Results>(&bytes).unwrap(), results);
            assert!(results.is_valid());
            for cut in 0..bytes.len() {
                assert!(from_bytes::<Results>(&bytes[..cut]).is_err());
            }
        }
        assert!(!Results { values: vec![0.5], ..Results::new(2) }.is_valid());
    }
}
