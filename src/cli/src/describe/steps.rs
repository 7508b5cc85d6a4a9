//! What is in the steps of a pipeline's run: what became of each, and what it took.

use super::column::{numbers, texts};
use super::{Described, line};
use arrow::array::{Array, Float64Array};
use planetree_base::error::Result;
use planetree_base::size::{shown_count, shown_size};
use planetree_data::table::TableReader;
use serde_json::json;
use std::fmt::Write;

/// Describes steps.
pub fn describe(table: &TableReader) -> Result<Described> {
    let mut text = String::new();
    line(&mut text, "steps of a run", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "pipeline", table.metadata("planetree.pipeline").unwrap_or("-"));
    let (name, kind, status) = ("step", "kind", "status");
    let _ = write!(text, "\n{name:<24} {kind:<9} {status:<8}");
    let _ = writeln!(text, " {:>9} {:>12} {:>11} {:>12}", "seconds", "rows", "size", "peak memory");
    let mut steps = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let [names, kinds, statuses] =
            [texts(table, &batch, name)?, texts(table, &batch, kind)?, texts(table, &batch, status)?];
        let columns =
            ["seconds", "rows", "bytes", "peak_memory_bytes"].map(|name| numbers(table, &batch, name));
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
        "writer": table.metadata("planetree.writer"),
        "steps": steps,
    });
    Ok(Described { text, json })
}
