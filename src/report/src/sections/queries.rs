//! Renders the section that shows the distribution of the metric over queries, and the worst and best queries.

use super::Content;
use crate::chart::{Axis, Chart, CountSeries, LineSeries, rounded};
use crate::documents::{Documents, QueryList, RankedDocument};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{Material, QuerySet};
use crate::number::{count, counted, short, shown_count, value};
use crate::page::{Figure, Page};
use crate::system::SystemMetrics;
use planetree_base::error::Result;

/// Number of bins of a histogram.
const BINS: usize = 20;
/// Maximum number of systems in a histogram. The line chart of the cumulative distribution shows all systems.
const SIDE_BY_SIDE: usize = 3;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.sets.is_empty() {
        return Ok(match material.systems.is_empty() {
            true => Content::Nothing,
            false => Content::Absent(material.why_unjudged()),
        });
    }
    let mut panels = Vec::new();
    for set in &material.sets {
        let mut html = Html::new();
        let mut charts = Html::new();
        charts.push(page.figure(histogram(material, set)));
        charts.push(page.figure(cumulative(material, set)));
        html.push(Html::classed("div", "grid", charts));
        let mut ends = Vec::new();
        for (member, (_, system)) in material.members(set).enumerate() {
            ends.push((system.name.clone(), both_ends(material, set, member, page)));
        }
        html.push(page.tabs("Rankings", ends));
        panels.push((set.name.clone(), html));
    }
    Ok(Content::Shown(page.tabs("Queries", panels)))
}

fn values(judged: &SystemMetrics) -> Vec<f64> {
    let mut values: Vec<f64> = judged.queries.iter().filter_map(|query| query.value).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn all_values(material: &Material, set: &QuerySet) -> Vec<(usize, String, Vec<f64>)> {
    let members = material.members(set);
    members
        .filter_map(|(slot, system)| Some((slot, system.name.clone(), values(system.judged.as_ref().ok()?))))
        .collect()
}

/// Returns the edges of the bins. The bins range from 0 to 1, or further if some values are outside this range.
pub(super) fn edges(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let (low, high) = values.fold((0.0_f64, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    (0..=BINS).map(|edge| rounded(low + (high - low) * edge as f64 / BINS as f64)).collect()
}

/// Returns the number of values in each bin. The last bin includes its upper edge.
pub(super) fn binned(values: &[f64], edges: &[f64]) -> Vec<u64> {
    let mut counts = vec![0; edges.len() - 1];
    for value in values {
        let bin = edges.partition_point(|edge| edge <= value).saturating_sub(1);
        counts[bin.min(edges.len() - 2)] += 1;
    }
    counts
}

fn histogram(material: &Material, set: &QuerySet) -> Figure {
    let metric = material.judging.metric.to_string();
    let all = all_values(material, set);
    let edges = edges(all.iter().flat_map(|(_, _, values)| values.iter().copied()));
    let series: Vec<CountSeries> = all
        .iter()
        .map(|(slot, name, values)| CountSeries {
            name: name.clone(),
            slot: *slot,
            counts: binned(values, &edges),
        })
        .collect();
    let mut columns = vec![words(&metric)];
    columns.extend(series.iter().map(|one| figures(&one.name)));
    let mut table = HtmlTable::new(columns);
    for bin in 0..BINS {
        let mut cells = vec![Html::text(format_args!("{} to {}", value(edges[bin]), value(edges[bin + 1])))];
        cells.extend(series.iter().map(|one| count(one.counts[bin])));
        table.row(cells);
    }
    let shown = series.len().min(SIDE_BY_SIDE);
    let note = match series.len() - shown {
        0 => String::new(),
        _ => format!("The first {shown} rankings; the table has all {}.", series.len()),
    };
    let series = series.into_iter().take(shown).collect();
    Figure {
        title: format!("{metric} per query"),
        note,
        chart: Chart::Histogram {
            x: Axis::of(&metric),
            y: Axis::whole("queries"),
            edges,
            series,
            reference: None,
            sides: None,
        },
        table,
    }
}

/// Creates the figure of the cumulative distribution of the metric over queries.
fn cumulative(material: &Material, set: &QuerySet) -> Figure {
    let metric = material.judging.metric.to_string();
    let all = all_values(material, set);
    let mut columns = vec![figures("share of queries")];
    columns.extend(all.iter().map(|(_, name, _)| figures(name)));
    let mut table = HtmlTable::new(columns);
    let at = |values: &[f64], share: f64| {
        let last = values.len().checked_sub(1)?;
        Some(values[(share * last as f64).round() as usize])
    };
    for percent in (0..=100).step_by(5) {
        let mut cells = vec![Html::text(format_args!("{percent} %"))];
        cells.extend(
            all.iter().map(|(_, _, values)| crate::number::or_dash(at(values, f64::from(percent) / 100.0))),
        );
        table.row(cells);
    }
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        let steps = values.len().clamp(2, 101) - 1;
        let point = |step: usize| {
            let share = step as f64 / steps as f64;
            Some((rounded(100.0 * share), rounded(at(values, share)?)))
        };
        (0..=steps).filter_map(point).collect()
    };
    let series: Vec<LineSeries> = all
        .iter()
        .map(|(slot, name, values)| LineSeries {
            name: name.clone(),
            slot: *slot,
            dashed: false,
            points: points(values),
            mark: None,
        })
        .collect();
    Figure {
        title: format!("Queries from worst to best {metric}"),
        note: "Percentage of queries at or below each value.".to_owned(),
        chart: Chart::Lines {
            x: Axis { name: "% of queries:".to_owned(), ..Axis::of("% of queries") },
            y: Axis::of(&metric),
            series,
        },
        table,
    }
}

fn both_ends(material: &Material, set: &QuerySet, member: usize, page: &mut Page) -> Html {
    let system = &material.systems[set.systems[member]];
    let Ok(judged) = &system.judged else { return Html::new() };
    let mut cards = Html::new();
    for (title, places) in ["Worst queries", "Best queries"].iter().zip(&set.extremes[member]) {
        if places.is_empty() {
            continue;
        }
        let queries: Html =
            places.iter().map(|place| one_query(material, set, member, *place, page)).collect();
        cards.push(Html::card(format_args!("{title} by {}", material.judging.metric), queries));
    }
    let mut html = match cards.is_empty() {
        true => Html::paragraph("note", "No query has relevant documents."),
        false => Html::classed("div", "grid apart", cards),
    };
    let documents = set.documents[member].as_ref();
    let is_other = |place: &usize| {
        let has_documents =
            documents.is_some_and(|documents| documents.lists.contains_key(&judged.queries[*place].query));
        has_documents && !set.extremes[member].iter().flatten().any(|shown| shown == place)
    };
    let others: Vec<usize> = (0..judged.queries.len()).filter(is_other).collect();
    if !others.is_empty() {
        let queries: Html =
            others.iter().map(|place| one_query(material, set, member, *place, page)).collect();
        let count = others.len();
        let said = if count == 1 { "1 other query".to_owned() } else { format!("{count} other queries") };
        let summary = Html::element("summary", &[], Html::text(said));
        let content = Html::element("details", &[], summary.and(queries));
        html.push(Html::classed("div", "card", content));
    }
    html
}

/// Renders a query of a system with its documents.
fn one_query(material: &Material, set: &QuerySet, member: usize, place: usize, page: &mut Page) -> Html {
    let Ok(judged) = &material.systems[set.systems[member]].judged else { return Html::new() };
    let documents = set.documents[member].as_ref();
    let query = &judged.queries[place];
    let figures = query.value.map_or_else(|| "–".to_owned(), value);
    let inside = match documents.and_then(|documents| documents.lists.get(&query.query)) {
        Some(list) => {
            let table = documents_table(material, &query.query, list, documents, None);
            let why = page.why(material, set.systems[member], &query.query, list);
            page.if_room(table).and(why)
        }
        None => Html::paragraph("note", "Documents are not available: the run has metrics only."),
    };
    let said = match query.documents {
        Some((documents, relevant)) => {
            let documents = counted(documents, "document", "documents");
            format!("{documents}, {} relevant", shown_count(relevant))
        }
        None => String::new(),
    };
    query_details(material, &query.query, &said, &figures, inside)
}

/// Renders the collapsible details of a query.
pub(crate) fn query_details(
    material: &Material,
    query: &str,
    said: &str,
    figures: &str,
    inside: Html,
) -> Html {
    let text = material.display.text(query);
    let text = text.map_or_else(Html::new, |text| Html::classed("span", "title", Html::name(text)));
    let summary = text
        .and(Html::classed("span", "id", Html::name(query)))
        .and(Html::classed("span", "soft", Html::text(said)))
        .and(Html::classed("span", "figures", Html::text(figures)));
    let summary = Html::element("summary", &[], summary);
    let attributes = [("class", "query"), ("data-query", &*shortened(query))];
    Html::element("details", &attributes, summary.and(Html::classed("div", "inside", inside)))
}

/// Renders a table of a query's documents in ranked order. If `before` is given, which is the ranking of another
/// system and whether both list the same documents in the same order, the table also shows the rank of each document in
/// that ranking.
pub(crate) fn documents_table(
    material: &Material,
    query: &str,
    list: &QueryList,
    documents: Option<&Documents>,
    before: Option<(&QueryList, bool)>,
) -> Html {
    let highest = documents.and_then(|documents| documents.highest).unwrap_or(1.0);
    let mut columns = vec![figures("rank"), words("document"), figures("label"), figures("score")];
    columns.extend(before.map(|_| figures("was")));
    let mut table = HtmlTable::new(columns);
    for document in &list.first {
        let label = match document.label {
            Some(label) => grade(label, highest),
            None => Html::text("–"),
        };
        let id = document.id.as_deref();
        let mut cells = vec![
            Html::text(document.rank),
            id.map_or_else(|| Html::text("–"), |id| material.display.shown_document(query, id)),
            label,
            Html::text(short(document.score)),
        ];
        cells.extend(before.map(|before| rank_before(document, before)));
        table.row(cells);
    }
    let hidden = list.documents - list.first.len() as u64;
    let note = match hidden {
        0 => Html::new(),
        hidden => {
            let more = counted(hidden, "more document follows", "more documents follow");
            Html::paragraph("note", format_args!("{more}."))
        }
    };
    table.html().and(note)
}

/// Renders the rank of a document in the ranking of another system, and whether the rank has improved since.
fn rank_before(document: &RankedDocument, (before, same_rows): (&QueryList, bool)) -> Html {
    let Some(was) = before.rank_of(document, same_rows) else {
        return Html::classed("span", "soft", Html::text("–"));
    };
    let arrow = match was.cmp(&document.rank) {
        std::cmp::Ordering::Greater => "▲",
        std::cmp::Ordering::Less => "▼",
        std::cmp::Ordering::Equal => "=",
    };
    Html::classed("span", "soft", Html::text(format_args!("{was} {arrow}")))
}

/// Renders a label on a background that is darker for higher labels.
fn grade(label: f32, highest: f32) -> Html {
    let share = if highest > 0.0 { (label / highest).clamp(0.0, 1.0) } else { 0.0 };
    let class = if share > 0.5 { "grade dark" } else { "grade" };
    let style = format!("--share:{:.2}", 0.9 * share);
    Html::element("span", &[("class", class), ("style", &style)], Html::text(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let edges = edges([0.0, 0.5, 1.0].into_iter());
        assert_eq!((edges.len(), edges[0], edges[BINS]), (BINS + 1, 0.0, 1.0));
        let counts = binned(&[0.0, 0.049, 0.05, 0.999, 1.0], &edges);
        assert_eq!((counts[0], counts[1], counts[BINS - 1]), (2, 1, 2));
        let wide = super::edges([-3.0, 7.0].into_iter());
        assert_eq!((wide[0], wide[BINS]), (-3.0, 7.0));
    }
}
