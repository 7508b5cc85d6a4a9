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

/// Returns the range of a metric for labels that are not negative.
fn range(metric: &Metric) -> [f64; 2] {
    match metric {
        Metric::Dcg(_) | Metric::Rmse | Metric::Custom(_) => [f64::NEG_INFINITY, f64::INFINITY],
        Metric::Inversions => [0.0, f64::INFINITY],
        Metric::KendallTau => [-1.0, 1.0],
        _ => [0.0, 1.0],
    }
}

/// Mean, 95 % interval within the range of the metric, and number of values.
fn mean_of(values: &[f64], metric: &Metric) -> Option<(f64, [f64; 2], usize)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = if values.len() > 1 { 1.96 * (variance / count).sqrt() } else { 0.0 };
    // Negative labels may lead to values outside of the range.
    let [least, most] = range(metric);
    let low = (mean - half).max(values.iter().copied().fold(least, f64::min));
    let high = (mean + half).min(values.iter().copied().fold(most, f64::max));
    (!values.is_empty()).then_some((mean, [low, high], values.len()))
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
        let means = values.iter().map(|values| mean_of(values, &material.judging.metric));
        cells.extend(means.map(|mean| or_dash(mean.map(|(mean, ..)| mean))));
        table.row(cells);
        for ((slot, system, _), values) in systems.iter().zip(values).take(DRAWN) {
            let Some((mean, [low, high], counted)) = mean_of(values, &material.judging.metric) else {
                continue;
            };
            let row = if systems.len() > 1 { format!("{name}: {}", shortened(system)) } else { name.clone() };
            let tells = [
                ("mean", value(mean)),
                ("interval", format!("{} to {}", value(low), value(high))),
                ("queries", counted.to_string()),
            ];
            rows.push(IntervalRow {
                name: row,
                low: rounded(low),
                middle: rounded(mean),
                high: rounded(high),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_stays_within_the_range_of_the_metric() {
        let (mean, interval, count) = mean_of(&[1.0, 1.0, 0.9], &Metric::Ndcg(None)).unwrap();
        assert!((mean - 2.9 / 3.0).abs() < 1e-12 && interval[0] < mean);
        assert_eq!((interval[1], count), (1.0, 3));
        assert_eq!(mean_of(&[0.0, 0.1], &Metric::Inversions).unwrap().1[0], 0.0);
        assert!(mean_of(&[0.0, 0.1], &Metric::Dcg(None)).unwrap().1[0] < 0.0);
        assert!(mean_of(&[-0.5, 0.1], &Metric::Ndcg(None)).unwrap().1[0] >= -0.5);
        assert!(mean_of(&[], &Metric::Ndcg(None)).is_none());
    }
}
