//! The lists of one partition: which documents are in which node, and the ties of every list in the
//! order of their scores.
//!
//! A query is in one partition, so a partition knows the whole ranking of its lists; what it says of
//! a node adds up with what the others say.

use super::measure::{Extent, Measure, Yardstick};
use super::sums::{Sums, Units};
use crate::bins::FeatureCodes;
use crate::tree::round;
use planetree_data::source::Rows;
use std::ops::Range;

/// A document of a list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Document {
    /// Its row in the partition.
    pub row: u32,
    /// Its list.
    pub list: u32,
    /// What it is worth, in units of gain.
    pub gain: i32,
    /// Its label times its weight, in units; of all copies.
    label: i32,
    /// Its weight, in units; of all copies.
    weight: i32,
    /// How often it was drawn.
    copies: u32,
}

impl Document {
    /// Adds the document to sums.
    #[inline]
    pub fn add_to(&self, sums: &mut Sums) {
        sums.labels = sums.labels.wrapping_add(i64::from(self.label));
        sums.weights = sums.weights.wrapping_add(i64::from(self.weight));
        sums.rows = sums.rows.wrapping_add(i64::from(self.copies));
    }
}

/// The documents of a list that are in one leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tie {
    /// The leaf's score.
    pub score: f64,
    /// The sum of gains.
    pub gains: i64,
    /// How many there are.
    pub count: u32,
    /// Which leaf.
    pub leaf: u32,
}

/// Some documents of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Part {
    /// How many there are.
    pub count: u32,
    /// The sum of their gains.
    pub gains: i64,
}

/// What is known of a node's documents; parts of it merge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeSummary {
    /// Labels, weights and rows.
    pub sums: Sums,
    /// The lowest and the highest label.
    pub labels: (f32, f32),
}

impl Default for NodeSummary {
    fn default() -> Self {
        NodeSummary { sums: Sums::default(), labels: (f32::INFINITY, f32::NEG_INFINITY) }
    }
}

impl NodeSummary {
    /// Adds other documents.
    pub fn merge(&mut self, other: &NodeSummary) {
        self.sums.add(&other.sums);
        self.labels = (self.labels.0.min(other.labels.0), self.labels.1.max(other.labels.1));
    }
}

/// A split that is made.
#[derive(Debug, Clone, Copy)]
pub struct MadeSplit {
    /// Which node.
    pub node: u32,
    /// Its left child; the right one follows.
    pub left: u32,
    /// Documents with a code up to this go left.
    pub code: u32,
    /// And so do those with this one, which stands for missing values.
    pub missing_left: Option<u32>,
    /// The scores of the left and the right child.
    pub scores: [f64; 2],
}

/// The lists of one partition.
pub struct Lists<'a> {
    rows: &'a Rows,
    /// Node by node, those of a node in the order of their rows.
    documents: Vec<Document>,
    nodes: Vec<Range<usize>>,
    spare: Vec<Document>,
    /// Where the ties of each list start; a list has as many places as documents.
    places: Vec<u32>,
    ties: Vec<Tie>,
    tied: Vec<u32>,
    factors: Vec<f64>,
    worths: Vec<i64>,
    perfect: i64,
}

/// A query that was drawn: its rows, and how often.
struct DrawnQuery {
    rows: Range<usize>,
    copies: u32,
}

impl DrawnQuery {
    /// A list counts by the mean weight of its rows, as often as it was drawn.
    fn weight(&self, rows: &Rows) -> f64 {
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

/// The queries of a partition whose rows were drawn; rows have the numbers of the dataset.
fn drawn_queries<'a>(rows: &'a Rows, drawn: &'a [u32]) -> impl Iterator<Item = DrawnQuery> + 'a {
    let place = |row: u64| drawn.partition_point(|drawn| u64::from(*drawn) < row);
    let mut drawn =
        drawn[place(rows.first)..place(rows.first + rows.len() as u64)].iter().copied().peekable();
    let queries = rows.query_bounds.windows(2).filter(|pair| pair[0] < pair[1]);
    queries.filter_map(move |pair| {
        let (first, end) = (rows.first + u64::from(pair[0]), rows.first + u64::from(pair[1]));
        let mut copies = 0;
        while let Some(row) = drawn.next_if(|row| u64::from(*row) < end) {
            copies += u32::from(u64::from(row) == first);
        }
        (copies > 0).then_some(DrawnQuery { rows: pair[0] as usize..pair[1] as usize, copies })
    })
}

/// What the lists of the drawn queries of a partition will be.
pub fn extent_of(rows: &Rows, drawn: &[u32], yardstick: &Yardstick) -> Extent {
    let mut extent = Extent::default();
    for query in drawn_queries(rows, drawn) {
        extent.longest = extent.longest.max(query.rows.len() as u32);
        extent.lists += 1;
        extent.most_weight = extent.most_weight.max(query.weight(rows));
        let gains = rows.labels[query.rows].iter().map(|label| yardstick.gain.of(*label));
        extent.most_gain = gains.fold(extent.most_gain, f64::max);
    }
    extent
}

impl<'a> Lists<'a> {
    /// The lists of the drawn queries of a partition; all documents are at the root.
    pub fn new(rows: &'a Rows, drawn: &[u32], measure: &Measure, units: &Units) -> Self {
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
        };
        let mut gains: Vec<i32> = Vec::new();
        for query in drawn_queries(rows, drawn) {
            lists.add_list(&query, &mut gains, measure, units);
        }
        lists.nodes.push(0..lists.documents.len());
        lists
    }

    fn add_list(&mut self, query: &DrawnQuery, gains: &mut Vec<i32>, measure: &Measure, units: &Units) {
        let list = self.places.len() as u32;
        let first = self.documents.len();
        gains.clear();
        for row in query.rows.clone() {
            let label = self.rows.labels[row];
            let weight = self.rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row]));
            let gain = measure.gain_of(label);
            gains.push(gain);
            self.documents.push(Document {
                row: row as u32,
                list,
                gain,
                label: round(f64::from(label) * weight * units.label) * query.copies as i32,
                // What weighs anything weighs at least one unit.
                weight: round(weight * units.weight).max(i32::from(weight > 0.0)) * query.copies as i32,
                copies: query.copies,
            });
        }
        let weight = query.weight(self.rows);
        let factor = measure.factor_of(gains, weight);
        let sum = gains.iter().map(|gain| i64::from(*gain)).sum();
        let root = Tie { score: 0.0, gains: sum, count: gains.len() as u32, leaf: 0 };
        self.perfect += measure.perfect(weight);
        self.worths.push(worth_of(std::slice::from_ref(&root), factor, measure));
        self.factors.push(factor);
        self.places.push(first as u32);
        self.ties.resize(self.documents.len(), root);
        self.tied.push(1);
    }

    /// The documents of a node, list by list.
    #[inline]
    pub fn documents(&self, node: u32) -> &[Document] {
        &self.documents[self.nodes[node as usize].clone()]
    }

    /// The rows of a node, by their numbers in the dataset, each as often as it was drawn.
    pub fn rows(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.rows.first as u32; // a training has fewer than 2^28 rows
        let documents = self.documents(node).iter();
        documents
            .flat_map(move |document| std::iter::repeat_n(first + document.row, document.copies as usize))
    }

    /// What is known of a node's documents.
    pub fn summary(&self, node: u32) -> NodeSummary {
        let mut summary = NodeSummary::default();
        for document in self.documents(node) {
            document.add_to(&mut summary.sums);
            let label = self.rows.labels[document.row as usize];
            summary.labels = (summary.labels.0.min(label), summary.labels.1.max(label));
        }
        summary
    }

    /// The worth of all lists.
    pub fn worth(&self) -> i64 {
        self.worths.iter().sum()
    }

    /// What they would be worth if every list were ranked as well as can be; one without relevant
    /// documents counts, too, though it is worth nothing in any order.
    pub fn perfect(&self) -> i64 {
        self.perfect
    }

    /// What multiplies a list's gains; 0 where nothing can change.
    #[inline]
    pub fn factor(&self, list: u32) -> f64 {
        self.factors[list as usize]
    }

    /// The worth of a list as it is ranked now.
    #[inline]
    pub fn worth_of(&self, list: u32) -> i64 {
        self.worths[list as usize]
    }

    /// The ties of a list, by descending score; leaves of one score follow each other.
    #[inline]
    pub fn ties(&self, list: u32) -> &[Tie] {
        let first = self.places[list as usize] as usize;
        &self.ties[first..first + self.tied[list as usize] as usize]
    }

    /// Makes a split: documents move to the children, and the lists they are in are ranked anew. By
    /// how much the worth of all lists grows. A feature without a column has code 0 everywhere.
    pub fn split(&mut self, made: &MadeSplit, column: Option<&FeatureCodes<'_>>, measure: &Measure) -> i64 {
        let node = self.nodes[made.node as usize].clone();
        let middle = node.start + self.divide(made, column);
        let left = made.left as usize;
        self.nodes.resize(self.nodes.len().max(left + 2), 0..0);
        self.nodes[left] = node.start..middle;
        self.nodes[left + 1] = middle..node.end;
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
            grown += self.rank_anew(list, made, [of_left, of_right], measure);
        }
    }

    /// Moves the documents that go left to the front, keeping the order on both sides; how many they are.
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

    /// Puts the two parts of a tie where they belong.
    fn rank_anew(&mut self, list: u32, made: &MadeSplit, parts: [Part; 2], measure: &Measure) -> i64 {
        let list = list as usize;
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
        let worth = worth_of(&ties[..tied], self.factors[list], measure);
        worth - std::mem::replace(&mut self.worths[list], worth)
    }
}

/// The documents of a list at the beginning of some documents.
#[inline]
fn part_of(documents: &[Document], list: u32) -> Part {
    let mut part = Part::default();
    for document in documents.iter().take_while(|document| document.list == list) {
        part.count += 1;
        part.gains += i64::from(document.gain);
    }
    part
}

/// What a list is worth whose ties are sorted: leaves of one score are one tie.
pub fn worth_of(ties: &[Tie], factor: f64, measure: &Measure) -> i64 {
    let (mut start, mut worth) = (0, 0);
    for level in ties.chunk_by(|one, other| one.score == other.score) {
        let gains = level.iter().map(|tie| tie.gains).sum();
        let count: u32 = level.iter().map(|tie| tie.count).sum();
        worth += measure.worth(measure.pull(gains, count, factor), start, count);
        start += count;
    }
    worth
}
