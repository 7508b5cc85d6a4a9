//! Renders the section that shows the tables of a paper which the pipeline re-obtains: the paper's figures beside those
//! of the run, and whether the paper's findings hold.

mod results;

use super::Content;
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::page::Page;
use planetree_base::error::Result;
use planetree_run::pipeline::{Paper, PaperTable};
use results::{RunResults, Verdict, mean, shown};

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
            html.push(Html::card(&table.title, table_of(&results, table, paper).html()));
        }
    }
    Ok(if html.is_empty() { Content::Nothing } else { Content::Shown(html) })
}

/// Creates a table in the layout of the paper: the figures of the run, and those of the paper beside them.
fn table_of(results: &RunResults, table: &PaperTable, paper: &Paper) -> HtmlTable {
    let metrics = if table.metrics.is_empty() { &paper.metrics } else { &table.metrics };
    let mut datasets: Vec<&String> = table.rows.iter().flat_map(|row| row.theirs.keys()).collect();
    datasets.sort_unstable();
    datasets.dedup();
    let mut columns = vec![words("system")];
    for metric in metrics {
        columns.push(figures(format_args!("{metric}, ours")));
        columns.extend(datasets.iter().map(|dataset| figures(format_args!("{metric}, {dataset}"))));
    }
    let mut html = HtmlTable::new(columns);
    for row in &table.rows {
        let unit = results.matching(&row.system);
        let mut cells = vec![Html::name(if row.name.is_empty() { &row.system } else { &row.name })];
        for (place, metric) in metrics.iter().enumerate() {
            let theirs = |dataset: &&String| row.theirs.get(*dataset).and_then(|all| *all.get(place)?);
            cells.push(shown(metric, mean(&unit, metric)));
            cells.extend(datasets.iter().map(|dataset| shown(metric, theirs(dataset))));
        }
        html.row(cells);
    }
    html
}
