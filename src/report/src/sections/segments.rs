//! Renders the section that shows the metric within groups of queries.

use super::Content;
use crate::chart::{Axis, Chart, IntervalRow, rounded};
use crate::display::{SEGMENTS, SegmentColumn};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{Material, QuerySet};
use crate::number::{count, or_dash, value};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_judge::compare::QueryValue;
use planetree_metric::Metric;
use std::collections::BTreeMap;

/// Maximum number of systems in a chart. The table has all of them.
const DRAWN: usize = 3;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.display.segments.is_empty() || material.sets.is_empty() {
        return Ok(Content::Nothing);
    }
    // The value of these metrics is not the mean over queries.
    if matches!(material.judging.metric, Metric::Rmse | Metric::AucPooled | Metric::PartialAucPooled(..)) {
        return Ok(Content::Absent(format!("{} is not a mean over queries.", material.judging.metric)));
    }
    let mut panels = Vec::new();
    for set in &material.sets {
        let mut columns = Vec::new();
        for column in &material.display.segments {
            if let Some(figure) = figure(material, set, column) {
                columns.push((column.name.clone(), page.figure_with_table(figure)));
            }
        }
        if !columns.is_empty() {
            panels.push((set.name.clone(), page.tabs("Columns", columns)));
        }
    }
    Ok(match panels.is_empty() {
        true => Content::Absent("The display table has none of the ranked queries.".to_owned()),
        false => Content::Shown(page.tabs("Queries", panels)),
    })
}

/// Mean, half of the 95 % interval, and number of values.
fn mean_of(values: &[f64]) -> Option<(f64, f64, usize)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = if values.len() > 1 { 1.96 * (variance / count).sqrt() } else { 0.0 };
    (!values.is_empty()).then_some((mean, half, values.len()))
}

fn figure(material: &Material, set: &QuerySet, column: &SegmentColumn) -> Option<Figure> {
    let metric = material.judging.metric.to_string();
    let systems: Vec<(usize, &str, &Vec<QueryValue>)> = material
        .members(set)
        .filter_map(|(slot, system)| {
            Some((slot, system.name.as_str(), &system.judged.as_ref().ok()?.queries))
        })
        .collect();
    let mut segments: BTreeMap<Option<&str>, Vec<Vec<f64>>> = BTreeMap::new();
    let mut sizes: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    for (place, (_, _, queries)) in systems.iter().enumerate() {
        for query in *queries {
            let segment = column.of.get(&query.query).map(String::as_str);
            let values = segments.entry(segment).or_insert_with(|| vec![Vec::new(); systems.len()]);
            values[place].extend(query.value);
            *sizes.entry(segment).or_default() += u64::from(place == 0);
        }
    }
    segments.keys().flatten().next()?; // none of the queries is in the table
    let mut heads = vec![words(&column.name), figures("queries")];
    heads.extend(systems.iter().map(|(_, name, _)| figures(name)));
    let mut table = HtmlTable::new(heads);
    let mut rows = Vec::new();
    for (segment, values) in &segments {
        let name = segment.map_or_else(|| "(none)".to_owned(), shortened);
        let mut cells = vec![Html::text(&name), count(sizes[segment])];
        cells.extend(values.iter().map(|values| or_dash(mean_of(values).map(|(mean, ..)| mean))));
        table.row(cells);
        for ((slot, system, _), values) in systems.iter().zip(values).take(DRAWN) {
            let Some((mean, half, counted)) = mean_of(values) else { continue };
            let row = if systems.len() > 1 { format!("{name}: {}", shortened(system)) } else { name.clone() };
            let tells = [
                ("mean", value(mean)),
                ("interval", format!("{} to {}", value(mean - half), value(mean + half))),
                ("queries", counted.to_string()),
            ];
            rows.push(IntervalRow {
                name: row,
                low: rounded(mean - half),
                middle: rounded(mean),
                high: rounded(mean + half),
                slot: *slot,
                dots: Vec::new(),
                tells: tells.map(|(name, text)| (name.to_owned(), text)).into(),
            });
        }
    }
    let more = match systems.len() > DRAWN {
        true => format!(" The first {DRAWN} rankings; the table has all."),
        false => String::new(),
    };
    Some(Figure {
        title: format!("{metric} by {}", shortened(&column.name)),
        note: format!(
            "Means over the queries of a segment, with 95 % intervals (normal approximation).{more} Columns with more than \
             {SEGMENTS} values, or several values for a query, are not shown."
        ),
        chart: Chart::Intervals { x: Axis::of(&metric), reference: None, rows },
        table,
    })
}
