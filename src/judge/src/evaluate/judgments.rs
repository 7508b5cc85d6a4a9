//! Reads labels from a source other than the ranking: a dataset, or a file of relevance judgments in the TREC format
//! (qrels).

use super::rows::{FIRST_JUDGMENT_ROW, RankingColumns};
use super::scores::LabelColumns;
use super::trec;
use crate::plan::{BatchIterator, OpenReader, SORT_ROWS};
use arrow::array::{Array, Float64Array, RecordBatch};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, GroupReader};
use std::sync::Arc;

/// A source of labels other than the ranking.
#[derive(Debug, Clone)]
pub enum Judgments {
    /// A dataset, which must contain all ranked documents.
    Dataset(Location),
    /// TREC qrels. Documents without a judgment count as irrelevant.
    Qrels(Location),
}

impl Judgments {
    /// Returns the location of the labels.
    pub fn location(&self) -> &Location {
        match self {
            Judgments::Dataset(location) | Judgments::Qrels(location) => location,
        }
    }

    /// Returns a reader of the judgments, which are rows without scores.
    pub fn reader(&self) -> OpenReader {
        match self {
            Judgments::Qrels(location) => trec::qrels_reader(location),
            Judgments::Dataset(location) => {
                let location = location.clone();
                Arc::new(move || {
                    let dataset = DatasetReader::open(&location)?;
                    let (mut groups, mut first_row) = (dataset.groups().into_iter(), 0);
                    let read = move || -> Option<Vec<Result<RecordBatch>>> {
                        let group = dataset.open_group(groups.next()?);
                        let batches =
                            group.and_then(|group| labels(&group, dataset.location(), &mut first_row));
                        Some(match batches {
                            Ok(batches) => batches.into_iter().map(Ok).collect(),
                            Err(error) => vec![Err(error)],
                        })
                    };
                    Ok(Box::new(std::iter::from_fn(read).flatten()) as BatchIterator)
                })
            }
        }
    }
}

/// Reads the labels of a row group in small batches that own their memory. They are not slices of a larger batch,
/// because for each slice the sort would count the memory of the whole batch.
fn labels(group: &GroupReader, location: &Location, first_row: &mut u64) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    group.read_batches(&[0, 1, 2], SORT_ROWS, &mut |batch| {
        let columns = LabelColumns::of(&batch, location)?;
        if let Some(row) = (0..columns.rows()).find(|row| columns.doc_ids.is_null(*row)) {
            return Err(Error::place(
                location,
                format_args!(
                    "row {} has no doc_id, which is needed to look up labels",
                    *first_row + row as u64 + 1
                ),
                "convert data with document ids; for scores in row order, use --scores and --data",
            ));
        }
        let rows = columns.rows();
        let judgments = RankingColumns {
            query_ids: columns.query_ids,
            doc_ids: columns.doc_ids,
            labels: columns.labels,
            scores: Float64Array::new_null(rows),
            first_row: FIRST_JUDGMENT_ROW + *first_row,
            segments: None,
        };
        *first_row += rows as u64;
        batches.push(judgments.into_batch()?);
        Ok(())
    })?;
    Ok(batches)
}
