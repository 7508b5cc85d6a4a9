//! Stores the lists of one partition: the documents of each node, and the ties of every list, ordered by score. A
//! list is a query with its documents, and a tie consists of the documents of a list that are in the same leaf. The
//! worth of a list is its expected NDCG in integer units.
//!
//! All documents of a query are in the same partition, so a partition can rank its lists alone. The results of several
//! partitions can be added.

use super::list_measure::{ListMeasure, MeasureVariant};
use super::list_scores::ListScores;
use super::measure::{Extent, NdcgMeasure};
use super::sums::{LabelUnits, ListSums};
use crate::bins::FeatureCodes;
use crate::tree::round;
use planetree_data::source::LabelledRows;
use std::ops::Range;

/// A document of a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListDocument {
    /// Row number in the partition.
    pub row: u32,
    /// Index of the document's list.
    pub list: u32,
    /// Gain of the document, in integer units.
    pub gain: i32,
    /// Label times weight in integer units, summed over all copies of the document in the sample.
    label: i32,
    /// Weight in integer units, summed over all copies of the document in the sample.
    weight: i32,
    /// Number of copies of the document in the sample.
    copies: u32,
}

impl ListDocument {
    /// Adds the document to the sums.
    #[inline]
    pub(super) fn add_to(&self, sums: &mut ListSums) {
        sums.labels = sums.labels.wrapping_add(i64::from(self.label));
        sums.weights = sums.weights.wrapping_add(i64::from(self.weight));
        sums.rows = sums.rows.wrapping_add(i64::from(self.copies));
    }
}

/// The documents of a list that are in one leaf, and therefore have equal scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tie {
    /// Score of the leaf.
    pub score: f64,
    /// Sum of the documents' gains.
    pub gains: i64,
    /// Number of documents.
    pub count: u32,
    /// Index of the leaf.
    pub leaf: u32,
}

/// Number and total gain of some documents of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TiePart {
    /// Number of documents.
    pub count: u32,
    /// Sum of the documents' gains.
    pub gains: i64,
}

/// Summary of the documents in a node. Summaries of several partitions can be merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodeSummary {
    /// Sums of labels, weights and rows.
    pub sums: ListSums,
    /// Lowest and highest label.
    pub labels: (f32, f32),
}

impl Default for NodeSummary {
    fn default() -> Self {
        NodeSummary { sums: ListSums::default(), labels: (f32::INFINITY, f32::NEG_INFINITY) }
    }
}

impl NodeSummary {
    /// Adds the documents of another summary.
    pub(super) fn merge(&mut self, other: &NodeSummary) {
        self.sums.add(&other.sums);
        self.labels = (self.labels.0.min(other.labels.0), self.labels.1.max(other.labels.1));
    }
}

/// A split that is applied to a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeSplit {
    /// Index of the node.
    pub node: u32,
    /// Index of the left child; the index of the right child is one higher.
    pub left: u32,
    /// Documents with at most this code go left.
    pub code: u32,
    /// Code of missing values if they go left; otherwise `None`.
    pub missing_left: Option<u32>,
    /// Scores of the left and right child.
    pub scores: [f64; 2],
}

/// The lists of one partition.
pub(super) struct Lists<'a> {
    rows: &'a LabelledRows,
    /// Documents of each node, contiguous and in row order.
    documents: Vec<ListDocument>,
    nodes: Vec<Range<usize>>,
    spare: Vec<ListDocument>,
    /// Index of the first tie of each list. A list has space for as many ties as documents.
    places: Vec<u32>,
    ties: Vec<Tie>,
    tied: Vec<u32>,
    factors: Vec<f64>,
    worths: Vec<i64>,
    perfect: i64,
    /// Number of each list's query in the dataset.
    queries: Vec<u64>,
    /// Scores of all documents, if whole lists are evaluated; `None` for NDCG.
    scores: Option<ListScores>,
}

/// Rows of a sampled query, and how often it was sampled.
struct DrawnQuery {
    rows: Range<usize>,
    copies: u32,
    /// Index of the query in the dataset.
    number: u64,
}

impl DrawnQuery {
    /// Returns the weight of the list, which is the mean weight of its rows times the number of copies.
    fn weight(&self, rows: &LabelledRows) -> f64 {
        let mean = match &rows.weights {
            None => 1.0,
            Some(weights) => {
                let weights = &weights[self.rows.clone()];
                weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / weights.len() as f64
            }
        };
        mean * f64::from(self.copies)
    }
}

/// Returns the sampled queries of a partition. `drawn` contains row numbers of the dataset.
fn drawn_queries<'a>(rows: &'a LabelledRows, drawn: &'a [u32]) -> impl Iterator<Item = DrawnQuery> + 'a {
    let place = |row: u64| drawn.partition_point(|drawn| u64::from(*drawn) < row);
    let mut drawn =
        drawn[place(rows.first)..place(rows.first + rows.len() as u64)].iter().copied().peekable();
    let queries = rows.query_bounds.windows(2).zip(rows.first_query..).filter(|(pair, _)| pair[0] < pair[1]);
    queries.filter_map(move |(pair, number)| {
        let (first, end) = (rows.first + u64::from(pair[0]), rows.first + u64::from(pair[1]));
        let mut copies = 0;
        while let Some(row) = drawn.next_if(|row| u64::from(*row) < end) {
            copies += u32::from(u64::from(row) == first);
        }
        (copies > 0).then_some(DrawnQuery { rows: pair[0] as usize..pair[1] as usize, copies, number })
    })
}

/// Returns the size and value ranges of the lists that were sampled from a partition.
pub(super) fn extent_of(rows: &LabelledRows, drawn: &[u32], variant: &MeasureVariant) -> Extent {
    let mut extent = Extent::default();
    for query in drawn_queries(rows, drawn) {
        extent.longest = extent.longest.max(query.rows.len() as u32);
        extent.lists += 1;
        extent.most_weight = extent.most_weight.max(query.weight(rows));
        let gains = rows.labels[query.rows].iter().map(|label| variant.gain_of(*label));
        extent.most_gain = gains.fold(extent.most_gain, f64::max);
    }
    extent
}

impl<'a> Lists<'a> {
    /// Creates the lists of the sampled queries of a partition, with all documents in the root.
    pub(super) fn new(
        rows: &'a LabelledRows,
        drawn: &[u32],
        measure: &ListMeasure,
        units: &LabelUnits,
    ) -> Self {
        let mut lists = Lists {
            rows,
            documents: Vec::new(),
            nodes: Vec::new(),
            spare: Vec::new(),
            places: Vec::new(),
            ties: Vec::new(),
            tied: Vec::new(),
            factors: Vec::new(),
            worths: Vec::new(),
            perfect: 0,
            queries: Vec::new(),
            scores: measure.metric().map(|metric| ListScores::new(rows.len(), metric.judge())),
        };
        let mut gains: Vec<i32> = Vec::new();
        for query in drawn_queries(rows, drawn) {
            lists.add_list(&query, &mut gains, measure, units);
        }
        lists.nodes.push(0..lists.documents.len());
        lists
    }

    fn add_list(
        &mut self,
        query: &DrawnQuery,
        gains: &mut Vec<i32>,
        measure: &ListMeasure,
        units: &LabelUnits,
    ) {
        let list = self.places.len() as u32;
        let first = self.documents.len();
        gains.clear();
        for row in query.rows.clone() {
            let label = self.rows.labels[row];
            let weight = self.rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row]));
            let gain = measure.gain_of(label);
            gains.push(gain);
            self.documents.push(ListDocument {
                row: row as u32,
                list,
                gain,
                label: units.label_of(label, weight) * query.copies as i32,
                // Positive weights become at least one unit.
                weight: round(weight * units.weight).max(i32::from(weight > 0.0)) * query.copies as i32,
                copies: query.copies,
            });
        }
        let weight = query.weight(self.rows);
        let sum = gains.iter().map(|gain| i64::from(*gain)).sum();
        let root = Tie { score: 0.0, gains: sum, count: gains.len() as u32, leaf: 0 };
        let (factor, worth) = match (measure, &mut self.scores) {
            (ListMeasure::Metric(measure), Some(scores)) => {
                let labels = &self.rows.labels;
                let factor = measure.factor_of(scores.judge(), &labels[query.rows.clone()], weight);
                scores.add_list(query.rows.clone());
                (factor, if factor == 0.0 { 0 } else { scores.worth(list, labels, factor) })
            }
            (ListMeasure::Ndcg(measure), _) => {
                let factor = measure.factor_of(gains, weight);
                (factor, worth_of(std::slice::from_ref(&root), factor, measure))
            }
            (ListMeasure::Metric(_), None) => unreachable!("metrics of whole lists have scores"),
        };
        self.perfect += measure.perfect(weight);
        self.worths.push(worth);
        self.factors.push(factor);
        self.queries.push(query.number);
        self.places.push(first as u32);
        self.ties.resize(self.documents.len(), root);
        self.tied.push(1);
    }

    /// Returns the documents of a node, list by list.
    #[inline]
    pub(super) fn documents(&self, node: u32) -> &[ListDocument] {
        &self.documents[self.nodes[node as usize].clone()]
    }

    /// Returns the rows of a node as row numbers of the dataset. Copies are repeated.
    pub(super) fn rows(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.rows.first as u32; // training data has fewer than 2^28 rows
        let documents = self.documents(node).iter();
        documents
            .flat_map(move |document| std::iter::repeat_n(first + document.row, document.copies as usize))
    }

    /// Returns a summary of the documents in a node.
    pub(super) fn summary(&self, node: u32) -> NodeSummary {
        let mut summary = NodeSummary::default();
        for document in self.documents(node) {
            document.add_to(&mut summary.sums);
            let label = self.rows.labels[document.row as usize];
            summary.labels = (summary.labels.0.min(label), summary.labels.1.max(label));
        }
        summary
    }

    /// Returns the number of a list's query in the dataset.
    #[inline]
    pub(super) fn query(&self, list: u32) -> u64 {
        self.queries[list as usize]
    }

    /// Returns the labels and the current scores of a list, and its first row, if whole lists are evaluated.
    pub(super) fn scored(&self, list: u32) -> Option<(&[f32], &[f64], u32)> {
        let scores = self.scores.as_ref()?;
        let rows = scores.rows(list);
        Some((&self.rows.labels[rows.clone()], scores.of_list(list), rows.start as u32))
    }

    /// Returns the total worth of all lists.
    pub(super) fn worth(&self) -> i64 {
        self.worths.iter().sum()
    }

    /// Returns the total worth that all lists would have if ranked ideally. It includes lists without relevant
    /// documents, although their actual worth is always 0.
    pub(super) fn perfect(&self) -> i64 {
        self.perfect
    }

    /// Returns the factor that converts the gains of a list to worth; 0 if the list has no relevant documents.
    #[inline]
    pub(super) fn factor(&self, list: u32) -> f64 {
        self.factors[list as usize]
    }

    /// Returns the current worth of a list.
    #[inline]
    pub(super) fn worth_of(&self, list: u32) -> i64 {
        self.worths[list as usize]
    }

    /// Returns the groups of tied documents in a list, in descending order of score. Groups of different leaves that
    /// happen to have the same score are adjacent.
    #[inline]
    pub(super) fn ties(&self, list: u32) -> &[Tie] {
        let first = self.places[list as usize] as usize;
        &self.ties[first..first + self.tied[list as usize] as usize]
    }

    /// Applies a split: moves documents to the children and updates the ranking of their lists. Returns the change of
    /// the total worth. If `column` is `None`, the feature is constant, and all documents have code 0.
    pub(super) fn split(
        &mut self,
        made: &MadeSplit,
        column: Option<&FeatureCodes<'_>>,
        measure: &ListMeasure,
    ) -> i64 {
        let node = self.nodes[made.node as usize].clone();
        let middle = node.start + self.divide(made, column);
        let left = made.left as usize;
        self.nodes.resize(self.nodes.len().max(left + 2), 0..0);
        self.nodes[left] = node.start..middle;
        self.nodes[left + 1] = middle..node.end;
        if let Some(scores) = &mut self.scores {
            for (range, score) in [node.start..middle, middle..node.end].into_iter().zip(made.scores) {
                self.documents[range].iter().for_each(|document| scores.set(document.row, score));
            }
        }
        let (mut lefts, mut rights) = (node.start, middle);
        let mut grown = 0;
        loop {
            let next_left = self.documents[lefts..middle].first().map(|document| document.list);
            let next_right = self.documents[rights..node.end].first().map(|document| document.list);
            let Some(list) = [next_left, next_right].into_iter().flatten().min() else { return grown };
            let of_left = part_of(&self.documents[lefts..middle], list);
            let of_right = part_of(&self.documents[rights..node.end], list);
            lefts += of_left.count as usize;
            rights += of_right.count as usize;
            grown += self.rerank(list, made, [of_left, of_right], measure);
        }
    }

    /// Moves the documents that go left to the front, keeping the order on both sides. Returns the number of
    /// documents that go left.
    fn divide(&mut self, made: &MadeSplit, column: Option<&FeatureCodes<'_>>) -> usize {
        let documents = &mut self.documents[self.nodes[made.node as usize].clone()];
        self.spare.clear();
        let mut left = 0;
        for place in 0..documents.len() {
            let document = documents[place];
            let code = column.map_or(0, |column| column.code(document.row));
            if code <= made.code || Some(code) == made.missing_left {
                documents[left] = document;
                left += 1;
            } else {
                self.spare.push(document);
            }
        }
        documents[left..].copy_from_slice(&self.spare);
        left
    }

    /// Replaces a tie by its two parts, each at the position of its new score. Returns the change of the list's worth.
    fn rerank(&mut self, number: u32, made: &MadeSplit, parts: [TiePart; 2], measure: &ListMeasure) -> i64 {
        let list = number as usize;
        let mut tied = self.tied[list] as usize;
        let ties = &mut self.ties[self.places[list] as usize..];
        if let Some(old) = ties[..tied].iter().position(|tie| tie.leaf == made.node) {
            ties.copy_within(old + 1..tied, old);
            tied -= 1;
        }
        for ((part, score), leaf) in parts.into_iter().zip(made.scores).zip(made.left..) {
            if part.count > 0 {
                let place = ties[..tied].partition_point(|tie| tie.score >= score);
                ties.copy_within(place..tied, place + 1);
                ties[place] = Tie { score, gains: part.gains, count: part.count, leaf };
                tied += 1;
            }
        }
        self.tied[list] = tied as u32;
        if self.factors[list] == 0.0 {
            return 0;
        }
        let worth = match (measure, &mut self.scores) {
            (ListMeasure::Metric(_), Some(scores)) => {
                scores.worth(number, &self.rows.labels, self.factors[list])
            }
            (ListMeasure::Ndcg(measure), _) => worth_of(&ties[..tied], self.factors[list], measure),
            (ListMeasure::Metric(_), None) => unreachable!("metrics of whole lists have scores"),
        };
        worth - std::mem::replace(&mut self.worths[list], worth)
    }
}

/// Counts the leading documents that belong to a list, and sums their gains.
#[inline]
fn part_of(documents: &[ListDocument], list: u32) -> TiePart {
    let mut part = TiePart::default();
    for document in documents.iter().take_while(|document| document.list == list) {
        part.count += 1;
        part.gains += i64::from(document.gain);
    }
    part
}

/// Computes the worth of a list from its ties, which must be sorted. Ties with equal scores are treated as one tie.
pub(super) fn worth_of(ties: &[Tie], factor: f64, measure: &NdcgMeasure) -> i64 {
    let (mut start, mut worth) = (0, 0);
    for level in ties.chunk_by(|one, other| one.score == other.score) {
        let gains = level.iter().map(|tie| tie.gains).sum();
        let count: u32 = level.iter().map(|tie| tie.count).sum();
        worth += measure.worth(measure.mean_gain(gains, count, factor), start, count);
        start += count;
    }
    worth
}
