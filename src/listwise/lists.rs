//! The lists of one partition: which documents are in which node, and the ties of every list in the
//! order of their scores.
//!
//! A query is in one partition, so a partition knows the whole ranking of its lists; what it says of
//! a node adds up with what the others say.

use super::measure::{Extent, Measure, Yardstick};
use crate::bins::{Column, Rows};
use crate::tree::{FoundSplit, NodeId, Scale, Sums, round};
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
    /// Its label times its weight, in units of labels.
    pub label: i32,
    /// Its weight, in units of weights.
    pub weight: i32,
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
    /// Labels, weights and counts.
    pub sums: Sums,
    /// The lowest and the highest label, in units.
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
        add(&mut self.sums, &other.sums);
        self.labels = (self.labels.0.min(other.labels.0), self.labels.1.max(other.labels.1));
    }
}

/// Adds sums to others.
#[inline]
pub fn add(sums: &mut Sums, other: &Sums) {
    sums.gradient = sums.gradient.wrapping_add(other.gradient);
    sums.weight = sums.weight.wrapping_add(other.weight);
    sums.count = sums.count.wrapping_add(other.count);
}

/// A split that is made: the node, its left child (the right one follows), where, and what the
/// children score.
#[derive(Debug, Clone, Copy)]
pub struct MadeSplit {
    /// Which node.
    pub node: NodeId,
    /// Its left child; the right one follows.
    pub left: NodeId,
    /// Where.
    pub split: FoundSplit,
    /// The score of the left child.
    pub left_score: f64,
    /// The score of the right child.
    pub right_score: f64,
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

/// What the lists of a partition will be, or of those queries whose rows were drawn.
pub fn extent_of(rows: &Rows, drawn: Option<&[u32]>, yardstick: &Yardstick) -> Extent {
    let mut extent = Extent::default();
    for list in lists_of(rows, drawn) {
        extent.longest = extent.longest.max(list.len() as u32);
        extent.lists += 1;
        extent.most_weight = extent.most_weight.max(weight_of(rows, list.clone()));
        for label in &rows.labels[list.start as usize..list.end as usize] {
            extent.most_gain = extent.most_gain.max(yardstick.gain.of(*label));
        }
    }
    extent
}

/// The rows of each list.
fn lists_of<'a>(rows: &'a Rows, drawn: Option<&'a [u32]>) -> impl Iterator<Item = Range<u32>> + 'a {
    let mut drawn = drawn.map(|drawn| drawn.iter().copied().peekable());
    rows.query_bounds.windows(2).map(|pair| pair[0]..pair[1]).filter(move |query| {
        !query.is_empty()
            && drawn.as_mut().is_none_or(|drawn| {
                let is_drawn = drawn.peek() == Some(&query.start);
                while drawn.next_if(|row| *row < query.end).is_some() {}
                is_drawn
            })
    })
}

/// A list counts by the mean weight of its rows.
fn weight_of(rows: &Rows, list: Range<u32>) -> f64 {
    let range = list.start as usize..list.end as usize;
    match &rows.weights {
        None => 1.0,
        Some(weights) => {
            weights[range.clone()].iter().map(|weight| f64::from(*weight)).sum::<f64>() / range.len() as f64
        }
    }
}

impl<'a> Lists<'a> {
    /// The lists of a partition, or of those queries whose rows were drawn; all documents are at the root.
    pub fn new(rows: &'a Rows, drawn: Option<&[u32]>, measure: &Measure, scale: &Scale) -> Self {
        let count = drawn.map_or(rows.len(), <[u32]>::len);
        let mut lists = Lists {
            rows,
            documents: Vec::with_capacity(count),
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
        for (number, list) in (0..).zip(lists_of(rows, drawn)) {
            gains.clear();
            lists.places.push(lists.documents.len() as u32);
            for row in list.clone() {
                let label = rows.labels[row as usize];
                let weight =
                    rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row as usize]));
                let gain = measure.gain_of(label);
                gains.push(gain);
                lists.documents.push(Document {
                    row,
                    list: number,
                    gain,
                    label: round(f64::from(label) * weight * scale.gradient),
                    // What weighs anything weighs at least one unit.
                    weight: round(weight * scale.weight).max(i32::from(weight > 0.0)),
                });
            }
            let weight = weight_of(rows, list.clone());
            lists.perfect += measure.perfect(weight);
            lists.factors.push(measure.factor_of(&mut gains, weight));
            let part = Part { count: gains.len() as u32, gains: gains.iter().map(|gain| i64::from(*gain)).sum() };
            let root = Tie { score: 0.0, gains: part.gains, count: part.count, leaf: 0 };
            lists.ties.resize(lists.documents.len(), root);
            lists.ties[lists.places[number as usize] as usize] = root;
            lists.tied.push(1);
            lists.worths.push(worth_of(std::slice::from_ref(&root), lists.factors[number as usize], measure));
        }
        lists.nodes.push(0..lists.documents.len());
        lists
    }

    /// The documents of a node, list by list.
    pub fn documents(&self, node: NodeId) -> &[Document] {
        &self.documents[self.nodes[node].clone()]
    }

    /// What is known of a node's documents.
    pub fn summary(&self, node: NodeId) -> NodeSummary {
        let mut summary = NodeSummary::default();
        for document in self.documents(node) {
            add_document(&mut summary.sums, document);
            let label = self.rows.labels[document.row as usize];
            summary.labels = (summary.labels.0.min(label), summary.labels.1.max(label));
        }
        summary
    }

    /// How many lists there are.
    pub fn count(&self) -> usize {
        self.worths.len()
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
    /// how much the worth of all lists grows.
    pub fn split(&mut self, made: &MadeSplit, column: Option<&Column<'_>>, measure: &Measure) -> i64 {
        let left = self.divide(made, column);
        let node = self.nodes[made.node].clone();
        let middle = node.start + left;
        if self.nodes.len() < made.left + 2 {
            self.nodes.resize(made.left + 2, 0..0);
        }
        self.nodes[made.left] = node.start..middle;
        self.nodes[made.left + 1] = middle..node.end;
        let (mut lefts, mut rights) = (node.start, middle);
        let mut grown = 0;
        loop {
            let next_left = self.documents[lefts..middle].first().map(|document| document.list);
            let next_right = self.documents[rights..node.end].first().map(|document| document.list);
            let list = match (next_left, next_right) {
                (Some(one), Some(other)) => one.min(other),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return grown,
            };
            let of_left = part_of(&self.documents[lefts..middle], list);
            let of_right = part_of(&self.documents[rights..node.end], list);
            lefts += of_left.count as usize;
            rights += of_right.count as usize;
            grown += self.rank_anew(list, made, [of_left, of_right], measure);
        }
    }

    /// Moves the documents that go left to the front, keeping the order on both sides; how many they are.
    fn divide(&mut self, made: &MadeSplit, column: Option<&Column<'_>>) -> usize {
        let documents = &mut self.documents[self.nodes[made.node].clone()];
        let missing = made.split.missing_goes_left().unwrap_or(u32::MAX);
        // A feature that is constant in these bins has no column: all rows have code 0.
        let code = |row: u32| column.map_or(0, |column| column.code(row));
        self.spare.clear();
        let mut left = 0;
        for place in 0..documents.len() {
            let document = documents[place];
            let code = code(document.row);
            if code <= made.split.code || code == missing {
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
        let first = self.places[list as usize] as usize;
        let mut tied = self.tied[list as usize] as usize;
        let ties = &mut self.ties[first..];
        if let Some(old) = ties[..tied].iter().position(|tie| tie.leaf == made.node as u32) {
            ties.copy_within(old + 1..tied, old);
            tied -= 1;
        }
        let scores = [made.left_score, made.right_score];
        for ((part, score), leaf) in parts.into_iter().zip(scores).zip(made.left as u32..) {
            if part.count > 0 {
                let place = ties[..tied].partition_point(|tie| tie.score >= score);
                ties.copy_within(place..tied, place + 1);
                ties[place] = Tie { score, gains: part.gains, count: part.count, leaf };
                tied += 1;
            }
        }
        self.tied[list as usize] = tied as u32;
        if self.factors[list as usize] == 0.0 {
            return 0;
        }
        let worth = worth_of(&ties[..tied], self.factors[list as usize], measure);
        let before = std::mem::replace(&mut self.worths[list as usize], worth);
        worth - before
    }
}

/// Adds a document to sums.
#[inline]
pub fn add_document(sums: &mut Sums, document: &Document) {
    sums.gradient = sums.gradient.wrapping_add(i64::from(document.label));
    sums.weight = sums.weight.wrapping_add(i64::from(document.weight));
    sums.count = sums.count.wrapping_add(1);
}

/// The documents of a list at the beginning of some documents.
#[inline]
pub fn part_of(documents: &[Document], list: u32) -> Part {
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
