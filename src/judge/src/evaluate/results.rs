//! Results of all queries, stored by column.

use planetree_base::wire::{WireReader, WireWriter, malformed};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_128;

/// Results of several queries, stored by column. Results of consecutive parts of the input can be appended to each
/// other.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Values of all metrics, query by query; NaN if the query is excluded from the mean.
    values: Vec<f64>,
    /// DCG of each query, if requested.
    pub dcg: Vec<f64>,
    /// Ideal DCG of each query, if requested.
    pub ideal_dcg: Vec<f64>,
    /// The segment of each query, if requested.
    pub segments: Vec<Option<String>>,
    /// The ranking as lines of a TREC run, if requested.
    pub run: Vec<u8>,
    /// Number of ranked rows.
    pub rows: u64,
    /// Number of queries without judgments, which are skipped.
    pub unjudged: u64,
    /// Number of queries with judgments but no ranked documents.
    pub unranked: u64,
    /// Whether the model was trained on the ranked rows.
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
        self.rows += other.rows;
        self.unjudged += other.unjudged;
        self.unranked += other.unranked;
    }

    /// Serialises the results.
    pub fn write(&self, writer: &mut WireWriter) {
        writer.count(self.width as u64);
        writer.text(&self.names);
        writer.count(self.ends.len() as u64);
        let mut before = 0;
        for query in 0..self.queries() {
            writer.count((self.ends[query] - before) as u64);
            before = self.ends[query];
            writer.count(self.documents[query].into());
            writer.count(self.relevant[query].into());
            writer.count(self.first_rows[query]);
        }
        for values in [&self.values, &self.dcg, &self.ideal_dcg] {
            writer.count(values.len() as u64);
            values.iter().for_each(|value| writer.float(*value));
        }
        writer.count(self.segments.len() as u64);
        for segment in &self.segments {
            writer.count(u64::from(segment.is_some()));
            writer.text(segment.as_deref().unwrap_or_default());
        }
        writer.list(&self.run);
        [self.rows, self.unjudged, self.unranked].into_iter().for_each(|count| writer.count(count));
    }

    /// Deserialises results that [`Results::write`] wrote.
    pub fn read(reader: &mut WireReader<'_>) -> planetree_base::error::Result<Self> {
        let mut results = Results::new(reader.count()? as usize);
        results.names = reader.text()?;
        let queries = reader.length(4)?;
        let mut end = 0usize;
        for _ in 0..queries {
            end = end.saturating_add(reader.count()? as usize);
            results.ends.push(end);
            results.documents.push(reader.count()? as u32);
            results.relevant.push(reader.count()? as u32);
            results.first_rows.push(reader.count()?);
        }
        for values in [&mut results.values, &mut results.dcg, &mut results.ideal_dcg] {
            let length = reader.length(8)?;
            *values = (0..length).map(|_| reader.float()).collect::<planetree_base::error::Result<_>>()?;
        }
        for _ in 0..reader.length(2)? {
            let is_known = reader.count()? == 1;
            let text = reader.text()?;
            results.segments.push(is_known.then_some(text));
        }
        results.run = reader.list()?.to_vec();
        (results.rows, results.unjudged, results.unranked) =
            (reader.count()?, reader.count()?, reader.count()?);
        let gains_fit =
            [&results.dcg, &results.ideal_dcg].iter().all(|it| it.is_empty() || it.len() == queries);
        let segments_fit = results.segments.is_empty() || results.segments.len() == queries;
        let values_fit = Some(results.values.len()) == queries.checked_mul(results.width);
        let names_fit =
            end == results.names.len() && results.ends.iter().all(|end| results.names.is_char_boundary(*end));
        if gains_fit && segments_fit && values_fit && names_fit { Ok(results) } else { Err(malformed()) }
    }

    /// Returns the same results with the queries in the order of their first rows.
    pub fn in_input_order(&self) -> Results {
        let mut order: Vec<usize> = (0..self.queries()).collect();
        order.sort_by_key(|query| self.first_rows[*query]);
        let mut sorted = Results::new(self.width);
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
        sorted
    }
}

/// The queries seen so far, identified by hashes of their names.
#[derive(Default)]
pub struct SeenQueries(HashSet<u128>);

impl SeenQueries {
    /// Records a query. Returns `true` if the query was not seen before.
    pub fn is_new(&mut self, name: &str) -> bool {
        self.0.insert(xxh3_128(name.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut writer = WireWriter::default();
            results.write(&mut writer);
            let bytes = writer.into_bytes();
            assert_eq!(Results::read(&mut WireReader::new(&bytes)).unwrap(), results);
            for cut in 0..bytes.len() {
                assert!(Results::read(&mut WireReader::new(&bytes[..cut])).is_err());
            }
        }
    }
}
