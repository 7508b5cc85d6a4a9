//! Renders the section that summarises the contributions of the features to scores.

use super::Content;
use crate::chart::{Axis, Chart, SwarmRow, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::insight::Insight;
use crate::material::Material;
use crate::number::short;
use crate::page::{Figure, Page};
use planetree_base::error::Result;

/// Maximum number of features in the chart.
const DRAWN: usize = 12;
/// Maximum number of points of a feature.
const POINTS: usize = 150;
/// Maximum number of features in the table.
const LISTED: usize = 100;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.models.is_empty() || material.systems.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    let mut reasons = Vec::new();
    for (system, insight) in material.systems.iter().zip(&material.insights) {
        match insight {
            Ok(insight) if insight.sample.is_empty() => {
                reasons
                    .push(format!("{}: contributions depend on the other documents of a query", system.name));
            }
            Ok(insight) => panels.push((system.name.clone(), page.figure(figure(material, insight)))),
            Err(reason) => reasons.push(format!("{}: {reason}", system.name)),
        }
    }
    let reasons: Vec<String> = reasons.iter().take(MOST).map(|reason| shortened(reason)).collect();
    let why_not = reasons.join("; ");
    if panels.is_empty() {
        return Ok(Content::Absent(format!(
            "This section needs rankings with their models and datasets. {why_not}."
        )));
    }
    let mut html = page.tabs("Rankings", panels);
    if !reasons.is_empty() {
        html.push(Html::paragraph("note", format_args!("Not explained: {why_not}.")));
    }
    Ok(Content::Shown(html))
}

/// Maximum number of reasons why systems are not explained.
const MOST: usize = 10;

fn figure(material: &Material, insight: &Insight) -> Figure {
    let named = &material.models[insight.model];
    let name = |place: usize| shortened(&named.model.features[insight.features[place] as usize].name);
    let means = insight.mean_contributions();
    let mut table =
        HtmlTable::new([words("feature"), figures("mean absolute"), figures("lowest"), figures("highest")]);
    for (place, mean) in means.iter().take(LISTED) {
        let all = || insight.sample.iter().map(|row| row.contributions[*place]);
        table.row([
            Html::text(name(*place)),
            Html::text(short(*mean)),
            Html::text(short(all().fold(f64::INFINITY, f64::min))),
            Html::text(short(all().fold(f64::NEG_INFINITY, f64::max))),
        ]);
    }
    let every = insight.sample.len().div_ceil(POINTS).max(1);
    let row = |(place, mean): &(usize, f64)| {
        let shares = shares(insight.sample.iter().map(|row| row.values[*place]));
        let points = insight.sample.iter().zip(shares).step_by(every);
        SwarmRow {
            name: name(*place),
            points: points
                .map(|(row, share)| {
                    // Two digits are enough for a colour, three for a position.
                    let short = |value: f64| format!("{value:.2e}").parse().unwrap_or(value);
                    (short(row.contributions[*place]), share.map(|share| (share * 50.0).round() / 50.0))
                })
                .collect(),
            tells: vec![
                ("mean absolute contribution".to_owned(), short(*mean)),
                ("rows".to_owned(), insight.sample.len().to_string()),
            ],
        }
    };
    let rows: Vec<SwarmRow> = means.iter().take(DRAWN).filter(|(_, mean)| *mean > 0.0).map(row).collect();
    Figure {
        title: format!("Contributions to the scores of {}", shortened(&named.name)),
        note: format!(
            "{} rows of {}. To the right, the feature raises the score; to the left, it lowers it. Orange: the value is high \
             among the rows; blue: low; grey: missing. The expected score is {}.",
            insight.sample.len(),
            shortened(&insight.dataset),
            short(rounded(insight.expected))
        ),
        chart: Chart::Swarm { x: Axis::of("contribution to the score"), reference: Some(0.0), rows },
        table,
    }
}

/// Returns the share of the other values that are below each value: 0 for the lowest, 1 for the highest. `None` for
/// missing values.
fn shares(values: impl Iterator<Item = f32> + Clone) -> Vec<Option<f64>> {
    let mut sorted: Vec<f32> = values.clone().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f32::total_cmp);
    let last = sorted.len().saturating_sub(1).max(1) as f64;
    let share = |value: f32| {
        let below = sorted.partition_point(|other| *other < value);
        let above = sorted.len() - sorted.partition_point(|other| *other <= value);
        (!value.is_nan()).then_some((below as f64 + (last - above as f64)) / (2.0 * last))
    };
    values.map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_ranks() {
        let found = shares([3.0, f32::NAN, 1.0, 2.0].into_iter());
        assert_eq!(found, [Some(1.0), None, Some(0.0), Some(0.5)]);
        assert_eq!(shares([1.0, 1.0, 1.0].into_iter()), [Some(0.5); 3]);
    }
}
