//! Writes the table of likeness: one row per row of the dataset.

use super::Likeness;
use super::outputs::best_first;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// Writes the table. Ranks are counted from 1 over all rows.
pub(super) fn write(source: &DatasetReader, likeness: &Likeness, location: &Location) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("query_id", DataType::Utf8, false),
        Field::new("doc_id", DataType::Utf8, true),
        Field::new("label", DataType::Float32, true),
        Field::new("fold", DataType::Int32, false),
        Field::new("likeness", DataType::Float64, false),
        Field::new("rank", DataType::Int64, false),
    ]));
    let mut ranks = vec![0i64; likeness.values.len()];
    for (rank, row) in (1..).zip(best_first(&likeness.values)) {
        ranks[row] = rank;
    }
    let mut table = TableWriter::create(location, TableKind::Likeness, schema.clone())?;
    for id in source.groups() {
        let group = source.open_group(id)?;
        let first = group.first_row() as usize;
        let rows = first..first + group.rows();
        let mut columns: Vec<ArrayRef> = group.read(0..3)?.columns().to_vec();
        let folds = likeness.folds[rows.clone()].iter().map(|fold| *fold as i32 + 1);
        columns.push(Arc::new(Int32Array::from_iter_values(folds)));
        columns.push(Arc::new(Float64Array::from(likeness.values[rows.clone()].to_vec())));
        columns.push(Arc::new(Int64Array::from(ranks[rows].to_vec())));
        let batch = RecordBatch::try_new(schema.clone(), columns)
            .map_err(|error| Error::bug("select", format_args!("invalid table of likeness: {error}")))?;
        table.write(&batch)?;
    }
    table.finish()
}
