//! Renders the section that shows learning curves, which are the values of each metric on the training data and on
//! the validation data after every round.

use super::Content;
use crate::chart::{Axis, COLOURS, Chart, LineSeries, Mark, rounded};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::{count, value};
use crate::page::{Figure, Page};
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, float_column, split_column, string_column};
use planetree_metric::Metric;

/// Maximum number of points of a line. If there are more rounds, they are sampled at regular intervals. The best and
/// the last round are always included.
const POINTS: usize = 300;
/// Maximum number of training logs shown.
const LOGS: usize = 12;

/// The values of one metric after each round, on the training data or on one validation dataset.
struct LearningCurve {
    split: String,
    metric: String,
    points: Vec<(u64, f64)>,
}

impl LearningCurve {
    /// Returns the best round and its value. If several rounds are equally good, returns the first of them, as
    /// training does.
    fn best(&self) -> Option<(u64, f64)> {
        let metric = self.metric.parse::<Metric>().ok();
        let better = |one: f64, other: f64| match &metric {
            Some(metric) => metric.is_better(one, other),
            None => {
                self.metric.contains("loss") && one < other || !self.metric.contains("loss") && one > other
            }
        };
        self.points.iter().copied().reduce(|best, point| if better(point.1, best.1) { point } else { best })
    }

    /// Returns the points to draw, which are sampled if there are many rounds.
    fn thinned(&self) -> Vec<(f64, f64)> {
        let every = self.points.len().div_ceil(POINTS).max(1);
        let best = self.best().map(|(round, _)| round);
        let last = self.points.len().saturating_sub(1);
        let points = self.points.iter().enumerate();
        points
            .filter(|(place, (round, _))| place % every == 0 || *place == last || Some(*round) == best)
            .map(|(_, (round, value))| (*round as f64, rounded(*value)))
            .collect()
    }

    fn is_train(&self) -> bool {
        self.split == "train"
    }
}

/// The log of one training run. `convention` is a sentence that names the set of rules by which its metrics were
/// computed.
struct Log {
    name: String,
    convention: String,
    courses: Vec<LearningCurve>,
}

impl Log {
    fn read(name: &str, location: &Location) -> Result<Self> {
        let table = TableReader::open(location, TableKind::Rounds)?;
        let convention = Material::convention_of(&table);
        Ok(Log { name: name.to_owned(), convention, courses: courses(&table)? })
    }
}

fn courses(table: &TableReader) -> Result<Vec<LearningCurve>> {
    let mut courses: Vec<LearningCurve> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let (rounds, values) = (float_column(table, &batch, "round")?, float_column(table, &batch, "value")?);
        let (splits, metrics) = (split_column(table, &batch)?, string_column(table, &batch, "metric")?);
        for row in (0..batch.num_rows()).filter(|row| values.is_valid(*row) && values.value(*row).is_finite())
        {
            let (split, metric) = (splits.value(row), metrics.value(row));
            let point = (rounds.value(row) as u64, values.value(row));
            match courses.iter_mut().find(|course| course.split == split && course.metric == metric) {
                Some(course) => course.points.push(point),
                None => courses.push(LearningCurve {
                    split: split.to_owned(),
                    metric: metric.to_owned(),
                    points: vec![point],
                }),
            }
        }
    }
    Ok(courses)
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let logs = material.tables(TableKind::Rounds);
    if logs.is_empty() {
        return Ok(match material.models.is_empty() {
            true => Content::Nothing,
            false => {
                Content::Absent("No log of rounds; `planetree train --rounds FILE` writes one.".to_owned())
            }
        });
    }
    let mut read = Vec::new();
    for (name, entry) in logs.iter().take(LOGS) {
        read.push(Log::read(name, &entry.location)?);
    }
    let mut panels = Vec::new();
    if let Some(all) = together(&read) {
        panels.push(("All".to_owned(), page.figure(all)));
    }
    for log in &read {
        let Log { name, courses, .. } = log;
        let mut metrics: Vec<&str> = courses.iter().map(|course| course.metric.as_str()).collect();
        metrics.dedup();
        metrics.sort_unstable();
        metrics.dedup();
        // Ranking metrics come first, because they are the goal of training.
        metrics.sort_by_key(|metric| !metric.parse::<Metric>().is_ok_and(|metric| metric.higher_is_better()));
        let figures: Html = metrics.iter().map(|metric| page.figure(of_metric(log, metric))).collect();
        panels.push((name.clone(), Html::classed("div", "grid", figures)));
    }
    let mut html = page.tabs("Trainings", panels);
    if logs.len() > LOGS {
        html.push(Html::paragraph(
            "note",
            format_args!("The first {LOGS} of {} logs are shown.", logs.len()),
        ));
    }
    Ok(Content::Shown(html))
}

fn of_metric(log: &Log, metric: &str) -> Figure {
    let lines = log.courses.iter().filter(|course| course.metric == metric);
    let lines: Vec<(String, bool, &LearningCurve)> =
        lines.map(|course| (course.split.clone(), course.is_train(), course)).collect();
    figure(format!("{metric} of {}", log.name), (metric, &log.convention), &lines)
}

/// Creates a figure that shows the validation curves of several training runs, for a metric that all of them have.
/// Returns `None` if there is no such metric, if there is only one training run, or if the metrics were computed by
/// different rules and are thus not comparable.
fn together(read: &[Log]) -> Option<Figure> {
    let convention = &read.first()?.convention;
    if read.len() < 2 || read.iter().any(|log| log.convention != *convention) {
        return None;
    }
    let course = |courses: &'_ [LearningCurve], metric: &str| -> Option<usize> {
        courses.iter().position(|course| !course.is_train() && course.metric == metric)
    };
    let metric =
        read[0].courses.iter().filter(|course| !course.is_train()).map(|course| course.metric.as_str());
    let metric =
        metric.into_iter().find(|metric| read.iter().all(|log| course(&log.courses, metric).is_some()))?;
    let lines: Vec<(String, bool, &LearningCurve)> = read
        .iter()
        .take(COLOURS)
        .filter_map(|log| Some((log.name.clone(), false, &log.courses[course(&log.courses, metric)?])))
        .collect();
    let title = format!("{metric} of all trainings on their validation sets");
    Some(figure(title, (metric, convention), &lines))
}

fn figure(
    title: String,
    (metric, convention): (&str, &str),
    lines: &[(String, bool, &LearningCurve)],
) -> Figure {
    let mut table = HtmlTable::new([
        words("split"),
        figures("best round"),
        figures("value"),
        figures("last round"),
        figures("value"),
    ]);
    let mut series = Vec::new();
    let mut thinned = false;
    for (slot, (name, dashed, course)) in (1..).zip(lines.iter().take(COLOURS)) {
        let best = course.best();
        let points = course.thinned();
        thinned |= points.len() < course.points.len();
        if let (Some((round, best)), Some((last, end))) = (best, course.points.last()) {
            table.row([
                Html::name(name),
                count(round),
                Html::text(value(best)),
                count(*last),
                Html::text(value(*end)),
            ]);
        }
        // The best round on the training data is not marked, because it does not show when to stop.
        let mark = best.filter(|_| !course.is_train()).map(|(round, best)| Mark {
            x: round as f64,
            y: rounded(best),
            text: format!("best: {round}"),
        });
        series.push(LineSeries { name: name.clone(), slot, dashed: *dashed, points, mark });
    }
    let left_out = if thinned { " Some rounds are omitted from the chart, never the best." } else { "" };
    Figure {
        title,
        note: format!("{convention}{left_out}"),
        chart: Chart::Lines { x: Axis::whole("round"), y: Axis::of(metric), series },
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_and_the_last_round_are_always_there() {
        let points: Vec<(u64, f64)> =
            (1..=5000).map(|round| (round, if round == 777 { 2.0 } else { 1.0 })).collect();
        let course = LearningCurve { split: "valid".into(), metric: "ndcg@10".into(), points };
        assert_eq!(course.best(), Some((777, 2.0)));
        let thinned = course.thinned();
        assert!(thinned.len() <= POINTS + 2, "{}", thinned.len());
        assert!(thinned.contains(&(777.0, 2.0)) && thinned.contains(&(5000.0, 1.0)));
    }

    #[test]
    fn of_an_error_the_least_is_best() {
        let points = vec![(1, 0.5), (2, 0.25), (3, 0.25), (4, 0.75)];
        let course = LearningCurve { split: "valid".into(), metric: "rmse".into(), points };
        assert_eq!(course.best(), Some((2, 0.25)));
    }
}
