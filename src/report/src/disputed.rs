//! Finds disputed labels: documents that the model scores above documents of the same query with better labels.

use super::display::Display;
use super::material::Material;
use super::system::ReportSystem;
use arrow::array::Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileFormat, FileOutput, Location, OutputFormats, replaces};
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use std::io::Write;

/// Maximum number of disputed labels that are kept per system.
const KEPT: usize = 10_000;
/// First line of a CSV file of disputed labels.
const HEADER: &str = "ranking,query_id,doc_id,label,score,rank,better_labelled,mean_better_label,margin,dispute,query_text,title";

const FORMATS: OutputFormats = OutputFormats {
    what: "disputed labels",
    takes: &[FileFormat::Csv],
    takes_unknown: false,
    takes_compression: false,
};

/// A document whose label may be wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DisputedLabel {
    /// The query.
    pub query: String,
    /// The document. `None` if the table has no document ids.
    pub document: Option<String>,
    /// The label.
    pub label: f32,
    /// The score.
    pub score: f64,
    /// The rank.
    pub rank: u32,
    /// Number of documents of the query with a higher label.
    pub better: usize,
    /// Mean label of these documents.
    pub better_label: f64,
    /// The score minus their mean score, in standard deviations of the query's scores.
    pub margin: f64,
}

impl DisputedLabel {
    /// Returns the strength of the dispute: the margin of the score times the difference of the labels.
    pub(crate) fn strength(&self) -> f64 {
        self.margin * (self.better_label - f64::from(self.label))
    }
}

/// One document of a query.
struct Row {
    document: Option<String>,
    label: f32,
    score: f64,
    rank: u32,
}

/// Returns the disputed labels of a system, strongest first. Empty if the system has no labelled predictions.
pub(crate) fn disputed_labels(system: &ReportSystem) -> Result<Vec<DisputedLabel>> {
    let (Some(location), Ok(_)) = (&system.predictions, &system.judged) else { return Ok(Vec::new()) };
    let table = TableReader::open(location, TableKind::Predictions)?;
    let (mut found, mut query, mut rows) = (Vec::new(), String::new(), Vec::new());
    for batch in table.batches() {
        let batch = batch?;
        let (queries, ids) =
            (string_column(&table, &batch, "query_id")?, string_column(&table, &batch, "doc_id")?);
        let (labels, scores) =
            (float_column(&table, &batch, "label")?, float_column(&table, &batch, "score")?);
        let ranks = float_column(&table, &batch, "rank")?;
        for row in 0..batch.num_rows() {
            if queries.value(row) != query {
                add_query(&query, &rows, &mut found);
                (query, rows) = (queries.value(row).to_owned(), Vec::new());
            }
            if labels.is_valid(row) {
                rows.push(Row {
                    document: ids.is_valid(row).then(|| ids.value(row).to_owned()),
                    label: labels.value(row) as f32,
                    score: scores.value(row),
                    rank: ranks.value(row) as u32,
                });
            }
        }
        if found.len() > 4 * KEPT {
            strongest(&mut found);
        }
    }
    add_query(&query, &rows, &mut found);
    strongest(&mut found);
    Ok(found)
}

/// Keeps the strongest disputes, in order. Equal ones stay in the order of the table.
fn strongest(found: &mut Vec<DisputedLabel>) {
    found.sort_by(|one, other| other.strength().total_cmp(&one.strength()));
    found.truncate(KEPT);
}

/// Adds the disputed labels of a query.
fn add_query(query: &str, rows: &[Row], found: &mut Vec<DisputedLabel>) {
    let count = rows.len() as f64;
    let mean = rows.iter().map(|row| row.score).sum::<f64>() / count;
    let deviation = (rows.iter().map(|row| (row.score - mean).powi(2)).sum::<f64>() / count).sqrt();
    if !(deviation.is_finite() && deviation > 0.0) {
        return;
    }
    // With documents in descending order of labels, those with better labels are a prefix.
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|one, other| other.label.total_cmp(&one.label));
    let (mut better, mut scores, mut labels, mut start) = (0, 0.0, 0.0, 0);
    while start < order.len() {
        let end = start + order[start..].iter().take_while(|row| row.label == order[start].label).count();
        let end = end.max(start + 1); // a label that is not a number equals no other
        for row in &order[start..end] {
            let margin = (row.score - scores / better as f64) / deviation;
            if better > 0 && margin > 0.0 {
                found.push(DisputedLabel {
                    query: query.to_owned(),
                    document: row.document.clone(),
                    label: row.label,
                    score: row.score,
                    rank: row.rank,
                    better,
                    better_label: labels / better as f64,
                    margin,
                });
            }
        }
        for row in &order[start..end] {
            (better, scores, labels) = (better + 1, scores + row.score, labels + f64::from(row.label));
        }
        start = end;
    }
}

/// Returns disputed labels as CSV, at most `most` per system.
pub(crate) fn as_csv<'d>(
    systems: impl Iterator<Item = (&'d str, &'d [DisputedLabel])>,
    display: &Display,
    most: usize,
) -> String {
    let mut text = format!("{HEADER}\n");
    for (name, disputed) in systems {
        for it in disputed.iter().take(most) {
            let document = it.document.as_deref().unwrap_or_default();
            let fields = [
                quoted(name),
                quoted(&it.query),
                quoted(document),
                it.label.to_string(),
                it.score.to_string(),
                it.rank.to_string(),
                it.better.to_string(),
                format!("{:.4}", it.better_label),
                format!("{:.4}", it.margin),
                format!("{:.4}", it.strength()),
                quoted(display.text(&it.query).unwrap_or_default()),
                quoted(display.title(&it.query, document).unwrap_or_default()),
            ];
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// Quotes a text if it needs quotes. A spreadsheet would run a text that begins like a formula, so it gets an apostrophe
/// unless it is a number.
fn quoted(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    let text = if is_formula { &format!("'{text}") } else { text };
    match text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Prepares to write the CSV file. An existing file is replaced only if it has the same header.
pub(crate) fn create(output: &Location) -> Result<FileOutput> {
    FORMATS.of(output)?;
    FileOutput::guarded(output, replaces(|head| head.bytes.starts_with(HEADER.as_bytes())))
}

/// Writes the disputed labels of all systems as CSV.
pub(crate) fn write(material: &Material, output: &Location) -> Result<()> {
    let systems = material.systems.iter().zip(&material.disputed);
    let systems = systems.map(|(system, disputed)| (system.name.as_str(), disputed.as_slice()));
    let mut file = create(output)?;
    let text = as_csv(systems, &material.display, KEPT);
    file.write_all(text.as_bytes()).map_err(|error| Error::io(output, "write", error))?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_disputed_if_better_ones_score_lower() {
        let row = |label: f32, score: f64| Row { document: None, label, score, rank: 1 };
        let rows = [row(0.0, 3.0), row(2.0, 1.0), row(1.0, 2.0), row(0.0, -1.0)];
        let mut found = Vec::new();
        add_query("q", &rows, &mut found);
        strongest(&mut found);
        let deviation = (35.0_f64 / 16.0).sqrt();
        let expected = [(0.0, 2, 1.5, 1.5 / deviation), (1.0, 1, 2.0, 1.0 / deviation)];
        let expected = expected
            .map(|(label, better, mean, margin): (f32, usize, f64, f64)| (label, better, mean, margin));
        assert_eq!(found.len(), 2, "{found:?}");
        for (it, (label, better, mean, margin)) in found.iter().zip(expected) {
            assert_eq!((it.label, it.better, it.better_label), (label, better, mean));
            assert!((it.margin - margin).abs() < 1e-12);
        }
        let mut none = Vec::new();
        add_query("q", &[row(1.0, 2.0), row(0.0, 1.0)], &mut none);
        add_query("q", &[row(1.0, 2.0), row(0.0, 2.0)], &mut none);
        add_query("q", &[], &mut none);
        assert!(none.is_empty());
    }

    #[test]
    fn csv_fields_are_quoted() {
        for formula in ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1"] {
            assert_eq!(quoted(formula), format!("'{formula}"));
        }
        assert_eq!(quoted("=HYPERLINK(\"a\",1)"), "\"'=HYPERLINK(\"\"a\"\",1)\"");
        assert_eq!([quoted("a-1"), quoted("2=3"), quoted("-17")], ["a-1", "2=3", "-17"]);
        assert_eq!([quoted("a"), quoted("a,b"), quoted("say \"a\"")], ["a", "\"a,b\"", "\"say \"\"a\"\"\""]);
    }
}
