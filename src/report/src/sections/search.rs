//! Renders the section in which the reader can search all queries.

use super::Content;
use crate::html::{Html, shortened};
use crate::material::{Material, QuerySet};
use crate::page::{Page, SearchableQueries};
use planetree_base::error::Result;

/// Maximum number of queries of a query set that can be searched.
const QUERIES: usize = 5000;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        panels.push((set.name.clone(), of_set(material, set, page)));
    }
    Ok(match panels.is_empty() {
        true => Content::Nothing,
        false => Content::Shown(page.tabs("Queries", panels)),
    })
}

fn of_set(material: &Material, set: &QuerySet, page: &mut Page) -> Html {
    let systems: Vec<_> = material
        .members(set)
        .filter_map(|(_, system)| Some((system.name.as_str(), &system.judged.as_ref().ok()?.queries)))
        .collect();
    // All systems of a set rank the same queries, and their values are sorted by query id.
    let all = systems.first().map_or(0, |(_, queries)| queries.len());
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let queries: Vec<_> = (0..all.min(QUERIES))
        .map(|query| {
            let id = &systems[0].1[query].query;
            let values = systems.iter().map(|(_, queries)| queries[query].value.map(rounded)).collect();
            (shortened(id), material.display.text(id).map(shortened), values)
        })
        .collect();
    let bytes = |(id, text, values): &(String, Option<String>, Vec<Option<f64>>)| {
        id.len() + text.as_ref().map_or(4, String::len) + 8 * values.len() + 12
    };
    if !page.has_room(queries.iter().map(bytes).sum()) {
        return crate::page::left_out();
    }
    let searchable = SearchableQueries {
        metric: material.judging.metric.to_string(),
        systems: systems.iter().map(|(name, _)| shortened(name)).collect(),
        queries,
    };
    let mut html = page.search(searchable);
    if all > QUERIES {
        html.push(Html::paragraph(
            "note",
            format_args!("The first {QUERIES} of {all} queries by id can be searched."),
        ));
    }
    html
}
