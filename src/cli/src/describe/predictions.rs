//! Describes a table of predictions: queries, labels, scores and ties.

use super::{TableDescription, heading, line, metadata_line, short};
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::{TableReader, float_column, string_column};
use serde_json::json;

/// Counts and sums over the rows. The rows of a query must be adjacent.
#[derive(Default)]
struct PredictionSummary {
    rows: u64,
    queries: u64,
    labelled: u64,
    least: Option<f64>,
    most: Option<f64>,
    sum: f64,
    /// Number of rows that have the same score as another row of their query.
    tied: u64,
    /// The current query. Its scores so far are in `scores`.
    query: Option<String>,
    scores: Vec<f64>,
}

impl PredictionSummary {
    fn add(&mut self, query: &str, label: bool, score: f64) {
        if self.query.as_deref() != Some(query) {
            self.end_query();
            self.query = Some(query.to_owned());
            self.queries += 1;
        }
        self.rows += 1;
        self.labelled += u64::from(label);
        self.least = Some(self.least.map_or(score, |least| least.min(score)));
        self.most = Some(self.most.map_or(score, |most| most.max(score)));
        self.sum += score;
        self.scores.push(score);
    }

    /// Counts the ties of the current query and clears its scores.
    fn end_query(&mut self) {
        self.scores.sort_by(f64::total_cmp);
        let runs = self.scores.chunk_by(|one, other| one == other);
        self.tied += runs.map(<[f64]>::len).filter(|length| *length > 1).sum::<usize>() as u64;
        self.scores.clear();
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.rows.max(1) as f64
    }
}

/// Describes a table of predictions.
pub(super) fn describe(table: &TableReader) -> Result<TableDescription> {
    let mut summary = PredictionSummary::default();
    for batch in table.batches() {
        let batch = batch?;
        let (queries, scores) =
            (string_column(table, &batch, "query_id")?, float_column(table, &batch, "score")?);
        let labels = float_column(table, &batch, "label")?;
        for row in 0..batch.num_rows() {
            summary.add(queries.value(row), labels.is_valid(row), scores.value(row));
        }
    }
    summary.end_query();
    let mean = summary.sum / summary.rows.max(1) as f64;
    let labels = match summary.labelled {
        0 => "none".to_owned(),
        labelled if labelled == summary.rows => "on all rows".to_owned(),
        labelled => format!("on {} rows", shown_count(labelled)),
    };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    let mut text = heading("predictions", table);
    metadata_line(&mut text, "dataset", table, "planetree.dataset");
    if let Some(trained_on) = table.metadata("planetree.trained_on").filter(|print| !print.is_empty()) {
        line(&mut text, "model trained on", trained_on);
    }
    line(&mut text, "rows", shown_count(summary.rows));
    line(&mut text, "queries", shown_count(summary.queries));
    line(&mut text, "labels", labels);
    let scores = [("min", summary.least), ("mean", summary.least.map(|_| mean)), ("max", summary.most)];
    let shown: Vec<String> =
        scores.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
    line(&mut text, "scores", shown.join("  "));
    let tied = format!(
        "{:.2} % of rows have the same score as another row of their query",
        100.0 * summary.share(summary.tied)
    );
    line(&mut text, "ties", tied);
    let json = json!({
        "predictions": table.location().to_string(),
        "dataset": table.metadata("planetree.dataset"),
        "model": table.metadata("planetree.model_fingerprint"),
        "trained_on": table.metadata("planetree.trained_on"),
        "rows": summary.rows,
        "queries": summary.queries,
        "labelled": summary.labelled,
        "score": { "min": summary.least, "mean": summary.least.map(|_| mean), "max": summary.most },
        "tied_share": summary.share(summary.tied),
    });
    Ok(TableDescription::new(table, text, json))
}
