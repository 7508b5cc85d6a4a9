//! What is in a log of rounds: how far each metric came.

use super::column::{numbers, texts};
use super::{Described, line};
use planetree_base::error::Result;
use planetree_base::size::shown_count;
use planetree_data::table::TableReader;
use planetree_metric::Convention;
use serde_json::json;
use std::fmt::Write;

/// One metric of one split over all rounds.
struct Course {
    split: String,
    metric: String,
    best: (u64, f64),
    last: (u64, f64),
}

impl Course {
    fn add(&mut self, round: u64, value: f64) {
        let is_better = if lower_is_better(&self.metric) { value < self.best.1 } else { value > self.best.1 };
        if is_better || self.best.1.is_nan() {
            self.best = (round, value);
        }
        self.last = (round, value);
    }
}

/// Errors and losses are the better the smaller they are; ranking metrics are not.
fn lower_is_better(metric: &str) -> bool {
    let name = metric.split('@').next().unwrap_or_default();
    matches!(name, "rmse" | "mse" | "mae") || name.contains("loss")
}

/// Describes a log of rounds.
pub fn describe(table: &TableReader) -> Result<Described> {
    let mut courses: Vec<Course> = Vec::new();
    let mut rounds = 0;
    for batch in table.batches() {
        let batch = batch?;
        let (round, value) = (numbers(table, &batch, "round")?, numbers(table, &batch, "value")?);
        let (split, metric) = (texts(table, &batch, "split")?, texts(table, &batch, "metric")?);
        for row in 0..batch.num_rows() {
            let (round, value) = (round.value(row) as u64, value.value(row));
            rounds = rounds.max(round);
            let known = courses
                .iter_mut()
                .find(|course| course.split == split.value(row) && course.metric == metric.value(row));
            match known {
                Some(course) => course.add(round, value),
                None => courses.push(Course {
                    split: split.value(row).to_owned(),
                    metric: metric.value(row).to_owned(),
                    best: (round, value),
                    last: (round, value),
                }),
            }
        }
    }
    let mut text = String::new();
    line(&mut text, "log of rounds", table.location());
    line(&mut text, "written by", table.metadata("planetree.writer").unwrap_or("-"));
    line(&mut text, "convention", table.metadata(Convention::KEY).unwrap_or("-"));
    line(&mut text, "last round", shown_count(rounds));
    if !courses.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<12} {:<12} {:>10} {:>12} {:>10} {:>12}",
            "split", "metric", "best round", "value", "last round", "value"
        );
    }
    for Course { split, metric, best, last } in &courses {
        let _ = writeln!(
            text,
            "{split:<12} {metric:<12} {:>10} {:>12.6} {:>10} {:>12.6}",
            best.0, best.1, last.0, last.1
        );
    }
    let courses: Vec<_> = courses
        .iter()
        .map(|Course { split, metric, best, last }| {
            json!({
                "split": split,
                "metric": metric,
                "best": { "round": best.0, "value": best.1 },
                "last": { "round": last.0, "value": last.1 },
            })
        })
        .collect();
    let json = json!({
        "rounds": table.location().to_string(),
        "writer": table.metadata("planetree.writer"),
        "convention": table.metadata(Convention::KEY),
        "last_round": rounds,
        "metrics": courses,
    });
    Ok(Described { text, json })
}
