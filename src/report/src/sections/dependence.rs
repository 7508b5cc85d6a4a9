//! Renders the section that shows the partial dependence of scores on the most important features (Friedman 2001).

use super::Content;
use crate::chart::{Axis, Chart, LineSeries, rounded};
use crate::html::{Html, HtmlTable, figures, shortened};
use crate::insight::Insight;
use crate::material::Material;
use crate::number::{short, value};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_model::model::Model;
use planetree_model::predict::Scorer;

/// Number of features.
const FEATURES: usize = 6;
/// Maximum number of values of a feature.
const VALUES: usize = 24;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels: Vec<(String, Html)> = Vec::new();
    for (system, insight) in material.systems.iter().zip(&material.insights) {
        let Ok(insight) = insight else { continue };
        let model = &material.models[insight.model].model;
        if insight.sample.is_empty() || model.needs_queries() {
            continue;
        }
        let scorer = Scorer::new(model)?;
        let mut charts = Html::new();
        for (place, mean) in insight.mean_contributions().into_iter().take(FEATURES) {
            let grid = grid(insight, place);
            if mean > 0.0 && grid.len() > 1 {
                let means = dependence(model, &scorer, insight, place, &grid);
                charts.push(page.figure(figure(model, insight, place, &grid, &means)));
            }
        }
        if !charts.is_empty() {
            panels.push((system.name.clone(), Html::classed("div", "grid", charts)));
        }
    }
    Ok(match panels.is_empty() {
        true => Content::Nothing,
        false => Content::Shown(page.tabs("Rankings", panels)),
    })
}

/// Returns distinct values of a feature in the sample, at regular intervals of their ranks, without the most extreme 1
/// percent.
fn grid(insight: &Insight, place: usize) -> Vec<f32> {
    let mut values: Vec<f32> =
        insight.sample.iter().map(|row| row.values[place]).filter(|value| !value.is_nan()).collect();
    values.sort_by(f32::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return values };
    let at = |step: usize| {
        let share = 0.01 + 0.98 * step as f64 / (VALUES - 1) as f64;
        values[(share * last as f64).round() as usize]
    };
    let mut grid: Vec<f32> = (0..VALUES).map(at).collect();
    grid.dedup();
    grid
}

/// Returns the mean score of the sampled rows for each value of a feature.
fn dependence(model: &Model, scorer: &Scorer, insight: &Insight, place: usize, grid: &[f32]) -> Vec<f64> {
    let width = model.features.len();
    let mut rows = vec![f32::NAN; width * insight.sample.len()];
    for (row, explained) in rows.chunks_mut(width).zip(&insight.sample) {
        for (feature, value) in insight.features.iter().zip(&explained.values) {
            row[*feature as usize] = *value;
        }
    }
    let mut scores = vec![0.0; insight.sample.len()];
    let mut mean_at = |value: &f32| {
        rows.chunks_mut(width).for_each(|row| row[insight.features[place] as usize] = *value);
        scorer.score(&rows, &mut scores);
        scores.iter().sum::<f64>() / scores.len() as f64
    };
    grid.iter().map(&mut mean_at).collect()
}

fn figure(model: &Model, insight: &Insight, place: usize, grid: &[f32], means: &[f64]) -> Figure {
    let feature = &model.features[insight.features[place] as usize];
    let name = shortened(&feature.name);
    let shown = |value: f32| match feature.words.get(value as usize) {
        Some(word) => shortened(word),
        None => short(f64::from(value)),
    };
    let mut table = HtmlTable::new([figures(&name), figures("mean score")]);
    for (at, mean) in grid.iter().zip(means) {
        table.row([Html::text(shown(*at)), Html::text(value(*mean))]);
    }
    let points = grid.iter().zip(means).map(|(at, mean)| (rounded(f64::from(*at)), rounded(*mean))).collect();
    Figure {
        title: format!("Mean score by {name}"),
        note: format!(
            "{} rows of {}, 1st to 99th percentile.",
            insight.sample.len(),
            shortened(&insight.dataset)
        ),
        chart: Chart::Lines {
            x: Axis { name: name.clone(), ..Axis::of(&name) },
            y: Axis::of("mean score"),
            series: vec![LineSeries {
                name: "mean score".to_owned(),
                slot: 1,
                dashed: false,
                points,
                mark: None,
            }],
        },
        table,
    }
}
