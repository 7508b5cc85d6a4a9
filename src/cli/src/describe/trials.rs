//! Describes the trials of a search: their number, and the best one on the validation parts.

use super::{TableDescription, heading, line, metadata_line};
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column};
use planetree_metric::{Convention, Metric};
use serde_json::json;

/// Describes a table of trials.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let metric = table.metadata("planetree.metric").unwrap_or_default().to_owned();
    let (valid, test) = (format!("valid_{metric}"), format!("test_{metric}"));
    let higher = metric.parse::<Metric>().map_or(true, |metric| metric.higher_is_better());
    let mut best: Option<(u64, f64, Option<f64>)> = None;
    for batch in table.batches() {
        let batch = batch?;
        // The column is absent if no trial has produced a model.
        let column =
            |name: &str| batch.column_by_name(name).map(|_| float_column(table, &batch, name)).transpose();
        let Some(values) = column(&valid)? else { continue };
        let (trials, tested) = (float_column(table, &batch, "trial")?, column(&test)?);
        for row in (0..batch.num_rows()).filter(|row| values.is_valid(*row)) {
            let value = values.value(row);
            if best.is_none_or(|(_, best, _)| if higher { value > best } else { value < best }) {
                let tested = tested.as_ref().filter(|tested| tested.is_valid(row));
                best = Some((trials.value(row) as u64, value, tested.map(|tested| tested.value(row))));
            }
        }
    }
    let mut text = heading("trials of a search", table);
    metadata_line(&mut text, "convention", table, Convention::KEY);
    line(&mut text, "trials", shown_count(table.rows()));
    if let Some((trial, value, tested)) = best {
        line(&mut text, "best trial", trial);
        line(&mut text, &metric, format_args!("{value:.6} on the validation parts"));
        if let Some(tested) = tested {
            line(&mut text, "", format_args!("{tested:.6} on the test parts"));
        }
    }
    let json = json!({
        "trials": table.rows(),
        "metric": metric,
        "best": best.map(|(trial, valid, test)| json!({ "trial": trial, "valid": valid, "test": test })),
    });
    Ok(TableDescription::with_convention(table, text, json))
}
