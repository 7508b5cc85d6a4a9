//! Describes a table of differences: for each pair of systems, the mean difference and the number of queries that
//! increased and decreased.

use super::{TableDescription, heading, metadata_line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, string_column};
use planetree_metric::Convention;
use serde_json::json;
use std::fmt::Write;

/// Counts and sums over the queries of one pair of systems.
struct DifferenceSummary {
    systems: [String; 2],
    queries: u64,
    sum: f64,
    up: u64,
    down: u64,
}

/// Describes a table of differences.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut pairs: Vec<DifferenceSummary> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let systems = [string_column(table, &batch, "system_a")?, string_column(table, &batch, "system_b")?];
        let differences = float_column(table, &batch, "difference")?;
        for row in 0..batch.num_rows() {
            let [a, b] = [systems[0].value(row), systems[1].value(row)];
            // The rows of a pair are adjacent, so the pair is nearly always the last one in the list.
            let index = pairs.iter().rposition(|pair| pair.systems == [a, b]).unwrap_or_else(|| {
                let systems = [a.to_owned(), b.to_owned()];
                pairs.push(DifferenceSummary { systems, queries: 0, sum: 0.0, up: 0, down: 0 });
                pairs.len() - 1
            });
            let (pair, difference) = (&mut pairs[index], differences.value(row));
            pair.queries += 1;
            pair.sum += difference;
            pair.up += u64::from(difference > 0.0);
            pair.down += u64::from(difference < 0.0);
        }
    }
    let mut text = heading("differences", table);
    metadata_line(&mut text, "metric", table, "planetree.metric");
    metadata_line(&mut text, "convention", table, Convention::KEY);
    let _ = writeln!(
        text,
        "\n{:<16} {:<16} {:>15} {:>10} {:>10} {:>10}",
        "a", "b", "mean of b - a", "queries", "up", "down"
    );
    let mut summaries = Vec::new();
    for DifferenceSummary { systems: [a, b], queries, sum, up, down } in pairs {
        let mean = sum / queries as f64;
        let counts = [queries, up, down].map(|count| format!(" {:>10}", shown_count(count))).concat();
        let _ = writeln!(text, "{a:<16} {b:<16} {mean:>15.6}{counts}");
        summaries.push(json!({ "a": a, "b": b, "queries": queries, "mean": mean, "up": up, "down": down }));
    }
    let json = json!({
        "differences": table.location().to_string(),
        "metric": table.metadata("planetree.metric"),
        "pairs": summaries,
    });
    Ok(TableDescription::with_convention(table, text, json))
}
