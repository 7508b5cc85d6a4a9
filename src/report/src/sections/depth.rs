//! Renders the section that shows NDCG@k as a function of k.

use super::Content;
use crate::chart::{Axis, Chart, LineSeries, rounded};
use crate::html::{Html, HtmlTable, figures};
use crate::material::{Material, QuerySet};
use crate::number::or_dash;
use crate::page::{Figure, Page};
use crate::system::DEPTH;
use planetree_base::error::Result;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        if let Some(figure) = figure(material, set) {
            panels.push((set.name.clone(), page.figure(figure)));
        }
    }
    if !panels.is_empty() {
        return Ok(Content::Shown(page.tabs("Queries", panels)));
    }
    Ok(match (material.systems.is_empty(), material.sets.is_empty()) {
        (true, _) => Content::Nothing,
        (false, true) => Content::Absent(material.why_unjudged()),
        (false, false) => {
            Content::Absent("This section needs predictions, but the run has only metrics.".to_owned())
        }
    })
}

fn figure(material: &Material, set: &QuerySet) -> Option<Figure> {
    let systems: Vec<_> = material
        .members(set)
        .filter_map(|(slot, system)| Some((slot, system, &system.judged.as_ref().ok()?.curve)))
        .filter(|(_, _, curve)| !curve.is_empty())
        .collect();
    let mut columns = vec![figures("k")];
    columns.extend(systems.iter().map(|(_, system, _)| figures(&system.name)));
    let mut table = HtmlTable::new(columns);
    for depth in 1..=DEPTH {
        let value = |curve: &[(u32, f64)]| curve.iter().find(|(at, _)| *at == depth).map(|(_, value)| *value);
        let mut cells = vec![Html::text(depth)];
        cells.extend(systems.iter().map(|(_, _, curve)| or_dash(value(curve))));
        table.row(cells);
    }
    let series: Vec<LineSeries> = systems
        .iter()
        .map(|(slot, system, curve)| LineSeries {
            name: system.name.clone(),
            slot: *slot,
            dashed: false,
            points: curve.iter().map(|(depth, value)| (f64::from(*depth), rounded(*value))).collect(),
            mark: None,
        })
        .collect();
    (!series.is_empty()).then(|| Figure {
        title: match &set.dataset {
            Some(dataset) => format!("NDCG@k on {dataset}"),
            None => "NDCG@k".to_owned(),
        },
        note: format!("By the convention {}.", material.judging.rules()),
        chart: Chart::Lines { x: Axis::whole("k"), y: Axis::of("NDCG@k"), series },
        table,
    })
}
