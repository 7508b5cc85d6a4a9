//! Renders the section that shows the ranks and scores of documents by label.

use super::Content;
use crate::chart::{Axis, BoxRow, Chart, legend, rounded};
use crate::documents::{DEEPER, Documents, RANKS};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::{count, short};
use crate::page::{Figure, Page};
use planetree_base::error::Result;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        let mut systems = Vec::new();
        for ((_, system), documents) in material.members(set).zip(&set.documents) {
            let Some(documents) = documents else { continue };
            let mut charts = page.figure(ranks(&system.name, documents));
            charts.push(page.figure(scores(&system.name, documents)));
            systems.push((system.name.clone(), Html::classed("div", "grid", charts)));
        }
        if !systems.is_empty() {
            panels.push((set.name.clone(), page.tabs("Rankings", systems)));
        }
    }
    if !panels.is_empty() {
        return Ok(Content::Shown(page.tabs("Queries", panels)));
    }
    Ok(match (material.systems.is_empty(), material.sets.is_empty()) {
        (true, _) => Content::Nothing,
        (false, true) => Content::Absent(material.why_unjudged()),
        (false, false) => {
            Content::Absent("This section needs predictions, but the run has only metrics.".to_owned())
        }
    })
}

/// Creates the heat map that shows, for each rank, the fraction of documents with each label.
fn ranks(name: &str, documents: &Documents) -> Figure {
    let names: Vec<String> =
        (1..=RANKS).map(|rank| rank.to_string()).chain(DEEPER.map(|(name, _)| name.to_owned())).collect();
    let total = |column: usize| documents.grades.iter().map(|grade| grade.at_rank[column]).sum::<u64>();
    // Omit ranks that no query reaches.
    let columns = (0..names.len()).rev().find(|column| total(*column) > 0).map_or(1, |last| last + 1);
    let mut heads = vec![words("label")];
    heads.extend(names[..columns].iter().map(figures));
    let mut table = HtmlTable::new(heads);
    // The highest label is at the top.
    let (mut rows, mut shares, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for grade in documents.grades.iter().rev() {
        let share = |column: usize| grade.at_rank[column] as f64 / total(column).max(1) as f64;
        let of_row: Vec<f64> = (0..columns).map(share).collect();
        let mut cells = vec![Html::text(&grade.name)];
        cells.extend(of_row.iter().map(|share| Html::text(format_args!("{:.1} %", share * 100.0))));
        table.row(cells);
        rows.push(grade.name.clone());
        shares.push(of_row.into_iter().map(rounded).collect());
        counts.push(grade.at_rank[..columns].to_vec());
    }
    let mut note =
        "Share of each label among the documents at a rank. A good ranking has its large shares at the upper left."
            .to_owned();
    if documents.merged {
        note.push_str(" Neighbouring labels are merged.");
    }
    Figure {
        title: format!("Labels by rank, {name}"),
        note,
        chart: Chart::Heat {
            x: Axis::of("rank"),
            y: Axis::of("label"),
            columns: names[..columns].to_vec(),
            rows,
            shares,
            counts,
        },
        table,
    }
}

/// Creates the box plot of scores by label.
fn scores(name: &str, documents: &Documents) -> Figure {
    const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
    let mut table = HtmlTable::new([
        words("label"),
        figures("documents"),
        figures("mean"),
        figures("5 %"),
        figures("25 %"),
        figures("median"),
        figures("75 %"),
        figures("95 %"),
    ]);
    let mut rows = Vec::new();
    for grade in documents.grades.iter().rev().filter(|grade| !grade.scores.is_empty()) {
        let quantiles = SHARES.map(|share| grade.quantile(share));
        let mut cells = vec![Html::text(&grade.name), count(grade.count), Html::text(short(grade.mean))];
        cells.extend(quantiles.map(|quantile| Html::text(short(quantile))));
        table.row(cells);
        rows.push(BoxRow {
            name: format!("label {}", grade.name),
            quantiles: quantiles.map(rounded),
            mean: rounded(grade.mean),
            count: grade.count,
        });
    }
    let mut note = "Boxes hold the middle half of the documents, lines nine tenths. Labels that overlap are hard for the \
                    model to tell apart; only the order within a query counts."
        .to_owned();
    if documents.every > 1 {
        note.push_str(&format!(" Distributions are based on one in {} documents.", documents.every));
    }
    Figure {
        title: format!("Scores by label, {name}"),
        note,
        chart: Chart::Boxes {
            x: Axis::of("score"),
            reference: None,
            parts: legend(&[("median and middle half", 1), ("mean", 2)]),
            rows,
        },
        table,
    }
}
