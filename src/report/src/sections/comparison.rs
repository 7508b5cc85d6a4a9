//! Renders the section that compares systems. It shows the differences between systems with confidence intervals and
//! significance tests, and the queries that changed most.

use super::Content;
use super::queries::{documents_table, query_details};
use crate::chart::{Axis, Chart, CountSeries, IntervalRow, StackRow, legend, rounded};
use crate::documents::QueryList;
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{Material, QuerySet, QuerySetComparison};
use crate::moves::{Movement, movement};
use crate::number::{count, or_dash, probability, shown_count, signed, value};
use crate::page::{Figure, Page, left_out};
use planetree_base::error::Result;
use planetree_judge::compare::PairComparison;

/// Maximum number of pairs of systems for which per-query details are shown.
const PAIRS: usize = 6;
/// Maximum number of points in a scatter plot. If there are more queries, they are sampled at regular intervals.
const POINTS: usize = 1500;
/// Number of bins of the histogram of differences. It is odd, so that zero lies in the middle of a bin.
const BINS: usize = 21;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        match &set.comparison {
            None => {}
            Some(Err(problem)) => {
                let absent =
                    Html::classed("div", "absent", Html::text(format_args!("Not compared: {problem}.")));
                panels.push((set.name.clone(), absent));
            }
            Some(Ok(comparison)) => {
                panels.push((set.name.clone(), of_set(material, set, comparison, page)));
            }
        }
    }
    Ok(match (panels.is_empty(), material.sets.len(), material.systems.len()) {
        (false, ..) => Content::Shown(page.tabs("Queries", panels)),
        (true, 2.., _) => {
            Content::Absent("Rankings cannot be compared: no two of the same queries.".to_owned())
        }
        (true, _, 2..) => Content::Absent(material.why_unjudged()),
        _ => Content::Nothing,
    })
}

/// Describes the result of a comparison in a sentence that names the better system first.
pub(super) fn verdict(pair: &PairComparison, names: &[&str], material: &Material) -> Html {
    let metric = material.judging.metric;
    let (a, b) = (shortened(names[pair.a]), shortened(names[pair.b]));
    let said = if pair.wins + pair.losses == 0 {
        format!("{b} and {a} have the same {metric} for every query.")
    } else {
        let mean = pair.difference.mean;
        let sign = if mean < 0.0 { -1.0 } else { 1.0 };
        let (ahead, behind) = if (sign > 0.0) == metric.higher_is_better() { (b, a) } else { (a, b) };
        let interval = pair.interval.map_or_else(String::new, |interval| {
            let ends =
                if sign > 0.0 { [interval.low, interval.high] } else { [-interval.high, -interval.low] };
            format!("{:.0} % interval {} to {}, ", interval.level * 100.0, signed(ends[0]), signed(ends[1]))
        });
        let p = probability(pair.corrected);
        let equals = if p.starts_with('<') { "" } else { "= " };
        format!("{ahead} is ahead of {behind} by {} {metric} ({interval}p {equals}{p}).", value(mean.abs()))
    };
    let (class, word) = if pair.differs { ("yes", "significant") } else { ("", "not significant") };
    let badge = Html::classed("span", &format!("badge {class}"), Html::text(word));
    Html::classed("div", &format!("verdict {class}"), badge.and(Html::element("span", &[], Html::text(said))))
}

fn of_set(material: &Material, set: &QuerySet, comparison: &QuerySetComparison, page: &mut Page) -> Html {
    let names: Vec<&str> = material.members(set).map(|(_, system)| system.name.as_str()).collect();
    let metric = material.judging.metric.to_string();
    let mut html = Html::new();
    for note in &comparison.aligned.notes {
        html.push(Html::paragraph("note", note));
    }
    if let [pair] = comparison.pairs.as_slice() {
        html.push(verdict(pair, &names, material));
    }
    if names.len() > 2 {
        html.push(Html::card(format_args!("{metric} of all pairs"), every_pair(comparison, &names)));
    }
    html.push(page.figure_with_table(differences(comparison, &names, &metric)));
    html.push(page.figure(wins(comparison, &names)));
    let mut panels = Vec::new();
    for pair in comparison.pairs.iter().take(PAIRS) {
        let title = title(pair, &names);
        let mut charts = page.figure(spread(comparison, pair, &names, &metric));
        let drawn = scatter(material, comparison, pair, &names);
        // The size of a figure is dominated by the query ids, which are both in the chart and in the table.
        let bytes: usize =
            comparison.aligned.queries.iter().take(POINTS).map(|query| 2 * query.len().min(200) + 60).sum();
        charts.push(if page.has_room(bytes) { page.figure(drawn) } else { left_out() });
        let mut content = Html::classed("div", "grid", charts);
        content.push(Html::element("div", &[], moved(material, set, (comparison, pair), page)));
        panels.push((title, content));
    }
    html.push(page.tabs("Pairs", panels));
    if comparison.pairs.len() > PAIRS {
        html.push(Html::paragraph(
            "note",
            format_args!(
                "Per-query details are shown for the first {PAIRS} of {} pairs.",
                comparison.pairs.len()
            ),
        ));
    }
    html
}

fn title(pair: &PairComparison, names: &[&str]) -> String {
    format!("{} against {}", shortened(names[pair.b]), shortened(names[pair.a]))
}

/// Renders a matrix of all pairs of systems. Each cell is the mean of the row's system minus the mean of the column's
/// system, marked if the difference is significant.
fn every_pair(comparison: &QuerySetComparison, names: &[&str]) -> Html {
    let mut columns = vec![figures(""), words("ranking"), figures("mean")];
    columns.extend((1..=names.len()).map(figures));
    let mut table = HtmlTable::new(columns);
    for (row, name) in names.iter().enumerate() {
        let found = |column: usize| {
            comparison.pairs.iter().find(|pair| [(row, column), (column, row)].contains(&(pair.a, pair.b)))
        };
        let own = comparison.pairs.iter().find_map(|pair| match row {
            row if row == pair.a => Some(pair.mean_a),
            row if row == pair.b => Some(pair.mean_b),
            _ => None,
        });
        let mut cells = vec![Html::text(row + 1), Html::name(name), or_dash(own)];
        cells.extend((0..names.len()).map(|column| match found(column) {
            None => Html::text("–"),
            Some(pair) => {
                let sign = if pair.b == row { 1.0 } else { -1.0 };
                let mark = marks(pair, comparison.options.alpha);
                Html::text(format_args!("{}{mark}", signed(sign * pair.difference.mean)))
            }
        }));
        table.row(cells);
    }
    let note = format!(
        "Row minus column. ** and *: significant, with Holm-corrected p of the randomisation test at most {} and {}.",
        comparison.options.alpha / 5.0,
        comparison.options.alpha
    );
    table.html().and(Html::paragraph("note", note))
}

/// Returns the significance mark of a pair of systems: two stars if the corrected p-value is at most a fifth of the
/// significance level, one star if it is at most the significance level.
fn marks(pair: &PairComparison, alpha: f64) -> &'static str {
    match pair.corrected {
        _ if !pair.differs => "",
        p if p <= alpha / 5.0 => " **",
        _ => " *",
    }
}

/// Creates the figure that shows the mean difference of each pair of systems with its confidence interval.
fn differences(comparison: &QuerySetComparison, names: &[&str], metric: &str) -> Figure {
    let mut table = HtmlTable::new([
        words("pair"),
        figures("mean"),
        figures("against"),
        figures("difference"),
        figures("interval"),
        figures("p"),
        figures("p (Holm)"),
        figures("t-test p"),
        figures("Wilcoxon p"),
    ]);
    let mut rows = Vec::new();
    for pair in &comparison.pairs {
        let mean = pair.difference.mean;
        let (low, high) = pair.interval.map_or((mean, mean), |interval| (interval.low, interval.high));
        let interval = format!("{} to {}", signed(low), signed(high));
        let p = pair.p(comparison.options.test).map_or_else(|| "–".to_owned(), probability);
        let cells = [
            Html::name(&title(pair, names)),
            Html::text(value(pair.mean_b)),
            Html::text(value(pair.mean_a)),
            Html::text(signed(mean)),
            Html::text(&interval),
            Html::text(&p),
            Html::text(probability(pair.corrected)),
            Html::text(pair.t_test.map_or_else(|| "–".to_owned(), |test| probability(test.p))),
            Html::text(probability(pair.wilcoxon.p)),
        ];
        if pair.differs {
            table.best_row(cells)
        } else {
            table.row(cells)
        }
        let said = if pair.differs { "yes" } else { "no" };
        let tells = [
            ("difference", signed(mean)),
            ("interval", interval),
            ("p", p),
            ("p (Holm)", probability(pair.corrected)),
            ("differs", said.to_owned()),
        ];
        rows.push(IntervalRow {
            name: title(pair, names),
            low: rounded(low),
            middle: rounded(mean),
            high: rounded(high),
            slot: if pair.differs { 1 } else { 8 },
            dots: Vec::new(),
            tells: tells.map(|(name, text)| (name.to_owned(), text)).into(),
        });
    }
    let options = &comparison.options;
    Figure {
        title: format!("Difference of the mean {metric}"),
        note: format!(
            "With {:.0} % bootstrap intervals. Blue: significant (randomisation test, Holm-corrected p at most {}).",
            options.level * 100.0,
            options.alpha
        ),
        chart: Chart::Intervals {
            x: Axis::of(&format!("difference of {metric}")),
            reference: Some(0.0),
            rows,
        },
        table,
    }
}

fn wins(comparison: &QuerySetComparison, names: &[&str]) -> Figure {
    let mut table = HtmlTable::new([words("pair"), figures("better"), figures("same"), figures("worse")]);
    let mut rows = Vec::new();
    for pair in &comparison.pairs {
        table.row([Html::name(&title(pair, names)), count(pair.wins), count(pair.ties), count(pair.losses)]);
        rows.push(StackRow { name: title(pair, names), counts: vec![pair.wins, pair.ties, pair.losses] });
    }
    Figure {
        title: "Queries that got better and worse".to_owned(),
        note: format!("Of {} queries.", shown_count(comparison.aligned.queries.len() as u64)),
        chart: Chart::Stack { parts: legend(&[("better", 1), ("same", 8), ("worse", 2)]), rows },
        table,
    }
}

fn pair_values<'c>(comparison: &'c QuerySetComparison, pair: &PairComparison) -> (&'c [f64], &'c [f64]) {
    (&comparison.aligned.values[pair.a], &comparison.aligned.values[pair.b])
}

/// Creates the histogram of the differences between two systems per query.
fn spread(comparison: &QuerySetComparison, pair: &PairComparison, names: &[&str], metric: &str) -> Figure {
    let (first, second) = pair_values(comparison, pair);
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
    let furthest = differences.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
    let furthest = if furthest > 0.0 { furthest } else { 1.0 };
    let edges: Vec<f64> =
        (0..=BINS).map(|edge| rounded(furthest * (2.0 * edge as f64 / BINS as f64 - 1.0))).collect();
    let counts = super::queries::binned(&differences, &edges);
    let mut table = HtmlTable::new([words("difference"), figures("queries")]);
    for (bin, queries) in counts.iter().enumerate() {
        table.row([
            Html::text(format_args!("{} to {}", signed(edges[bin]), signed(edges[bin + 1]))),
            count(*queries),
        ]);
    }
    Figure {
        title: format!("Difference of {metric} per query"),
        note: format!(
            "{}: {} is higher to the right of the line.",
            title(pair, names),
            shortened(names[pair.b])
        ),
        chart: Chart::Histogram {
            x: Axis::of(&format!("difference of {metric}")),
            y: Axis::whole("queries"),
            edges,
            series: vec![CountSeries { name: title(pair, names), slot: 1, counts }],
            reference: Some(0.0),
            sides: Some(if comparison.options.higher_is_better { [2, 8, 1] } else { [1, 8, 2] }),
        },
        table,
    }
}

fn scatter(
    material: &Material,
    comparison: &QuerySetComparison,
    pair: &PairComparison,
    names: &[&str],
) -> Figure {
    let (first, second) = pair_values(comparison, pair);
    let every = first.len().div_ceil(POINTS).max(1);
    let points: Vec<(f64, f64, String)> = (0..first.len())
        .step_by(every)
        .map(|query| {
            (rounded(first[query]), rounded(second[query]), shortened(&comparison.aligned.queries[query]))
        })
        .collect();
    let mut table = HtmlTable::new([
        words("query"),
        figures(names[pair.a]),
        figures(names[pair.b]),
        figures("difference"),
    ]);
    let listed = first.len().div_ceil(POINTS / 5).max(1);
    for query in (0..first.len()).step_by(listed) {
        table.row([
            Html::name(&comparison.aligned.queries[query]),
            Html::text(value(first[query])),
            Html::text(value(second[query])),
            Html::text(signed(second[query] - first[query])),
        ]);
    }
    let mut note = "One point per query; above the line the second is higher.".to_owned();
    if every > 1 {
        note.push_str(&format!(" One in {every} queries is drawn, one in {listed} is in the table."));
    } else if listed > 1 {
        note.push_str(&format!(" One in {listed} queries is in the table."));
    }
    Figure {
        title: format!("{} per query, both systems", material.judging.metric),
        note,
        chart: Chart::Scatter {
            x: Axis::of(names[pair.a]),
            y: Axis::of(names[pair.b]),
            higher: comparison.options.higher_is_better,
            parts: legend(&[("better", 1), ("same", 8), ("worse", 2)]),
            points,
        },
        table,
    }
}

/// Renders the queries that changed most, with the rankings of both systems side by side.
fn moved(
    material: &Material,
    set: &QuerySet,
    compared: (&QuerySetComparison, &PairComparison),
    page: &mut Page,
) -> Html {
    let (comparison, pair) = compared;
    let names: Vec<&str> = material.members(set).map(|(_, system)| system.name.as_str()).collect();
    let metric = material.judging.metric;
    let (first, second) = pair_values(comparison, pair);
    let mut cards = Html::new();
    for (heading, places) in [("Improved most", &pair.improved), ("Worsened most", &pair.worsened)] {
        if places.is_empty() {
            continue;
        }
        let queries: Html = places
            .iter()
            .map(|place| {
                let query = &comparison.aligned.queries[*place];
                let (before, after) = (first[*place], second[*place]);
                let figures = format!("{} → {} ({})", value(before), value(after), signed(after - before));
                let list = |member: usize| set.documents[member].as_ref()?.lists.get(query);
                let same = material.same_rows(set.systems[pair.a], set.systems[pair.b]);
                let mut ranked = |member: usize, before: Option<(&QueryList, bool)>| {
                    let heading = Html::element("h4", &[], Html::name(names[member]));
                    let documents = set.documents[member].as_ref();
                    let table = documents_table(material, query, list(member)?, documents, before);
                    let why = page.why(material, set.systems[member], query, list(member)?);
                    Some(Html::element("div", &[], heading.and(table).and(why)))
                };
                let lists: Html =
                    [ranked(pair.a, None), ranked(pair.b, list(pair.a).map(|list| (list, same)))]
                        .into_iter()
                        .flatten()
                        .collect();
                let lines = match (list(pair.a), list(pair.b)) {
                    (Some(before), Some(after)) => {
                        let title = |id: &str| material.display.title(query, id);
                        let names = [names[pair.a], names[pair.b]];
                        movement(&Movement { names, same_rows: same, title: &title }, before, after)
                    }
                    _ => Html::new(),
                };
                let inside = match lists.is_empty() {
                    true => Html::paragraph("note", "Documents are not available: the run has metrics only."),
                    false => page.if_room(lines.and(Html::classed("div", "side", lists))),
                };
                query_details(material, query, "", &figures, inside)
            })
            .collect();
        cards.push(Html::card(format_args!("{heading} by {metric}"), queries));
    }
    cards
}
