//! Renders the section that summarises the runs and their results.

use super::Content;
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{Material, NamedDataset, QuerySet};
use crate::number::{count, counted, or_dash, seconds, short, shown_size, signed};
use crate::page::Page;
use crate::sections::comparison::verdict;
use planetree_base::error::Result;
use planetree_model::model::{DatasetRecord, Model};

/// Maximum number of rows of a table. If there are more, a note says how many are omitted.
const LISTED: usize = 60;
/// Maximum number of pairs of systems whose comparison is described in the summary.
const VERDICTS: usize = 3;

/// Renders the heading of the page.
pub(crate) fn hero(material: &Material, title: &str) -> Html {
    let manifests: Vec<_> = material.runs.iter().filter_map(|run| run.manifest.as_ref()).collect();
    let described = match manifests.as_slice() {
        [manifest] if !manifest.description.trim().is_empty() => {
            Html::classed("p", "lead", Html::text(manifest.description.trim()))
        }
        _ => Html::new(),
    };
    let counts = [
        (material.runs.len(), "run", "runs"),
        (material.datasets.len(), "dataset", "datasets"),
        (material.models.len(), "model", "models"),
        (material.systems.len(), "ranking", "rankings"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, several)| format!("{count} {}", if *count == 1 { one } else { several }))
        .collect();
    let heading = Html::element("h1", &[("id", "summary-heading")], Html::name(title));
    let date = material.date.as_ref().map_or_else(String::new, |date| format!(" {date}."));
    let counts = Html::paragraph("soft", format_args!("{}.{}", counts.join(", "), shortened(&date)));
    Html::classed("div", "hero", heading.and(described).and(counts))
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut html = Html::new();
    let panels: Vec<(String, Html)> =
        material.sets.iter().map(|set| (set.name.clone(), set_summary(material, set))).collect();
    if panels.is_empty() {
        html.push(Html::classed(
            "div",
            "absent",
            Html::text(format_args!("No metrics. {}", material.why_unjudged())),
        ));
    } else {
        html.push(page.tabs("Queries", panels));
    }
    if !material.sets.is_empty() && material.systems.iter().any(|system| system.judged.is_err()) {
        html.push(Html::paragraph(
            "note",
            format_args!("Some rankings are not evaluated. {}", material.why_unjudged()),
        ));
    }
    if !material.left_out.is_empty() {
        let names: Vec<String> = material.left_out.iter().take(LISTED).map(|name| shortened(name)).collect();
        html.push(Html::paragraph(
            "note",
            format_args!(
                "{} omitted to keep this file small: {}.",
                counted(
                    material.left_out.len() as u64,
                    "ranking of other queries is",
                    "rankings of other queries are"
                ),
                names.join(", ")
            ),
        ));
    }
    let mut cards = Html::new();
    cards.push(models(material));
    cards.push(datasets(material));
    cards.push(runs(material));
    Ok(Content::Shown(html.and(cards)))
}

/// Renders the systems of a query set (systems that rank the same queries) as tiles, with the results of comparisons
/// and a table of metrics.
fn set_summary(material: &Material, set: &QuerySet) -> Html {
    let metric = material.judging.metric;
    let mut tiles = Html::new();
    let mut base = None;
    let best = best_mean(material, set, 0);
    for (slot, system) in material.members(set) {
        let Ok(judged) = &system.judged else { continue };
        let mean = judged.means.first().copied().flatten();
        let mut tile = Html::classed("div", "name", Html::name(&system.name));
        let badge = match set.systems.len() > 1 && mean.is_some() && mean == best {
            true => leader_badge(material, set, slot - 1),
            false => Html::new(),
        };
        tile.push(Html::classed("div", "value", or_dash(mean).and(badge)));
        let below = match (base, mean) {
            (None, _) => {
                let queries = counted(judged.queries.len() as u64, "query", "queries");
                Html::paragraph("delta soft", format_args!("{metric}, {queries}"))
            }
            (Some((name, first)), Some(mean)) => {
                let better = if metric.higher_is_better() { mean > first } else { mean < first };
                let class = if mean == first {
                    "soft"
                } else if better {
                    "good"
                } else {
                    "bad"
                };
                let change = Html::classed("span", class, Html::text(signed(mean - first)));
                Html::classed(
                    "p",
                    "delta",
                    change.and(Html::classed("span", "soft", Html::text(format_args!(" against {name}")))),
                )
            }
            (Some(_), None) => Html::new(),
        };
        tile.push(below);
        if base.is_none() {
            base = mean.map(|mean| (system.name.as_str(), mean));
        }
        tiles.push(Html::classed("div", &format!("s{slot}"), tile));
    }
    let mut html = Html::classed("div", "tiles", tiles);
    if let Some(Ok(comparison)) = &set.comparison {
        let names: Vec<&str> = material.members(set).map(|(_, system)| system.name.as_str()).collect();
        for pair in comparison.pairs.iter().take(VERDICTS) {
            html.push(verdict(pair, &names, material));
        }
        let link = Html::element("a", &[("href", "#comparison")], Html::text("Compare per query"));
        html.push(Html::element("p", &[], link));
    }
    html.and(Html::card("Rankings", systems_table(material, set)))
}

/// Marks the system with the best mean. It is called best only if it is significantly better than every other one.
fn leader_badge(material: &Material, set: &QuerySet, member: usize) -> Html {
    let differs = match &set.comparison {
        Some(Ok(comparison)) => {
            let mut pairs = comparison.pairs.iter().filter(|pair| [pair.a, pair.b].contains(&member));
            pairs.all(|pair| pair.differs)
        }
        _ => false,
    };
    match (differs, material.judging.metric.higher_is_better()) {
        (true, _) => Html::classed("span", "badge yes", Html::text("best")),
        (false, true) => Html::classed("span", "badge", Html::text("highest, may be chance")),
        (false, false) => Html::classed("span", "badge", Html::text("lowest, may be chance")),
    }
}

/// Returns the best mean of a metric among the systems of a query set.
fn best_mean(material: &Material, set: &QuerySet, place: usize) -> Option<f64> {
    let metric = &material.judging.metrics[place];
    let means = material
        .members(set)
        .filter_map(|(_, system)| system.judged.as_ref().ok()?.means.get(place).copied().flatten());
    means.reduce(|one, other| if metric.is_better(other, one) { other } else { one })
}

fn systems_table(material: &Material, set: &QuerySet) -> Html {
    let metrics = &material.judging.metrics;
    let mut columns = vec![words("ranking"), words("model"), figures("queries"), figures("documents")];
    columns.extend(metrics.iter().map(figures));
    let mut table = HtmlTable::new(columns);
    let bests: Vec<Option<f64>> = (0..metrics.len()).map(|place| best_mean(material, set, place)).collect();
    for (slot, system) in material.members(set) {
        let Ok(judged) = &system.judged else { continue };
        let model = material.model_of(system).map_or("–", |place| material.models[place].name.as_str());
        let swatch = Html::classed("span", &format!("swatch s{slot}"), Html::new());
        let mut cells = vec![
            Html::classed("span", "named", swatch.and(Html::name(&system.name))),
            Html::name(model),
            count(judged.queries.len() as u64),
            count(system.rows),
        ];
        for (place, best) in bests.iter().enumerate() {
            let mean = judged.means.get(place).copied().flatten();
            let cell = or_dash(mean);
            let is_best = set.systems.len() > 1 && mean.is_some() && mean == *best;
            cells.push(if is_best { Html::element("strong", &[], cell) } else { cell });
        }
        table.row(cells);
    }
    let empty =
        material.members(set).find_map(|(_, system)| Some(system.judged.as_ref().ok()?.empty)).unwrap_or(0);
    let mut note = format!("Means over queries by the convention {}.", material.judging.rules());
    if empty > 0 {
        let queries = counted(empty as u64, "query has", "queries have");
        note.push_str(&format!(" {queries} no relevant documents."));
    }
    if set.left_out > 0 {
        note.push_str(&format!(
            " {} not shown, only the first {}.",
            counted(
                set.left_out as u64,
                "more ranking of these queries is",
                "more rankings of these queries are"
            ),
            set.systems.len()
        ));
    }
    table.html().and(Html::paragraph("note", note))
}

fn models(material: &Material) -> Html {
    if material.models.is_empty() {
        return Html::new();
    }
    let mut table = HtmlTable::new([
        words("model"),
        figures("trees"),
        figures("rounds"),
        figures("leaves"),
        figures("depth"),
        words("features used"),
        words("trained on"),
    ]);
    let mut configurations = Html::new();
    for named in material.models.iter().take(LISTED) {
        let model = &named.model;
        let used = model.importance().iter().filter(|feature| feature.splits > 0).count();
        let train: Vec<_> = model.data.iter().filter(|data| data.name == "train").collect();
        let sum = |of: fn(&DatasetRecord) -> u64| train.iter().map(|data| of(data)).sum::<u64>();
        let rows = counted(sum(|data| data.rows), "row", "rows");
        let counts = format!("{rows}, {}", counted(sum(|data| data.queries), "query", "queries"));
        let names = model
            .trained_on()
            .filter_map(|print| Some(material.dataset_with(&print.to_string(), named.run)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        let trained = match train.len() {
            0 => "–".to_owned(),
            all if names.len() == all => format!("{}: {counts}", shortened(&names.join(", "))),
            1 => counts,
            several => format!("{several} datasets: {counts}"),
        };
        table.row([
            Html::name(&named.name),
            count(model.trees().count() as u64),
            count(model.rounds.into()),
            count(leaves(model)),
            Html::text(model.trees().flat_map(|tree| &tree.nodes).map(|node| node.depth).max().unwrap_or(0)),
            Html::text(format_args!("{used} of {}", model.features.len())),
            Html::text(trained),
        ]);
        if configurations.as_str().len() < 200_000 {
            let code =
                Html::element("pre", &[], Html::element("code", &[], Html::text(&model.configuration)));
            let summary =
                Html::element("summary", &[], Html::name(&format!("Configuration of {}", named.name)));
            configurations.push(Html::element(
                "details",
                &[],
                summary.and(Html::classed("div", "scroll", code)),
            ));
        }
    }
    Html::card("Models", table.html().and(more(material.models.len())).and(configurations))
}

fn leaves(model: &Model) -> u64 {
    model.trees().flat_map(|tree| &tree.nodes).filter(|node| node.split.is_none()).count() as u64
}

fn datasets(material: &Material) -> Html {
    if material.datasets.is_empty() {
        return Html::new();
    }
    let mut table = HtmlTable::new([
        words("dataset"),
        figures("rows"),
        figures("queries"),
        figures("features"),
        figures("unlabelled"),
        figures("size"),
        words("fingerprint"),
    ]);
    for NamedDataset { name, manifest, .. } in material.datasets.iter().take(LISTED) {
        let print = manifest.fingerprint.map_or_else(String::new, |print| print.to_string());
        table.row([
            Html::name(name),
            count(manifest.rows),
            count(manifest.queries),
            count(manifest.features.len() as u64),
            count(manifest.unlabelled),
            Html::text(shown_size(manifest.files.iter().map(|file| file.bytes).sum())),
            Html::classed("span", "id", Html::text(&print[..print.len().min(12)])),
        ]);
    }
    Html::card("Datasets", table.html().and(more(material.datasets.len())))
}

fn runs(material: &Material) -> Html {
    let manifests: Vec<_> =
        material.runs.iter().filter_map(|run| Some((&run.name, run.manifest.as_ref()?))).collect();
    if manifests.is_empty() {
        return Html::new();
    }
    let mut table = HtmlTable::new([
        words("run"),
        words("pipeline"),
        words("parameters"),
        figures("steps"),
        figures("time"),
        words("program"),
    ]);
    for (name, manifest) in manifests.iter().take(LISTED) {
        let parameters: Vec<String> =
            manifest.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let time: f64 = manifest.steps.iter().filter_map(|step| step.seconds).sum();
        table.row([
            Html::name(name),
            Html::name(&manifest.pipeline),
            Html::name(&if parameters.is_empty() { "–".to_owned() } else { parameters.join(", ") }),
            count(manifest.steps.len() as u64),
            Html::text(seconds(time)),
            Html::name(&manifest.program),
        ]);
    }
    Html::card("Runs", table.html().and(more(manifests.len())))
}

fn more(all: usize) -> Html {
    match all.saturating_sub(LISTED) {
        0 => Html::new(),
        hidden => Html::paragraph("note", format_args!("{} more are not listed.", short(hidden as f64))),
    }
}
