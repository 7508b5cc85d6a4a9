//! Labels that come from elsewhere than the ranking: a dataset, or qrels.

use super::rows::{JUDGMENTS, RowColumns};
use super::scores::DatasetColumns;
use super::trec;
use crate::dataset::{DatasetReader, GroupReader};
use crate::error::{Error, Result};
use crate::plan::{Batches, Open, SORT_ROWS};
use crate::storage::Location;
use arrow::array::{Array, Float64Array, RecordBatch};
use std::sync::Arc;

/// Where labels come from.
#[derive(Debug, Clone)]
pub enum Judgments {
    /// A dataset with the same documents; each must be there.
    Dataset(Location),
    /// Judgments of some documents; the others are not relevant.
    Qrels(Location),
}

impl Judgments {
    /// Where they are.
    pub fn location(&self) -> &Location {
        match self {
            Judgments::Dataset(location) | Judgments::Qrels(location) => location,
        }
    }

    /// The reader of the judgments, as rows without scores.
    pub fn reader(&self) -> Open {
        match self {
            Judgments::Qrels(location) => trec::qrels_reader(location),
            Judgments::Dataset(location) => {
                let location = location.clone();
                Arc::new(move || {
                    let dataset = DatasetReader::open(&location)?;
                    let (mut groups, mut first_row) = (dataset.groups().into_iter(), 0);
                    let read = move || -> Option<Vec<Result<RecordBatch>>> {
                        let group = dataset.open_group(groups.next()?);
                        let batch = group.and_then(|group| labels(&group, dataset.location(), first_row));
                        first_row += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
                        Some(match batch {
                            Ok(batch) => pieces(&batch).map(Ok).collect(),
                            Err(error) => vec![Err(error)],
                        })
                    };
                    Ok(Box::new(std::iter::from_fn(read).flatten()) as Batches)
                })
            }
        }
    }
}

/// A batch in pieces that own their rows: a slice would keep, and count as, the whole.
fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(SORT_ROWS);
    starts.map(|start| {
        let piece = batch.slice(start, SORT_ROWS.min(batch.num_rows() - start));
        arrow::compute::concat_batches(piece.schema_ref(), [&piece]).unwrap_or(piece)
    })
}

fn labels(group: &GroupReader, location: &Location, first_row: u64) -> Result<RecordBatch> {
    let columns = DatasetColumns::read(group, location, None)?;
    let rows = columns.rows();
    if columns.doc_ids.null_count() > 0 {
        let row = (0..rows).find(|row| columns.doc_ids.is_null(*row)).unwrap_or(0) as u64;
        return Err(Error::place(
            location,
            format_args!("row {} has no doc_id, by which its label would be found", first_row + row + 1),
            "convert data with document ids; scores in the order of the rows go with --scores and --data",
        ));
    }
    RowColumns {
        query_ids: columns.query_ids,
        doc_ids: columns.doc_ids,
        labels: columns.labels,
        scores: Float64Array::new_null(rows),
        first_row: JUDGMENTS + first_row,
        segments: None,
    }
    .into_batch()
}
