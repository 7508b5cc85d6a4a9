//! Describes the steps of a pipeline run: status, time, rows, size and memory of each.

use super::{TableDescription, heading, metadata_line};
use arrow::array::{Array, Float64Array};
use planetree_base::error::Result;
use planetree_base::size::{shown_count, shown_size};
use planetree_data::table::{TableReader, float_column, string_column};
use serde_json::json;
use std::fmt::Write;

/// Describes a table of steps.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut text = heading("pipeline steps", table);
    metadata_line(&mut text, "pipeline", table, "planetree.pipeline");
    let (name, kind, status) = ("step", "kind", "status");
    let _ = write!(text, "\n{name:<24} {kind:<9} {status:<8}");
    let _ = writeln!(text, " {:>9} {:>12} {:>11} {:>12}", "seconds", "rows", "size", "peak memory");
    let mut steps = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let [names, kinds, statuses] = [
            string_column(table, &batch, name)?,
            string_column(table, &batch, kind)?,
            string_column(table, &batch, status)?,
        ];
        let columns =
            ["seconds", "rows", "bytes", "peak_memory_bytes"].map(|name| float_column(table, &batch, name));
        let [seconds, rows, bytes, peak] = columns;
        let (seconds, rows, bytes, peak) = (seconds?, rows?, bytes?, peak?);
        let value = |column: &Float64Array, row: usize| column.is_valid(row).then(|| column.value(row));
        let shown = |value: Option<f64>, show: &dyn Fn(u64) -> String| {
            value.map_or("-".to_owned(), |value| show(value as u64))
        };
        for row in 0..batch.num_rows() {
            let took = value(&seconds, row).map_or("-".to_owned(), |seconds| format!("{seconds:.2}"));
            let _ = writeln!(
                text,
                "{:<24} {:<9} {:<8} {took:>9} {:>12} {:>11} {:>12}",
                names.value(row),
                kinds.value(row),
                statuses.value(row),
                shown(value(&rows, row), &shown_count),
                shown(value(&bytes, row), &shown_size),
                shown(value(&peak, row), &shown_size),
            );
            steps.push(json!({
                "step": names.value(row),
                "kind": kinds.value(row),
                "status": statuses.value(row),
                "seconds": value(&seconds, row),
                "rows": value(&rows, row).map(|count| count as u64),
                "bytes": value(&bytes, row).map(|count| count as u64),
                "peak_memory_bytes": value(&peak, row).map(|count| count as u64),
            }));
        }
    }
    let json = json!({
        "pipeline": table.metadata("planetree.pipeline"),
        "steps": steps,
    });
    Ok(TableDescription::new(table, text, json))
}
