//! Renders the section that shows the metrics of three or more runs as a trend.

use super::Content;
use crate::chart::{Axis, COLOURS, Chart, LineSeries, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::Material;
use crate::number::or_dash;
use crate::page::{Figure, Page};
use planetree_base::error::Result;

/// Minimum number of runs.
const RUNS: usize = 3;
/// Maximum number of metrics.
const METRICS: usize = 4;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.runs.len() < RUNS {
        return Ok(Content::Nothing);
    }
    let lines = lines(material);
    if lines.is_empty() {
        return Ok(Content::Absent(
            "No ranking has the same name in two runs. A run with a single ranking always matches others."
                .to_owned(),
        ));
    }
    let mut charts = Html::new();
    for place in 0..material.judging.metrics.len().min(METRICS) {
        if let Some(figure) = figure(material, place, &lines) {
            charts.push(page.figure(figure));
        }
    }
    let mut html = Html::classed("div", "grid", charts);
    if material.sets.len() > 1 {
        html.push(Html::paragraph(
            "note",
            "The runs do not all rank the same queries, so differences may come from the queries.",
        ));
    }
    Ok(Content::Shown(html))
}

/// The systems of a line, one per run. `None` if a run has no such system.
type TrendLine = (String, Vec<Option<usize>>);

/// Returns the lines. Rankings of the same name in several runs are one line, and so are those of runs that have a
/// single ranking.
fn lines(material: &Material) -> Vec<TrendLine> {
    let of_run = |run: usize| material.systems.iter().filter(move |system| system.run == run);
    let mut lines: Vec<TrendLine> = Vec::new();
    for (place, system) in material.systems.iter().enumerate().filter(|(_, system)| system.judged.is_ok()) {
        let name = if of_run(system.run).count() == 1 { "ranking" } else { &system.entry };
        let line = match lines.iter().position(|(known, _)| known == name) {
            Some(line) => line,
            None => {
                lines.push((name.to_owned(), vec![None; material.runs.len()]));
                lines.len() - 1
            }
        };
        lines[line].1[system.run] = Some(place);
    }
    lines.retain(|(_, systems)| systems.iter().flatten().count() > 1);
    lines.truncate(COLOURS);
    lines
}

fn figure(material: &Material, place: usize, lines: &[TrendLine]) -> Option<Figure> {
    let metric = material.judging.metrics[place].to_string();
    let mean = |system: Option<usize>| {
        let judged = material.systems[system?].judged.as_ref().ok()?;
        judged.means.get(place).copied().flatten().filter(|mean| mean.is_finite())
    };
    let mut columns = vec![words("run")];
    columns.extend(lines.iter().map(|(name, _)| figures(name)));
    let mut table = HtmlTable::new(columns);
    for (run, contents) in material.runs.iter().enumerate() {
        let mut cells = vec![Html::name(&contents.name)];
        cells.extend(lines.iter().map(|(_, systems)| or_dash(mean(systems[run]))));
        table.row(cells);
    }
    let points = |systems: &[Option<usize>]| -> Vec<(f64, f64)> {
        let points =
            (1..).zip(systems).filter_map(|(run, system)| Some((f64::from(run), rounded(mean(*system)?))));
        points.collect()
    };
    let series: Vec<LineSeries> = (1..)
        .zip(lines)
        .map(|(slot, (name, systems))| LineSeries {
            name: shortened(name),
            slot,
            dashed: false,
            points: points(systems),
            mark: None,
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    let names = material.runs.iter().map(|run| shortened(&run.name)).collect();
    (!series.is_empty()).then(|| Figure {
        title: format!("{metric} by run"),
        note: format!("By the convention {}.", material.judging.rules()),
        chart: Chart::Lines { x: Axis { names, ..Axis::whole("run") }, y: Axis::of(&metric), series },
        table,
    })
}
