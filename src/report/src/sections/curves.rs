//! Renders the section that shows the mean of each metric as a function of a varied parameter.

use super::Content;
use crate::chart::{Axis, COLOURS, Chart, LineSeries, rounded};
use crate::html::{Html, HtmlTable, figures};
use crate::material::Material;
use crate::number::{or_dash, shown_count};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_data::table::{TableKind, TableReader};
use planetree_judge::compare::{ComparedFile, ReadingRules, read_systems};
use planetree_judge::evaluate::{CONVENTION, CURVE, CurvePoint, METRICS, mean_of};
use planetree_metric::Metric;

/// Maximum number of metrics tables whose curves are shown.
const SHOWN: usize = 8;
/// Minimum ratio of the largest to the smallest parameter value for which the axis is logarithmic.
const WIDE: f64 = 16.0;

/// The mean of one metric for a series of systems, which differ in the value of one parameter.
struct MetricCurve {
    series: String,
    /// Pairs of a parameter value and the mean of the metric, in ascending order of the parameter value.
    points: Vec<(f64, f64)>,
}

impl MetricCurve {
    fn best(&self, metric: Metric) -> Option<f64> {
        let values = self.points.iter().map(|(_, value)| *value);
        values.reduce(|best, value| if metric.is_better(value, best) { value } else { best })
    }
}

/// The curves of a metrics table.
struct Curves {
    varied: String,
    convention: String,
    metrics: Vec<(Metric, Vec<MetricCurve>)>,
    queries: usize,
}

impl Curves {
    /// Reads the curves of a metrics table. Returns `None` if the systems in the table are not points on curves.
    fn read(table: &TableReader, threads: usize) -> Result<Option<Self>> {
        let Some(varied) = table.metadata(CURVE) else { return Ok(None) };
        let sources = [ComparedFile::new(table.location().clone())];
        let names = table.metadata(METRICS).unwrap_or_default().split(',');
        let mut curves = Curves {
            varied: varied.to_owned(),
            convention: table.metadata(CONVENTION).unwrap_or_default().to_owned(),
            metrics: Vec::new(),
            queries: 0,
        };
        for metric in names.filter_map(|name| name.parse::<Metric>().ok()) {
            let read = read_systems(&sources, &metric.to_string(), &ReadingRules::default(), threads)?;
            let mut courses: Vec<MetricCurve> = Vec::new();
            for system in &read.systems {
                curves.queries = system.queries.len();
                let counted = system.queries.iter().filter_map(|query| {
                    Some((query.value?, query.documents.map_or(1.0, |(documents, _)| documents as f64)))
                });
                let (Some(point), Some(mean)) = (CurvePoint::named(&system.name), mean_of(metric, counted))
                else {
                    continue;
                };
                match courses.iter_mut().find(|course| course.series == point.series) {
                    Some(course) => course.points.push((point.value, mean)),
                    None => {
                        courses.push(MetricCurve { series: point.series, points: vec![(point.value, mean)] })
                    }
                }
            }
            for course in &mut courses {
                course.points.sort_by(|one, other| one.0.total_cmp(&other.0));
            }
            curves.metrics.push((metric, courses));
        }
        Ok(Some(curves))
    }
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut found = Vec::new();
    for (name, entry) in material.tables(TableKind::Metrics) {
        let table = TableReader::open(&entry.location, TableKind::Metrics)?;
        found.extend(Curves::read(&table, material.judging.threads)?.map(|curves| (name, curves)));
    }
    if found.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for (name, curves) in found.iter().take(SHOWN) {
        let drawn: Html = curves
            .metrics
            .iter()
            .filter(|(_, courses)| !courses.is_empty())
            .map(|(metric, courses)| page.figure_with_table(figure(curves, *metric, courses)))
            .collect();
        panels.push((name.clone(), Html::classed("div", "grid", drawn)));
    }
    let mut html = page.tabs("Curves", panels);
    if found.len() > SHOWN {
        html.push(Html::paragraph("note", format_args!("The first {SHOWN} of {} are shown.", found.len())));
    }
    Ok(Content::Shown(html))
}

fn figure(curves: &Curves, metric: Metric, courses: &[MetricCurve]) -> Figure {
    let shown = &courses[..courses.len().min(COLOURS)];
    let name = |course: &MetricCurve| match course.series.as_str() {
        "" => metric.to_string(),
        series => series.to_owned(),
    };
    let mut values: Vec<f64> = shown.iter().flat_map(|course| &course.points).map(|point| point.0).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut table = HtmlTable::new(
        [figures(&curves.varied)].into_iter().chain(shown.iter().map(|course| figures(name(course)))),
    );
    let bests: Vec<Option<f64>> = shown.iter().map(|course| course.best(metric)).collect();
    for at in &values {
        let here =
            |course: &MetricCurve| course.points.iter().find(|point| point.0 == *at).map(|point| point.1);
        let cells = shown.iter().zip(&bests).map(|(course, best)| match here(course) {
            found if found.is_some() && found == *best => Html::element("strong", &[], or_dash(found)),
            found => or_dash(found),
        });
        table.row([Html::text(at)].into_iter().chain(cells));
    }
    let series: Vec<LineSeries> = (1..)
        .zip(shown)
        .map(|(slot, course)| LineSeries {
            name: name(course),
            slot,
            dashed: false,
            points: course.points.iter().map(|(at, value)| (*at, rounded(*value))).collect(),
            mark: None,
        })
        .collect();
    let mut note = format!(
        "Means over {} queries by the convention {}.",
        shown_count(curves.queries as u64),
        curves.convention
    );
    if courses.len() > COLOURS {
        note.push_str(&format!(" The first {COLOURS} of {} curves are shown.", courses.len()));
    }
    let axis = Axis {
        whole: values.iter().all(|value| value.fract() == 0.0),
        log: is_wide(&values),
        ..Axis::of(&curves.varied)
    };
    Figure {
        title: format!("{metric} by {}", curves.varied),
        note,
        chart: Chart::Lines { x: axis, y: Axis::of(&metric.to_string()), series },
        table,
    }
}

/// Returns whether ascending values span so wide a range that the axis should be logarithmic.
fn is_wide(values: &[f64]) -> bool {
    matches!(values, [least, .., most] if *least > 0.0 && most / least >= WIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_of_very_different_size_need_ratios() {
        assert!(is_wide(&[0.05, 0.3, 1.0]) && is_wide(&[1.0, 100.0]));
        assert!(!is_wide(&[1.0, 2.0, 8.0]) && !is_wide(&[0.0, 100.0]) && !is_wide(&[3.0]) && !is_wide(&[]));
    }
}
