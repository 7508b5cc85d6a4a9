//! Renders the section that shows the time and memory of each pipeline step, from the manifests of the runs.

use super::Content;
use crate::chart::{BarRow, Chart, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::Material;
use crate::number::{count, seconds, shown_size};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_run::pipeline::RunStep;

/// Maximum number of steps shown per run.
const STEPS: usize = 60;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for run in &material.runs {
        let Some(manifest) = &run.manifest else { continue };
        if manifest.steps.is_empty() {
            continue;
        }
        // The step that writes this report is not finished, so it has no time yet.
        let steps: Vec<&RunStep> = manifest
            .steps
            .iter()
            .filter(|step| step.status.is_finished() || step.kind != "report")
            .take(STEPS)
            .collect();
        let time = |step: &RunStep| Some((step.seconds?, seconds(step.seconds?)));
        let memory = |step: &RunStep| {
            let bytes = step.peak_memory_bytes?;
            Some((bytes as f64, shown_size(bytes)))
        };
        let both = [
            figure("Time of each step", "time", &steps, &time),
            figure("Peak memory of each step", "peak memory", &steps, &memory),
        ];
        let charts: Html = both.into_iter().flatten().map(|figure| page.figure(figure)).collect();
        let mut html = Html::classed("div", "grid", charts).and(Html::card("Steps", table(&steps).html()));
        if manifest.steps.len() > STEPS {
            html.push(Html::paragraph(
                "note",
                format_args!("The first {STEPS} of {} steps are shown.", manifest.steps.len()),
            ));
        }
        panels.push((run.name.clone(), html));
    }
    Ok(match panels.is_empty() {
        true => Content::Absent(
            "No run manifest; `planetree run` writes one with the time and memory of each step.".to_owned(),
        ),
        false => Content::Shown(page.tabs("Runs", panels)),
    })
}

fn figure(
    title: &str,
    measure: &str,
    steps: &[&RunStep],
    of: &dyn Fn(&RunStep) -> Option<(f64, String)>,
) -> Option<Figure> {
    let mut table = HtmlTable::new([words("step"), words("command"), figures(measure)]);
    let mut rows = Vec::new();
    for step in steps {
        let Some((value, text)) = of(step) else { continue };
        table.row([Html::name(&step.name), Html::name(&step.kind), Html::text(&text)]);
        rows.push(BarRow { name: shortened(&step.name), value: rounded(value), text, slot: 1 });
    }
    (!rows.is_empty()).then(|| Figure {
        title: title.to_owned(),
        note: "In the order of the run.".to_owned(),
        chart: Chart::Bars { measure: measure.to_owned(), rows },
        table,
    })
}

fn table(steps: &[&RunStep]) -> HtmlTable {
    let mut table = HtmlTable::new([
        words("step"),
        words("command"),
        words("status"),
        figures("time"),
        figures("peak memory"),
        figures("rows"),
        figures("written"),
        words("error"),
    ]);
    let dash = || Html::text("–");
    for step in steps {
        let command: String = format!("planetree {}", step.arguments.join(" "));
        table.row([
            Html::name(&step.name),
            Html::element("span", &[("title", &shortened(&command))], Html::name(&step.kind)),
            Html::classed(
                "span",
                if step.status.is_finished() { "badge yes" } else { "badge" },
                Html::text(step.status.name()),
            ),
            step.seconds.map_or_else(dash, |time| Html::text(seconds(time))),
            step.peak_memory_bytes.map_or_else(dash, |bytes| Html::text(shown_size(bytes))),
            step.rows.map_or_else(dash, count),
            step.bytes.map_or_else(dash, |bytes| Html::text(shown_size(bytes))),
            Html::name(step.error.as_deref().unwrap_or("")),
        ]);
    }
    table
}
