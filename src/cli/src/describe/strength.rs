//! Describes how well the trees of a forest rank while they grow: their mean expected NDCG after some numbers of
//! splits.

use super::{TableDescription, heading, line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::TableReader;
use planetree_train::{MeanStrength, mean_strengths};
use serde_json::json;
use std::fmt::Write;

/// Numbers of splits to show, in addition to the largest number.
const SHOWN: [usize; 6] = [0, 1, 10, 100, 1000, 10_000];

/// Describes a table of tree strengths.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let strengths = mean_strengths(table)?;
    let trees = strengths.iter().map(MeanStrength::trees).max().unwrap_or(0) as u64;
    let longest = strengths.iter().map(MeanStrength::longest).max().unwrap_or(0);
    let mut text = heading("strength of trees", table);
    line(&mut text, "trees", shown_count(trees));
    line(&mut text, "maximum splits", shown_count(longest as u64));
    let _ = writeln!(text, "\n{:<12} {:>10} {:>14}", "split", "splits", "expected ndcg"); // writing to a String cannot fail
    let mut means = Vec::new();
    for strength in &strengths {
        let split = &strength.split;
        for count in SHOWN.into_iter().filter(|count| *count < longest).chain([longest]) {
            let mean = strength.after(count);
            let _ = writeln!(text, "{split:<12} {:>10} {mean:>14.6}", shown_count(count as u64));
            means.push(json!({ "split": split, "splits": count, "expected_ndcg": mean }));
        }
    }
    let json = json!({
        "strength": table.location().to_string(),
        "trees": trees,
        "splits": longest,
        "means": means,
    });
    Ok(TableDescription::new(table, text, json))
}
