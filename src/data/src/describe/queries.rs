//! Computes summary statistics of queries, labels and documents.

use arrow::array::{Array, Float32Array, StringArray};
use std::collections::BTreeMap;
use std::ops::Range;

/// Summary of queries. Summaries of parts of the data can be merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuerySummary {
    /// For each number of documents, the number of queries with that many documents.
    pub sizes: BTreeMap<u64, u64>,
    /// For each label, the number of rows. The key is the bit pattern of the label. The bit patterns have the same
    /// order as the labels, because labels are not negative.
    labels: BTreeMap<u32, u64>,
    /// Number of rows without a label.
    pub unlabelled: u64,
    /// Number of queries with several documents in which all known labels are equal.
    pub one_label: u64,
    /// Number of queries without a label above 0.
    pub empty: u64,
    /// Number of documents whose id already occurs earlier in the same query.
    pub repeated_ids: u64,
    /// Number of rows that equal a previous row of the same query in every feature.
    pub repeated_rows: u64,
}

impl QuerySummary {
    /// Adds the query that consists of the given rows.
    pub(crate) fn add_query(
        &mut self,
        rows: Range<usize>,
        labels: &Float32Array,
        documents: &StringArray,
        row_hashes: &[u64],
    ) {
        *self.sizes.entry(rows.len() as u64).or_default() += 1;
        let mut distinct: Vec<u32> = Vec::new();
        let mut relevant = false;
        for row in rows.clone() {
            if labels.is_null(row) {
                self.unlabelled += 1;
                continue;
            }
            let bits = labels.value(row).to_bits();
            *self.labels.entry(bits).or_default() += 1;
            relevant |= labels.value(row) > 0.0;
            if !distinct.contains(&bits) && distinct.len() < 2 {
                distinct.push(bits);
            }
        }
        self.one_label += u64::from(distinct.len() == 1 && rows.len() > 1);
        self.empty += u64::from(!relevant);
        let ids = rows.clone().filter(|row| documents.is_valid(*row)).map(|row| documents.value(row));
        self.repeated_ids += repeated(ids.collect());
        self.repeated_rows += repeated(row_hashes[rows].to_vec());
    }

    /// Merges the summary of another part of the data into this one.
    pub fn merge(&mut self, other: &QuerySummary) {
        for (size, count) in &other.sizes {
            *self.sizes.entry(*size).or_default() += count;
        }
        for (label, count) in &other.labels {
            *self.labels.entry(*label).or_default() += count;
        }
        self.unlabelled += other.unlabelled;
        self.one_label += other.one_label;
        self.empty += other.empty;
        self.repeated_ids += other.repeated_ids;
        self.repeated_rows += other.repeated_rows;
    }

    /// Returns the number of queries.
    pub fn queries(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// Returns a percentile of the number of documents per query: the smallest number that at least the fraction
    /// `share` of the queries does not exceed.
    pub fn size_percentile(&self, share: f64) -> u64 {
        let rank = (share * self.queries() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (size, count) in &self.sizes {
            seen += count;
            if seen >= rank {
                return *size;
            }
        }
        0
    }

    /// Returns the labels in ascending order, each with its number of rows.
    pub fn labels(&self) -> Vec<(f32, u64)> {
        self.labels.iter().map(|(bits, count)| (f32::from_bits(*bits), *count)).collect()
    }

    /// Returns warnings about properties of the queries that may harm training.
    pub fn warnings(&self) -> Vec<String> {
        let single = self.sizes.get(&1).copied().unwrap_or(0);
        let queries = self.queries();
        [
            (
                self.empty,
                format!("{} of {queries} queries have no relevant document (no label above 0)", self.empty),
            ),
            (
                self.one_label,
                format!(
                    "{} of {queries} queries have only one distinct label, so they carry no information about the order",
                    self.one_label
                ),
            ),
            (single, format!("{single} of {queries} queries have a single document")),
            (self.unlabelled, format!("{} rows have no label", self.unlabelled)),
            (
                self.repeated_ids,
                format!(
                    "{} documents share their id with another document of the same query",
                    self.repeated_ids
                ),
            ),
            (
                self.repeated_rows,
                format!("{} rows equal another row of the same query in every feature", self.repeated_rows),
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, warning)| warning)
        .collect()
    }
}

/// Returns how many elements are equal to an earlier element.
fn repeated<T: Ord>(mut all: Vec<T>) -> u64 {
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    (count - all.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_counted_and_suspicious_ones_reported() {
        let labels = Float32Array::from(vec![Some(0.0), Some(0.0), Some(2.0), Some(0.0), None]);
        let documents = StringArray::from(vec![Some("a"), Some("a"), Some("a"), None, None]);
        let mut summary = QuerySummary::default();
        summary.add_query(0..2, &labels, &documents, &[7, 7, 1, 2, 3]);
        let mut rest = QuerySummary::default();
        rest.add_query(2..4, &labels, &documents, &[7, 7, 1, 2, 3]);
        rest.add_query(4..5, &labels, &documents, &[7, 7, 1, 2, 3]);
        summary.merge(&rest);
        assert_eq!(summary.queries(), 3);
        assert_eq!((summary.one_label, summary.empty, summary.unlabelled), (1, 2, 1));
        assert_eq!((summary.repeated_ids, summary.repeated_rows), (1, 1));
        assert_eq!(summary.labels(), [(0.0, 3), (2.0, 1)]);
        assert_eq!((summary.size_percentile(0.5), summary.size_percentile(0.01)), (2, 1));
        assert_eq!(summary.warnings().len(), 6);
    }
}
