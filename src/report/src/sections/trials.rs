//! Renders the section that shows the ranked trials of parameter searches.

use super::Content;
use crate::chart::{Axis, Chart, IntervalRow, rounded};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::value;
use crate::page::{Figure, Page};
use crate::trials::Trials;
use planetree_base::error::Result;
use planetree_data::table::TableKind;

/// Maximum number of trials in a chart.
const DRAWN: usize = 15;
/// Maximum number of trials in a table.
const LISTED: usize = 100;
/// Maximum number of searches shown.
const SHOWN: usize = 8;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let tables = material.tables(TableKind::Trials);
    if tables.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for (name, entry) in tables.iter().take(SHOWN) {
        panels.push((name.clone(), page.figure_with_table(figure(&Trials::read(&entry.location)?))));
    }
    let mut html = page.tabs("Searches", panels);
    if tables.len() > SHOWN {
        html.push(Html::paragraph("note", format_args!("The first {SHOWN} of {} are shown.", tables.len())));
    }
    Ok(Content::Shown(html))
}

fn figure(trials: &Trials) -> Figure {
    let mut columns =
        vec![figures("rank"), figures("trial"), figures("valid"), figures("deviation"), figures("test")];
    columns.extend(trials.parameters.iter().map(words));
    columns.push(words("problem"));
    let mut table = HtmlTable::new(columns);
    let shown = |pair: Option<f64>| Html::text(pair.map_or_else(|| "–".to_owned(), value));
    for (rank, trial) in (1..).zip(trials.ranking.iter().take(LISTED)) {
        let mut cells = vec![
            Html::text(rank),
            Html::text(trial.number),
            shown(trial.valid.map(|(mean, _)| mean)),
            shown(trial.valid.map(|(_, deviation)| deviation)),
            shown(trial.test.map(|(mean, _)| mean)),
        ];
        cells.extend(trial.values.iter().map(|value| Html::name(value)));
        cells.push(Html::name(trial.problem.as_deref().unwrap_or("")));
        if rank == 1 { table.best_row(cells) } else { table.row(cells) }
    }
    let rows: Vec<IntervalRow> = trials
        .ranking
        .iter()
        .take(DRAWN)
        .filter_map(|trial| {
            let (mean, deviation) = trial.valid?;
            let mut tells = vec![("valid".to_owned(), format!("{} ± {}", value(mean), value(deviation)))];
            tells.extend(trial.test.map(|(mean, deviation)| {
                ("test".to_owned(), format!("{} ± {}", value(mean), value(deviation)))
            }));
            tells.extend(trials.parameters.iter().cloned().zip(trial.values.iter().cloned()));
            Some(IntervalRow {
                name: format!("trial {}", trial.number),
                low: rounded(mean - deviation),
                middle: rounded(mean),
                high: rounded(mean + deviation),
                slot: 1,
                dots: Vec::new(),
                tells,
            })
        })
        .collect();
    let all = trials.ranking.len();
    let mut note = format!(
        "{} Mean over the folds' validation parts and one standard deviation, the best trial first.",
        trials.convention
    );
    if all > DRAWN {
        note.push_str(&format!(" The first {DRAWN} of {all} trials; the table has {}.", all.min(LISTED)));
    }
    Figure {
        title: format!("{} of {all} trials", trials.metric),
        note,
        chart: Chart::Intervals { x: Axis::of(&trials.metric), reference: None, rows },
        table,
    }
}
