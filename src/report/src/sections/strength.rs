//! Renders the section that shows tree strength, which is the ranking quality of single trees of a forest after each
//! split.

use super::Content;
use crate::chart::{Axis, COLOURS, Chart, LineSeries, rounded};
use crate::html::{Html, HtmlTable, figures};
use crate::material::Material;
use crate::number::{count, value};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_data::table::{TableKind, TableReader};
use planetree_train::{MeanStrength, mean_strengths};

/// Maximum number of points of a line. The points are spaced logarithmically.
const POINTS: usize = 120;
/// Maximum number of forests shown.
const SHOWN: usize = 12;
/// The numbers of splits that are listed in tables. The largest number of splits of a forest is always listed too.
const LISTED: [usize; 6] = [0, 1, 10, 100, 1000, 10_000];

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let tables = material.tables(TableKind::Strength);
    if tables.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut read = Vec::new();
    for (name, entry) in tables.iter().take(SHOWN) {
        read.push((name.clone(), mean_strengths(&TableReader::open(&entry.location, TableKind::Strength)?)?));
    }
    let mut panels = Vec::new();
    if read.len() > 1 {
        let splits = read.iter().flat_map(|(_, means)| means).map(|mean| mean.split.as_str());
        let mut seen: Vec<&str> = Vec::new();
        splits.for_each(|split| {
            if !seen.contains(&split) {
                seen.push(split)
            }
        });
        let together: Html = seen
            .iter()
            .map(|split| {
                let lines = read.iter().filter_map(|(name, means)| {
                    Some((name.clone(), false, means.iter().find(|mean| mean.split == *split)?))
                });
                page.figure_with_table(figure(
                    format!("Mean tree of each forest on {split}"),
                    &lines.collect::<Vec<_>>(),
                ))
            })
            .collect();
        panels.push(("All".to_owned(), Html::classed("div", "grid", together)));
    }
    for (name, means) in &read {
        let lines: Vec<_> =
            means.iter().map(|mean| (mean.split.clone(), mean.split == "train", mean)).collect();
        panels.push((name.clone(), page.figure_with_table(figure(format!("Mean tree of {name}"), &lines))));
    }
    let mut html = page.tabs("Forests", panels);
    if tables.len() > SHOWN {
        html.push(Html::paragraph("note", format_args!("The first {SHOWN} of {} are shown.", tables.len())));
    }
    Ok(Content::Shown(html))
}

fn figure(title: String, lines: &[(String, bool, &MeanStrength)]) -> Figure {
    let longest = lines.iter().map(|(_, _, mean)| mean.longest()).max().unwrap_or(0);
    let shown = &lines[..lines.len().min(COLOURS)];
    let columns = shown.iter().map(|(name, ..)| figures(name));
    let mut table = HtmlTable::new([figures("splits")].into_iter().chain(columns));
    for splits in LISTED.into_iter().filter(|splits| *splits < longest).chain([longest]) {
        let cells = shown.iter().map(|(_, _, mean)| Html::text(value(mean.after(splits))));
        table.row([count(splits as u64)].into_iter().chain(cells));
    }
    let series = (1..).zip(shown).map(|(slot, (name, dashed, mean))| LineSeries {
        name: name.clone(),
        slot,
        dashed: *dashed,
        points: at_equal_ratios(longest)
            .into_iter()
            .map(|splits| (splits as f64, rounded(mean.after(splits))))
            .collect(),
        mark: None,
    });
    let dashed =
        if lines.iter().any(|line| line.1) { " Dashed: the rows that it was trained on." } else { "" };
    let trees = lines.iter().map(|(_, _, mean)| mean.trees()).max().unwrap_or(0);
    Figure {
        title,
        note: format!("Mean over {trees} trees; trees with fewer splits keep their last value.{dashed}"),
        chart: Chart::Lines {
            x: Axis { log: longest > 1, ..Axis::whole("splits") },
            y: Axis::of("expected NDCG"),
            series: series.collect(),
        },
        table,
    }
}

/// Returns integers from 1 to `last` whose ratios are about equal.
fn at_equal_ratios(last: usize) -> Vec<usize> {
    let step = |place: usize| (last.max(1) as f64).powf(place as f64 / (POINTS - 1) as f64).round() as usize;
    let mut found: Vec<usize> = (0..POINTS).map(step).collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_are_always_there() {
        for last in [0, 1, 2, 50, 12_345] {
            let found = at_equal_ratios(last);
            assert_eq!((found[0], found[found.len() - 1]), (1, last.max(1)));
            assert!(found.len() <= POINTS && found.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert_eq!(at_equal_ratios(4), [1, 2, 3, 4]);
    }
}
