//! Renders the section that shows the metric of the first trees of each model, on the data that the model ranks.

use super::Content;
use crate::chart::{Axis, Chart, LineSeries, Mark, rounded};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::{Material, NamedDataset, QuerySet};
use crate::number::{count, shown_count, value};
use crate::page::{Figure, Page};
use arrow::array::Float32Array;
use planetree_base::error::{Error, Result};
use planetree_data::source::LabelledData;
use planetree_metric::{Mean, evaluate};
use planetree_model::model::{Combine, Model, Part, TreeEnsemble};
use planetree_model::predict::{Scorer, known_features};
use std::sync::Arc;

/// Maximum number of points of a line.
const POINTS: usize = 60;
/// Maximum number of rows times trees, which limits the time.
const WORK: u64 = 500_000_000;
/// Maximum number of values in memory: rows times features.
const VALUES: u64 = 100_000_000;

/// The metric of a system by number of trees.
struct Course {
    /// Number of the colour.
    slot: usize,
    name: String,
    /// Numbers of trees, each with the metric.
    points: Vec<(usize, f64)>,
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        let (mut lines, mut notes) = (Vec::new(), Vec::new());
        for (slot, system) in material.members(set) {
            let (Some(model), Some(dataset)) = (material.model_of(system), material.dataset_of(system))
            else {
                continue;
            };
            match course(material, &material.models[model].model, dataset) {
                Ok(Some(points)) => lines.push(Course { slot, name: system.name.clone(), points }),
                Ok(None) => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => notes.push(format!("{}: {error}", system.name)),
            }
        }
        let mut html = Html::new();
        if !lines.is_empty() {
            html.push(page.figure(figure(material, set, lines)));
        }
        for note in notes {
            html.push(Html::paragraph("note", format_args!("Not shown. {note}")));
        }
        if !html.is_empty() {
            panels.push((set.name.clone(), html));
        }
    }
    Ok(match panels.is_empty() {
        true => Content::Nothing,
        false => Content::Shown(page.tabs("Queries", panels)),
    })
}

/// Returns the metric of the first trees, for some numbers of trees. `None` if the model is not a sum or mean of
/// several trees.
fn course(material: &Material, model: &Model, dataset: &NamedDataset) -> Result<Option<Vec<(usize, f64)>>> {
    let Some(ensemble) = model.only_trees().filter(|it| is_course(it)) else {
        return Ok(None);
    };
    model.check_complete(&model.origin)?;
    let (rows, trees) = (dataset.manifest.rows, ensemble.trees.len());
    let used: Vec<u32> = model.used_features().into_iter().collect();
    if rows * trees as u64 > WORK || rows * used.len() as u64 > VALUES {
        return Err(Error::usage(
            format_args!(
                "{} rows, {trees} trees and {} features are too many for a report",
                shown_count(rows),
                used.len()
            ),
            format_args!(
                "the limits are {} rows times trees and {} values",
                shown_count(WORK),
                shown_count(VALUES)
            ),
        ));
    }
    let source = LabelledData::open(&dataset.location, Some(&known_features(model, Some(&used))))?;
    let (mut labels, mut bounds) = (Vec::new(), vec![0u32]);
    let mut columns: Vec<Vec<f32>> = vec![Vec::new(); used.len()];
    for partition in 0..source.partitions() {
        let opened = source.open_partition(partition)?;
        let rows = source.rows(partition, &opened)?;
        let before = labels.len() as u32;
        bounds.extend(rows.query_bounds[1..].iter().map(|bound| before + bound));
        labels.extend(rows.labels);
        for (column, feature) in columns.iter_mut().zip(&used) {
            column.extend(source.values(&opened, *feature as usize)?);
        }
    }
    if let Some(map) = &material.judging.label_map {
        let place = &dataset.name;
        map.apply(&mut labels).map_err(|row| map.unlisted(place, row as u64 + 1, labels[row]))?;
    }
    let columns: Vec<Float32Array> = columns.into_iter().map(Float32Array::from).collect();
    let mut by_feature: Vec<Option<&Float32Array>> = vec![None; model.features.len()];
    used.iter().zip(&columns).for_each(|(feature, column)| by_feature[*feature as usize] = Some(column));
    let convention = Arc::new(material.judging.convention.clone());
    let metric = material.judging.metric.prepare_under(&convention, &labels, &bounds)?;
    let metrics = [metric];
    let shell = Model {
        intercept: model.intercept,
        parts: Vec::new(),
        groups: Vec::new(),
        features: model.features.clone(),
        configuration: String::new(),
        data: Vec::new(),
        rounds: 0,
        start_scores: None,
        origin: model.origin.clone(),
    };
    let queries: Vec<usize> = bounds.iter().map(|bound| *bound as usize).collect();
    let mut sums = vec![0.0; labels.len()];
    let mut some = vec![0.0; labels.len()];
    let mut points = Vec::new();
    let mut done = 0;
    // The base score and the base feature are added to the sum of the trees, which the first chunk contains.
    for end in ends(trees) {
        let chunk = TreeEnsemble {
            combine: Combine::Sum,
            base_score: if done == 0 && ensemble.combine == Combine::Sum { ensemble.base_score } else { 0.0 },
            base_feature: ensemble.base_feature.filter(|_| done == 0 && ensemble.combine == Combine::Sum),
            trees: ensemble.trees[done..end].to_vec(),
            ..*ensemble
        };
        let chunk = Model { parts: vec![Part::trees(chunk)], ..shell.clone() };
        Scorer::new(&chunk)?.score_queries(&by_feature, &queries, &mut some)?;
        sums.iter_mut().zip(&some).for_each(|(sum, more)| *sum += more);
        done = end;
        let weight = if ensemble.combine == Combine::Mean { 1.0 / end as f64 } else { 1.0 };
        let base = if ensemble.combine == Combine::Mean { ensemble.base_score } else { 0.0 };
        let scores: Vec<f64> = sums.iter().map(|sum| base + weight * sum).collect();
        let mean = evaluate(&metrics, &labels, &scores, &bounds).first().map_or(f64::NAN, Mean::value);
        points.push((end, mean));
    }
    Ok(Some(points.into_iter().filter(|(_, mean)| mean.is_finite()).collect()))
}

/// Returns whether the first trees of an ensemble give scores of their own.
fn is_course(ensemble: &TreeEnsemble) -> bool {
    let has_base = ensemble.combine == Combine::Mean && ensemble.base_feature.is_some();
    ensemble.combine != Combine::Wins && !has_base && ensemble.trees.len() > 1
}

/// Returns the numbers of trees to evaluate: all if there are few, otherwise at regular intervals.
fn ends(trees: usize) -> Vec<usize> {
    let count = trees.min(POINTS);
    let mut ends: Vec<usize> = (1..=count).map(|place| (place * trees).div_ceil(count)).collect();
    if trees > POINTS {
        ends.insert(0, 1);
    }
    ends.dedup();
    ends
}

fn figure(material: &Material, set: &QuerySet, lines: Vec<Course>) -> Figure {
    let metric = material.judging.metric;
    let mut table = HtmlTable::new([
        words("ranking"),
        figures("trees"),
        figures("value"),
        figures("best number"),
        figures("value"),
    ]);
    let mut series = Vec::new();
    for Course { slot, name, points } in lines {
        let best = points
            .iter()
            .copied()
            .reduce(|one, other| if metric.is_better(other.1, one.1) { other } else { one });
        if let (Some((best, top)), Some((all, last))) = (best, points.last()) {
            table.row([
                Html::name(&name),
                count(*all as u64),
                Html::text(value(*last)),
                count(best as u64),
                Html::text(value(top)),
            ]);
        }
        series.push(LineSeries {
            name,
            slot,
            dashed: false,
            mark: best.map(|(trees, top)| Mark {
                x: trees as f64,
                y: rounded(top),
                text: format!("best: {trees}"),
            }),
            points: points.into_iter().map(|(trees, mean)| (trees as f64, rounded(mean))).collect(),
        });
    }
    let on = set.dataset.as_ref().map_or_else(String::new, |dataset| format!(" on {dataset}"));
    Figure {
        title: format!("{metric}{on} by number of trees"),
        note: format!(
            "By the convention {}. Choose the number of trees on validation data: the best one here is biased.",
            material.judging.rules()
        ),
        chart: Chart::Lines { x: Axis::whole("trees"), y: Axis::of(&metric.to_string()), series },
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_number_of_trees_are_evaluated() {
        assert_eq!(ends(3), [1, 2, 3]);
        let many = ends(1000);
        assert!(many.len() <= POINTS + 1 && many[0] == 1 && many[many.len() - 1] == 1000, "{many:?}");
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
