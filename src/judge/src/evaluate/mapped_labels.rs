//! Replaces the labels of rows by those of a map, before they are evaluated.

use super::rows::{FIRST_JUDGMENT_ROW, RankingColumns, RowView};
use crate::plan::{BatchIterator, OpenReader};
use arrow::array::{Array, Float32Array, RecordBatch};
use planetree_base::error::Result;
use planetree_data::LabelMap;
use std::sync::Arc;

/// Wraps a reader so that its labels are replaced. `input` is where the rows come from, for messages.
pub fn mapped(reader: OpenReader, map: LabelMap, input: String) -> OpenReader {
    Arc::new(move || {
        let (map, input) = (map.clone(), input.clone());
        let batches = reader()?.map(move |batch| batch.and_then(|batch| map_batch(&batch, &map, &input)));
        Ok(Box::new(batches) as BatchIterator)
    })
}

fn map_batch(batch: &RecordBatch, map: &LabelMap, input: &str) -> Result<RecordBatch> {
    let rows = RowView::of(batch);
    let mut labels: Vec<f32> = (0..rows.labels.len())
        .map(|row| if rows.labels.is_valid(row) { rows.labels.value(row) } else { f32::NAN })
        .collect();
    map.apply(&mut labels).map_err(|row| {
        let number = rows.rows.value(row);
        let number = number.checked_sub(FIRST_JUDGMENT_ROW).unwrap_or(number) + 1;
        map.unlisted(input, number, labels[row])
    })?;
    let labels: Float32Array = labels.into_iter().map(|label| (!label.is_nan()).then_some(label)).collect();
    RankingColumns {
        query_ids: rows.query_ids.clone(),
        doc_ids: rows.doc_ids.clone(),
        labels,
        scores: rows.scores.clone(),
        first_row: 0,
        segments: Some(rows.segments.clone()),
    }
    .with_numbers(rows.rows.clone())
}
