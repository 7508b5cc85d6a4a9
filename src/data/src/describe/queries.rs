//! The summary of a dataset's queries, labels and documents.

use arrow::array::{Array, Float32Array, StringArray};
use std::collections::BTreeMap;
use std::ops::Range;

/// What is known of the queries; summaries of parts of the data merge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuerySummary {
    /// How many queries have so many documents.
    pub sizes: BTreeMap<u64, u64>,
    /// How many rows have each label, by the label's bits (labels are not negative, so the order
    /// of the bits is that of the labels).
    labels: BTreeMap<u32, u64>,
    /// Rows without a label.
    pub unlabelled: u64,
    /// Queries with several documents that all have the same label.
    pub one_label: u64,
    /// Queries without a document of a label above 0.
    pub empty: u64,
    /// Documents whose id another document of the same query has too.
    pub repeated_ids: u64,
    /// Rows that equal another row of the same query in every feature.
    pub repeated_rows: u64,
}

impl QuerySummary {
    /// Adds a query by its rows.
    pub fn add_query(
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

    /// Adds what another part of the data has.
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

    /// How many queries there are.
    pub fn queries(&self) -> u64 {
        self.sizes.values().sum()
    }

    /// The size of a query such that a share of the queries is not larger.
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

    /// Each label and how many rows have it, ascending.
    pub fn labels(&self) -> Vec<(f32, u64)> {
        self.labels.iter().map(|(bits, count)| (f32::from_bits(*bits), *count)).collect()
    }

    /// What a user should look at before training on this.
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
                    "{} of {queries} queries have one label only, so they teach no order",
                    self.one_label
                ),
            ),
            (single, format!("{single} of {queries} queries have a single document")),
            (self.unlabelled, format!("{} rows have no label", self.unlabelled)),
            (
                self.repeated_ids,
                format!(
                    "{} documents have an id that another document of their query has too",
                    self.repeated_ids
                ),
            ),
            (
                self.repeated_rows,
                format!("{} rows equal another row of their query in every feature", self.repeated_rows),
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, warning)| warning)
        .collect()
    }
}

/// How many are equal to one before them.
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
    fn queries_are_counted_and_their_oddities_named() {
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
