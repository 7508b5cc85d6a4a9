//! Describes a table of filled features.

use super::{TableDescription, heading, line};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, string_column};
use serde_json::json;
use std::fmt::Write;

/// Describes a table of filled features.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut features = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let (names, r2) = (string_column(table, &batch, "feature")?, float_column(table, &batch, "r2")?);
        let error = float_column(table, &batch, "error")?;
        let missing = batch
            .column_by_name("missing")
            .and_then(|column| column.as_primitive_opt::<Int64Type>().cloned());
        for row in 0..batch.num_rows() {
            let missing = missing.as_ref().map_or(0, |missing| missing.value(row));
            let [error, r2] = [&error, &r2].map(|column| column.is_valid(row).then(|| column.value(row)));
            features.push((names.value(row).to_owned(), missing, error, r2));
        }
    }
    let filled: i64 = features.iter().map(|(_, missing, ..)| missing).sum();
    let mut text = heading("filled features", table);
    line(&mut text, "features", shown_count(features.len() as u64));
    line(&mut text, "filled values", shown_count(filled.unsigned_abs()));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{:<20} {:>10} {:>12} {:>7}", "feature", "missing", "error", "r2");
    for (name, missing, error, r2) in &features {
        let error = error.map_or("-".to_owned(), |error| format!("{error:.5}"));
        let r2 = r2.map_or("-".to_owned(), |r2| format!("{r2:.3}"));
        let missing = shown_count(missing.unsigned_abs());
        let _ = writeln!(text, "{name:<20} {missing:>10} {error:>12} {r2:>7}");
    }
    let rows = features.iter().map(
        |(name, missing, error, r2)| json!({ "feature": name, "missing": missing, "error": error, "r2": r2 }),
    );
    let json = json!({
        "filled": table.location().to_string(),
        "values": filled,
        "features": rows.collect::<Vec<_>>(),
    });
    Ok(TableDescription::new(table, text, json))
}
