//! Computes and describes the permutation importance of a model's features on a dataset.

use super::{TableDescription, line};
use crate::progress::CountProgress;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_base::storage::Location;
use planetree_data::table::TableReader;
use planetree_model::model::Model;
use planetree_model::predict::permutation_importance;
use serde_json::json;
use std::fmt::Write;

/// Default of `--top`.
const TOP: usize = 20;

/// Computes the permutation importance of a model's features and describes it.
pub(super) fn describe(
    table: &TableReader,
    data: &Location,
    top: Option<usize>,
    quiet: bool,
) -> Result<TableDescription> {
    let model = Model::from_table(table)?;
    model.check_complete(table.location())?;
    let progress = CountProgress::start("permuting", None, "features", quiet);
    let importance = permutation_importance(&model, data, 0, &*progress.meter())?;
    progress.finish();
    if !quiet {
        importance.warnings.iter().for_each(|warning| crate::message(format_args!("warning: {warning}")));
    }
    let name = |feature: u32| model.features[feature as usize].name.as_str();
    let mut text = String::new();
    line(&mut text, "model", table.location());
    line(&mut text, "dataset", format_args!("{data}: {} rows used", shown_count(importance.rows as u64)));
    line(&mut text, "ndcg@10", format_args!("{:.6}", importance.ndcg));
    line(&mut text, "rmse", format_args!("{:.6}", importance.rmse));
    let shown = &importance.features[..importance.features.len().min(top.unwrap_or(TOP))];
    let width =
        shown.iter().map(|feature| name(feature.feature).chars().count()).max().unwrap_or(0).clamp(7, 40);
    let _ = writeln!(text, "\n{:<width$} {:>14} {:>14}", "feature", "ndcg@10 drop", "rmse increase"); // writing to a String cannot fail
    for feature in shown {
        let (rmse, ndcg) = (feature.rmse_increase, feature.ndcg_drop);
        let _ = writeln!(text, "{:<width$} {ndcg:>14.6} {rmse:>14.6}", name(feature.feature));
    }
    let features: Vec<_> = importance.features[..importance.features.len().min(top.unwrap_or(usize::MAX))]
        .iter()
        .map(|feature| {
            json!({
                "feature": name(feature.feature),
                "rmse_increase": feature.rmse_increase,
                "ndcg@10_drop": feature.ndcg_drop,
            })
        })
        .collect();
    let json = json!({
        "model": table.location().to_string(),
        "dataset": data.to_string(),
        "rows": importance.rows,
        "ndcg@10": importance.ndcg,
        "rmse": importance.rmse,
        "permutation_importance": features,
    });
    Ok(TableDescription { text, json })
}
