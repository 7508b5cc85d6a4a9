//! What is in a file of differences: for each pair of systems where the second has more, and where less.

use super::column::{numbers, texts};
use super::{Described, line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::TableReader;
use serde_json::json;
use std::fmt::Write;

/// What the rows of one pair add up to.
struct Pair {
    systems: [String; 2],
    queries: u64,
    sum: f64,
    up: u64,
    down: u64,
}

/// Describes differences.
pub fn describe(table: &TableReader) -> Result<Described> {
    let mut pairs: Vec<Pair> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let systems = [texts(table, &batch, "system_a")?, texts(table, &batch, "system_b")?];
        let differences = numbers(table, &batch, "difference")?;
        for row in 0..batch.num_rows() {
            let [a, b] = [systems[0].value(row), systems[1].value(row)];
            // Rows of a pair are side by side, so the last one is nearly always it.
            let place = pairs.iter().rposition(|pair| pair.systems == [a, b]).unwrap_or_else(|| {
                let systems = [a.to_owned(), b.to_owned()];
                pairs.push(Pair { systems, queries: 0, sum: 0.0, up: 0, down: 0 });
                pairs.len() - 1
            });
            let (pair, difference) = (&mut pairs[place], differences.value(row));
            pair.queries += 1;
            pair.sum += difference;
            pair.up += u64::from(difference > 0.0);
            pair.down += u64::from(difference < 0.0);
        }
    }
    let mut text = String::new();
    line(&mut text, "differences", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "metric", table.metadata("planetree.metric").unwrap_or("-"));
    line(&mut text, "convention", table.metadata("planetree.convention").unwrap_or("-"));
    let _ = writeln!(
        text,
        "\n{:<16} {:<16} {:>15} {:>10} {:>10} {:>10}",
        "a", "b", "mean of b - a", "queries", "up", "down"
    );
    let mut described = Vec::new();
    for Pair { systems: [a, b], queries, sum, up, down } in pairs {
        let mean = sum / queries as f64;
        let [shown, more, less] = [queries, up, down].map(shown_count);
        let _ = writeln!(text, "{a:<16} {b:<16} {mean:>15.6} {shown:>10} {more:>10} {less:>10}");
        described.push(json!({ "a": a, "b": b, "queries": queries, "mean": mean, "up": up, "down": down }));
    }
    let json = json!({
        "differences": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "metric": table.metadata("planetree.metric"),
        "convention": table.metadata("planetree.convention"),
        "pairs": described,
    });
    Ok(Described { text, json })
}
