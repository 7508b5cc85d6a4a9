//! Renders the section that shows the tables of a paper which the pipeline re-obtains: the paper's figures beside those
//! of the run, and whether the paper's findings hold.

mod by_part;
mod systems;
mod verdict;

use super::Content;
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::or_dash;
use crate::page::Page;
use planetree_base::error::Result;
use planetree_run::pipeline::{Paper, PaperRow, PaperTable};
use systems::{RunResults, higher_is_better, mean, shown};
use verdict::Verdict;

/// Renders the section.
pub(super) fn make(material: &Material, _: &mut Page) -> Result<Content> {
    let mut html = Html::new();
    for run in &material.runs {
        let Some(paper) = run.manifest.as_ref().and_then(|manifest| manifest.paper.as_ref()) else {
            continue;
        };
        let results = RunResults::read(run, paper, material.judging.threads)?;
        html.push(Html::paragraph("note", &paper.source));
        if !paper.differences.is_empty() {
            html.push(Html::paragraph("note", format_args!("Differences: {}", paper.differences)));
        }
        let mut findings =
            HtmlTable::new([words("finding"), words("metric"), words("verdict"), words("evidence")]);
        for finding in &paper.findings {
            let metrics = if finding.metrics.is_empty() { &paper.metrics } else { &finding.metrics };
            for metric in metrics {
                let (verdict, evidence) = results.judge(finding, metric)?;
                let cells = [finding.text.as_str(), metric.as_str(), verdict.words(), evidence.as_str()]
                    .map(Html::name);
                if matches!(verdict, Verdict::Beyond | Verdict::Same) {
                    findings.best_row(cells)
                } else {
                    findings.row(cells)
                }
            }
        }
        html.push(Html::card("Findings", findings.html()));
        for table in &paper.tables {
            html.push(Html::card(&table.title, table_of(&results, table, paper)));
        }
        let parameter = |name: &str| {
            let value = run.manifest.as_ref().and_then(|manifest| manifest.parameters.get(name));
            value.map_or("", String::as_str)
        };
        let data = by_part::RunData { folder: parameter("data"), parts: parameter("parts") };
        for table in &paper.by_part {
            html.push(by_part::cards(&results, table, paper, data));
        }
    }
    Ok(if html.is_empty() { Content::Nothing } else { Content::Shown(html) })
}

/// Creates a table in the layout of the paper: the figures of the run, and those of the paper beside them. Columns
/// without figures and rows that were not run are left out, and a note names the rows.
fn table_of(results: &RunResults, table: &PaperTable, paper: &Paper) -> Html {
    let metrics = if table.metrics.is_empty() { &paper.metrics } else { &table.metrics };
    let mut datasets: Vec<&String> = table.rows.iter().flat_map(|row| row.theirs.keys()).collect();
    datasets.sort_unstable();
    datasets.dedup();
    let of_metric = |place: usize| -> Vec<&String> {
        let has =
            |dataset: &&String| table.rows.iter().any(|row| paper_figure(row, place, dataset).is_some());
        datasets.iter().copied().filter(has).collect()
    };
    let mut columns = vec![words("system")];
    for (place, metric) in metrics.iter().enumerate() {
        let shown_as = if table.relative { "relative to the best" } else { "ours" };
        columns.push(figures(format_args!("{metric}, {shown_as}")));
        columns.extend(of_metric(place).iter().map(|dataset| figures(format_args!("{metric}, {dataset}"))));
    }
    let mut html = HtmlTable::new(columns);
    let mut missing = Vec::new();
    for row in &table.rows {
        let unit = results.matching(&row.system);
        let name = if row.name.is_empty() { &row.system } else { &row.name };
        if metrics.iter().all(|metric| mean(&unit, metric).is_none()) {
            missing.push(name.as_str());
            continue;
        }
        let mut cells = vec![Html::name(name)];
        for (place, metric) in metrics.iter().enumerate() {
            let ours = mean(&unit, metric);
            cells.push(match table.relative {
                true => or_dash(ours.zip(best_of(results, table, metric)).map(|(value, best)| value / best)),
                false => shown(metric, ours),
            });
            let theirs = of_metric(place).into_iter().map(|dataset| paper_figure(row, place, dataset));
            cells.extend(theirs.map(|value| shown(metric, value)));
        }
        html.row(cells);
    }
    let note = match missing.is_empty() {
        true => Html::new(),
        false => Html::paragraph("note", format_args!("Not in this run: {}.", missing.join(", "))),
    };
    html.html().and(note)
}

/// Returns a figure of the paper; `None` if it gives none.
fn paper_figure(row: &PaperRow, place: usize, dataset: &str) -> Option<f64> {
    *row.theirs.get(dataset)?.get(place)?
}

/// Returns the best value of a metric among the rows of a table.
fn best_of(results: &RunResults, table: &PaperTable, metric: &str) -> Option<f64> {
    let values = table.rows.iter().filter_map(|row| mean(&results.matching(&row.system), metric));
    let sign = if higher_is_better(metric) { 1.0 } else { -1.0 };
    values.max_by(|one, other| (sign * one).total_cmp(&(sign * other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::paper::systems::SystemResult;

    #[test]
    fn a_table_has_what_was_run_and_the_figures_that_are_known() {
        let system = |name: &str, err: f64| SystemResult {
            means: [("err".to_owned(), err), ("seconds".to_owned(), 2.0)].into(),
            ..SystemResult::named(name)
        };
        let results = RunResults::of(vec![system("a", 0.25), system("b", 0.5)]);
        let row = |system: &str, theirs: Option<f64>| PaperRow {
            system: system.to_owned(),
            name: system.to_uppercase(),
            theirs: [("Set 1".to_owned(), vec![theirs, None])].into(),
        };
        let paper = Paper {
            source: String::new(),
            differences: String::new(),
            metrics: vec!["err".to_owned(), "seconds".to_owned()],
            system_differences: Vec::new(),
            tables: Vec::new(),
            by_part: Vec::new(),
            findings: Vec::new(),
        };
        let mut table = PaperTable {
            title: String::new(),
            metrics: Vec::new(),
            relative: false,
            rows: vec![row("a", Some(0.125)), row("b", None), row("x", Some(0.75))],
        };
        let html = table_of(&results, &table, &paper);
        let text = html.as_str();
        for part in [">err, ours<", ">err, Set 1<", ">0.2500<", ">0.1250<", "Not in this run: X."] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("seconds, Set 1") && !text.contains("0.7500"), "{text}");
        table.relative = true;
        table.metrics = vec!["err".to_owned()];
        let html = table_of(&results, &table, &paper);
        let text = html.as_str();
        assert!(text.contains(">err, relative to the best<") && text.contains(">0.5000<"), "{text}");
        assert!(text.contains(">1.0000<") && !text.contains(">0.2500<"), "{text}");
    }
}
