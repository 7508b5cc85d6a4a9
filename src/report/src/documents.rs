//! Computes statistics of the documents of a ranking: how often each label occurs at each rank, and the distribution
//! of scores for each label. Also collects the ranked documents of the queries that a report shows.

use arrow::array::Array;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use std::collections::{BTreeMap, BTreeSet};

/// Number of top ranks that have a column of their own. Ranks further down are grouped into the columns of
/// [`DEEPER`].
pub(crate) const RANKS: usize = 10;
/// The columns for ranks further down, each with its name and its first rank.
pub(crate) const DEEPER: [(&str, u32); 3] = [("11–20", 11), ("21–50", 21), ("51+", 51)];
/// Maximum number of documents listed per query.
pub(crate) const LISTED: usize = 20;
/// Maximum number of distinct labels. If there are more, neighbouring labels are merged.
const LABELS: usize = 10;
/// Maximum number of scores that distributions are computed from. Larger tables are sampled at regular intervals.
const SCORES: u64 = 2_000_000;

/// Statistics of the documents of a ranking.
pub(crate) struct Documents {
    /// Statistics of each label, in ascending order of labels.
    pub grades: Vec<Grade>,
    /// The ranked documents of the requested queries, by query id.
    pub lists: BTreeMap<String, QueryList>,
    /// The sampling interval of the score distributions. 1 means that all scores are used, 2 every other score, and
    /// so on.
    pub every: u64,
    /// Whether neighbouring labels were merged.
    pub merged: bool,
    /// The highest label. `None` if there are no labels.
    pub highest: Option<f32>,
}

/// Statistics of one label, or of several neighbouring labels that were merged.
pub(crate) struct Grade {
    /// The label, or the range of merged labels.
    pub name: String,
    /// Number of documents at each of the first [`RANKS`] ranks, followed by the columns of [`DEEPER`].
    pub at_rank: Vec<u64>,
    /// Sampled scores in ascending order.
    pub scores: Vec<f64>,
    /// Number of documents with the label.
    pub count: u64,
    /// Mean score of all documents with the label.
    pub mean: f64,
}

/// The ranked documents of one query.
#[derive(Default)]
pub(crate) struct QueryList {
    /// The top documents in rank order, at most [`LISTED`].
    pub first: Vec<RankedDocument>,
    /// Total number of documents of the query.
    pub documents: u64,
    /// Index of the query's first row in the table.
    pub first_row: u64,
    /// The id and the rank of every document, in the order of the table.
    pub all: Vec<(Option<String>, u32)>,
}

/// A ranked document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankedDocument {
    /// The rank, starting at 1.
    pub rank: u32,
    /// The document id. `None` if the table has no document ids.
    pub id: Option<String>,
    /// The label. `None` if the document has none.
    pub label: Option<f32>,
    /// The score that determines the rank.
    pub score: f64,
    /// Index of the document among those of its query, in the order of the table.
    pub place: usize,
}

/// Maps a label to an integer such that the integers sort like the labels.
fn ordered(label: f32) -> i32 {
    let bits = (label + 0.0).to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

impl Documents {
    /// Reads predictions and computes the statistics. The ranked documents are kept only for the given queries.
    pub(crate) fn read(location: &Location, queries: &BTreeSet<&str>) -> Result<Self> {
        let table = TableReader::open(location, TableKind::Predictions)?;
        let every = table.rows().div_ceil(SCORES).max(1);
        let mut labels: BTreeMap<i32, (f32, Grade)> = BTreeMap::new();
        let mut lists: BTreeMap<String, QueryList> = BTreeMap::new();
        let mut row = 0;
        for batch in table.batches() {
            let batch = batch?;
            let (names, ids) =
                (string_column(&table, &batch, "query_id")?, string_column(&table, &batch, "doc_id")?);
            let (known, scores) =
                (float_column(&table, &batch, "label")?, float_column(&table, &batch, "score")?);
            let ranks = float_column(&table, &batch, "rank")?;
            for place in 0..batch.num_rows() {
                let (score, rank) = (scores.value(place), ranks.value(place) as u32);
                let label = known.is_valid(place).then(|| known.value(place) as f32);
                if let Some(label) = label {
                    let (_, grade) =
                        labels.entry(ordered(label)).or_insert_with(|| (label, Grade::new(label)));
                    grade.at_rank[column(rank)] += 1;
                    grade.count += 1;
                    grade.mean += score;
                    if row % every == 0 {
                        grade.scores.push(score);
                    }
                }
                row += 1;
                if !queries.contains(names.value(place)) {
                    continue;
                }
                let list = lists
                    .entry(names.value(place).to_owned())
                    .or_insert_with(|| QueryList { first_row: row - 1, ..QueryList::default() });
                let id = ids.is_valid(place).then(|| ids.value(place).to_owned());
                list.all.push((id.clone(), rank));
                list.add(RankedDocument { rank, id, label, score, place: list.all.len() - 1 });
            }
        }
        let merged = labels.len() > LABELS;
        let highest = labels.values().last().map(|(label, _)| *label);
        let mut grades = merge(labels.into_values().collect());
        for grade in &mut grades {
            grade.mean /= grade.count as f64;
            grade.scores.sort_by(f64::total_cmp);
        }
        Ok(Documents { grades, lists, every, merged, highest })
    }
}

impl Grade {
    fn new(label: f32) -> Self {
        Grade {
            name: label.to_string(),
            at_rank: vec![0; RANKS + DEEPER.len()],
            scores: Vec::new(),
            count: 0,
            mean: 0.0,
        }
    }

    /// Returns a quantile of the scores, with linear interpolation.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.scores.len().checked_sub(1) else { return f64::NAN };
        let place = share * last as f64;
        let (below, above) = (self.scores[place as usize], self.scores[(place as usize + 1).min(last)]);
        below + (above - below) * place.fract()
    }
}

impl QueryList {
    /// Returns the rank of a document of another ranking of the same query. Documents without an id are matched by
    /// their place if both rankings list the same documents in the same order.
    pub(crate) fn rank_of(&self, document: &RankedDocument, same_rows: bool) -> Option<u32> {
        let by_place = || self.all.get(document.place).filter(|_| same_rows);
        let found = match &document.id {
            Some(id) => by_place()
                .filter(|(other, _)| other.as_ref() == Some(id))
                .or_else(|| self.all.iter().find(|(other, _)| other.as_ref() == Some(id))),
            None => by_place(),
        };
        found.map(|(_, rank)| *rank)
    }

    fn add(&mut self, document: RankedDocument) {
        self.documents += 1;
        let place = self.first.partition_point(|other| other.rank <= document.rank);
        if place < LISTED {
            self.first.insert(place, document);
            self.first.truncate(LISTED);
        }
    }
}

/// Returns the index of the column to which a rank belongs.
fn column(rank: u32) -> usize {
    let deeper = DEEPER.iter().take_while(|(_, from)| rank >= *from).count();
    if deeper == 0 { rank.saturating_sub(1) as usize } else { RANKS + deeper - 1 }
}

/// Merges neighbouring labels if there are too many. The groups have about the same number of documents.
fn merge(labels: Vec<(f32, Grade)>) -> Vec<Grade> {
    if labels.len() <= LABELS {
        return labels.into_iter().map(|(_, grade)| grade).collect();
    }
    let all: u64 = labels.iter().map(|(_, grade)| grade.count).sum();
    let mut merged: Vec<(f32, f32, Grade)> = Vec::new();
    let mut so_far = 0;
    for (label, grade) in labels {
        let bucket = so_far * LABELS as u64 / all.max(1);
        so_far += grade.count;
        match merged.last_mut().filter(|(_, _, last)| last.name == bucket.to_string()) {
            Some((_, to, last)) => {
                *to = label;
                last.count += grade.count;
                last.mean += grade.mean;
                last.scores.extend(grade.scores);
                for (sum, more) in last.at_rank.iter_mut().zip(grade.at_rank) {
                    *sum += more;
                }
            }
            None => merged.push((label, label, Grade { name: bucket.to_string(), ..grade })),
        }
    }
    let named = |(from, to, grade): (f32, f32, Grade)| {
        let name = if from == to { from.to_string() } else { format!("{from} to {to}") };
        Grade { name, ..grade }
    };
    merged.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_columns() {
        let columns: Vec<usize> = [1, 2, 10, 11, 20, 21, 50, 51, 5000].map(column).to_vec();
        assert_eq!(columns, [0, 1, 9, 10, 10, 11, 11, 12, 12]);
    }

    #[test]
    fn labels_are_in_order() {
        let mut labels = [3.0, -1.0, 0.0, -0.5, 2.5, -0.0];
        labels.sort_by_key(|label| ordered(*label));
        assert_eq!(labels, [-1.0, -0.5, 0.0, -0.0, 2.5, 3.0]);
        assert_eq!(ordered(0.0), ordered(-0.0));
    }

    #[test]
    fn many_labels_are_put_together() {
        let labels: Vec<(f32, Grade)> = (0..1000)
            .map(|label| {
                let label = label as f32 / 4.0;
                (label, Grade { count: 1, mean: 1.0, scores: vec![1.0], ..Grade::new(label) })
            })
            .collect();
        let merged = merge(labels);
        assert_eq!(merged.len(), LABELS);
        assert_eq!(merged.iter().map(|grade| grade.count).sum::<u64>(), 1000);
        assert_eq!(merged[0].name, "0 to 24.75");
    }

    #[test]
    fn the_first_documents_are_kept_in_order() {
        let mut list = QueryList::default();
        for rank in (1..=50).rev() {
            list.add(RankedDocument { rank, id: None, label: None, score: 0.0, place: 0 });
        }
        let ranks: Vec<u32> = list.first.iter().map(|document| document.rank).collect();
        assert_eq!((list.documents, ranks), (50, (1..=20).collect()));
    }
}
