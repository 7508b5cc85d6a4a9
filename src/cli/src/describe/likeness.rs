//! Describes a table of likeness: how much the rows of a dataset resemble those of another one.

use super::{TableDescription, heading, line, short};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column};
use serde_json::json;

/// Percentages of the most likely rows to show.
const SHOWN: [f64; 4] = [0.1, 1.0, 10.0, 50.0];

/// Describes a table of likeness.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut values: Vec<f64> = Vec::new();
    for batch in table.batches() {
        values.extend(float_column(table, &batch?, "likeness")?.values());
    }
    values.sort_by(|one, other| other.total_cmp(one));
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut text = heading("likeness", table);
    line(&mut text, "rows", shown_count(values.len() as u64));
    line(&mut text, "mean", short(mean));
    let mut least = Vec::new();
    for share in SHOWN {
        let count = (share / 100.0 * values.len() as f64).round() as usize;
        if let Some(value) = count.checked_sub(1).and_then(|last| values.get(last)) {
            line(&mut text, &format!("top {share} %"), format!("from {}", short(*value)));
            least.push(json!({ "share": share, "rows": count, "least": value }));
        }
    }
    let json = json!({
        "likeness": table.location().to_string(),
        "rows": values.len(),
        "mean": mean,
        "shares": least,
    });
    Ok(TableDescription::new(table, text, json))
}
