//! Scores the rows of a dataset with an exported model.

use super::compare::Comparer;
use crate::exchange::prepare::PreparedModel;
use crate::predict::{BATCH_VALUES, GroupColumns, ranks, row_identity};
use arrow::array::{Array, AsArray, Float32Array};
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, unexpected_columns};

/// Compares the scores and ranks of all rows.
pub(super) fn try_rows(
    comparer: &mut Comparer<'_>,
    prepared: &PreparedModel,
    reader: &DatasetReader,
) -> Result<()> {
    let columns = GroupColumns::new(&prepared.original, reader)?;
    for id in reader.groups() {
        let group = reader.open_group(id)?;
        let identity = row_identity(reader, &group)?;
        let queries =
            identity.column(0).as_string_opt::<i32>().ok_or_else(|| unexpected_columns(reader.location()))?;
        let mut scores = [Vec::with_capacity(group.rows()), Vec::with_capacity(group.rows())];
        columns.each_batch(reader, &group, BATCH_VALUES, &mut |first, rows, columns| {
            let mut values = vec![f32::NAN; prepared.model.features.len()];
            for row in 0..rows {
                for (feature, column) in columns.iter().enumerate() {
                    if let Some(place) = prepared.places[feature] {
                        values[place as usize] = value_at(*column, row);
                    }
                }
                let number = group.first_row() + (first + row) as u64 + 1;
                let mut name = || format!("row {number} (query {})", queries.value(first + row));
                let (ours, theirs) = comparer.try_data_row(&values, &mut name);
                scores[0].push(ours);
                scores[1].push(theirs);
            }
            Ok(())
        })?;
        let [ours, theirs] = scores.map(|scores| ranks(queries, &scores));
        comparer
            .add_changed_ranks(ours.iter().zip(&theirs).filter(|(one, other)| one != other).count() as u64);
    }
    Ok(())
}

fn value_at(column: Option<&Float32Array>, row: usize) -> f32 {
    match column {
        Some(column) if row < column.len() && column.is_valid(row) => column.value(row),
        _ => f32::NAN,
    }
}
