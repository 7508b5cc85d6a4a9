//! Renders the section that describes the datasets, and how much features differ between them.

use super::Content;
use crate::chart::{BarRow, COLOURS, Chart, LegendItem, StackRow, rounded};
use crate::drift::{FeatureDrift, FeatureSample};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{Material, NamedDataset};
use crate::number::{count, short, shown_count};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_data::dataset::DatasetReader;
use planetree_data::describe::{Description, describe};

/// Maximum number of datasets.
const DATASETS: usize = 6;
/// Maximum number of values of a dataset (rows times features) that are summarised.
const VALUES: u64 = 200_000_000;
/// Maximum number of features in a chart.
const DRAWN: usize = 15;
/// Maximum number of features in a table.
const LISTED: usize = 100;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.datasets.is_empty() {
        return Ok(Content::Nothing);
    }
    let pool = material.judging.pool()?;
    let shown: Vec<&NamedDataset> = material.datasets.iter().take(DATASETS).collect();
    let mut described: Vec<(&NamedDataset, Description)> = Vec::new();
    let mut html = Html::new();
    for dataset in &shown {
        let values = dataset.manifest.rows * dataset.manifest.features.len() as u64;
        if values > VALUES {
            html.push(Html::paragraph(
                "note",
                format_args!(
                    "{} is not summarised: it has {} values, the limit is {}. `planetree describe` does it.",
                    shortened(&dataset.name),
                    shown_count(values),
                    shown_count(VALUES)
                ),
            ));
            continue;
        }
        let reader = DatasetReader::open(&dataset.location)?;
        described.push((dataset, pool.install(|| describe(&reader, &mut |_| {}))?));
    }
    if !described.is_empty() {
        html.push(page.figure_with_table(labels(&described)));
        html.push(Html::card("Queries", queries(&described)));
        html.push(Html::card("Features", features(&described)));
    }
    html.push(drifts(material, &shown, page)?);
    if material.datasets.len() > DATASETS {
        html.push(Html::paragraph(
            "note",
            format_args!("The first {DATASETS} of {} datasets are shown.", material.datasets.len()),
        ));
    }
    Ok(Content::Shown(html))
}

fn labels(described: &[(&NamedDataset, Description)]) -> Figure {
    let mut all: Vec<f32> =
        described.iter().flat_map(|(_, it)| it.queries.labels()).map(|(label, _)| label).collect();
    all.sort_by(f32::total_cmp);
    all.dedup();
    // Each label has a part of its own while there are colours; the last part has all further ones.
    let part_of = |label: f32| all.partition_point(|other| *other < label).min(COLOURS - 1);
    let parts: Vec<LegendItem> = all
        .iter()
        .take(COLOURS)
        .enumerate()
        .map(|(part, label)| {
            let more = if part == COLOURS - 1 && all.len() > COLOURS { " and above" } else { "" };
            LegendItem { name: format!("label {label}{more}"), slot: part + 1 }
        })
        .collect();
    let mut table =
        HtmlTable::new([words("dataset"), figures("label"), figures("documents"), figures("share")]);
    let mut rows = Vec::new();
    for (dataset, it) in described {
        let mut counts = vec![0; parts.len()];
        let total: u64 = it.queries.labels().iter().map(|(_, documents)| documents).sum();
        for (label, documents) in it.queries.labels() {
            counts[part_of(label)] += documents;
            table.row([
                Html::name(&dataset.name),
                Html::text(label),
                count(documents),
                Html::text(format_args!("{:.2} %", 100.0 * documents as f64 / total.max(1) as f64)),
            ]);
        }
        rows.push(StackRow { name: shortened(&dataset.name), counts });
    }
    Figure {
        title: "Labels".to_owned(),
        note: "Share of the documents with each label.".to_owned(),
        chart: Chart::Stack { parts, rows },
        table,
    }
}

fn queries(described: &[(&NamedDataset, Description)]) -> Html {
    let mut table = HtmlTable::new([
        words("dataset"),
        figures("queries"),
        figures("documents per query"),
        figures("without relevant"),
        figures("one label only"),
        figures("repeated rows"),
    ]);
    for (dataset, it) in described {
        let sizes = [0.0, 0.5, 1.0].map(|share| it.queries.size_percentile(share));
        table.row([
            Html::name(&dataset.name),
            count(it.queries.queries()),
            Html::text(format_args!("{} to {}, median {}", sizes[0], sizes[2], sizes[1])),
            count(it.queries.empty),
            count(it.queries.one_label),
            count(it.queries.repeated_rows),
        ]);
    }
    table.html()
}

/// Renders the features of the first dataset, with the share of missing values in all datasets. Features with missing
/// values come first.
fn features(described: &[(&NamedDataset, Description)]) -> Html {
    let (first, summary) = &described[0];
    let missing = |(dataset, it): &(&NamedDataset, Description), name: &str| {
        let place = dataset.manifest.features.iter().position(|known| known == name)?;
        Some(it.features[place].missing_share())
    };
    let mut columns = vec![words("feature"), words("kind"), figures("min"), figures("mean"), figures("max")];
    columns.extend(
        described.iter().map(|(dataset, _)| figures(format!("missing, {}", shortened(&dataset.name)))),
    );
    let mut table = HtmlTable::new(columns);
    let mut order: Vec<usize> = (0..summary.features.len()).collect();
    let most = |place: usize| {
        let name = &first.manifest.features[place];
        described.iter().filter_map(|one| missing(one, name)).fold(0.0, f64::max)
    };
    let most: Vec<f64> = order.iter().map(|place| most(*place)).collect();
    order.sort_by(|one, other| most[*other].total_cmp(&most[*one])); // stable, so others stay in column order
    for place in order.iter().take(LISTED) {
        let (name, feature) = (&first.manifest.features[*place], &summary.features[*place]);
        let known = |value: f64| if feature.present > 0 { short(value) } else { "–".to_owned() };
        let mut cells = vec![
            Html::name(name),
            Html::text(format!("{:?}", feature.kind()).to_lowercase()),
            Html::text(known(f64::from(feature.least))),
            Html::text(known(feature.mean().unwrap_or(f64::NAN))),
            Html::text(known(f64::from(feature.most))),
        ];
        cells.extend(described.iter().map(|one| match missing(one, name) {
            Some(share) => Html::text(format_args!("{:.2} %", 100.0 * share)),
            None => Html::text("no such feature"),
        }));
        table.row(cells);
    }
    let more = match order.len() > LISTED {
        true => format!(" The {LISTED} of {} features with most missing values.", order.len()),
        false => String::new(),
    };
    let note = format!("Values in {}.{more}", shortened(&first.name));
    table.html().and(Html::paragraph("note", note))
}

/// Compares all datasets with the one that the models were trained on, or with the first.
fn drifts(material: &Material, shown: &[&NamedDataset], page: &mut Page) -> Result<Html> {
    if shown.len() < 2 {
        return Ok(Html::new());
    }
    let trained = material.models.iter().flat_map(|named| named.model.trained_on()).collect::<Vec<_>>();
    let is_train =
        |dataset: &&NamedDataset| dataset.manifest.fingerprint.is_some_and(|it| trained.contains(&it));
    let reference = shown.iter().position(is_train).unwrap_or(0);
    let sample = FeatureSample::read(shown[reference])?;
    let mut panels = Vec::new();
    for (_, dataset) in shown.iter().enumerate().filter(|(place, _)| *place != reference) {
        let other = FeatureSample::read(dataset)?;
        let drifts = sample.compare(&other);
        let name = format!("{} against {}", shortened(&dataset.name), shortened(&shown[reference].name));
        let content = match drifts.is_empty() {
            true => Html::paragraph("note", "The datasets have no numeric feature in common."),
            false => page.figure_with_table(drift_figure(&name, &drifts, [sample.rows, other.rows])),
        };
        panels.push((name, content));
    }
    Ok(Html::element("h3", &[], Html::text("Drift of features")).and(page.tabs("Datasets", panels)))
}

fn drift_figure(name: &str, drifts: &[FeatureDrift], rows: [usize; 2]) -> Figure {
    let mut table = HtmlTable::new([
        words("feature"),
        figures("stability index"),
        figures("KS"),
        figures("missing in reference"),
        figures("missing here"),
    ]);
    for drift in drifts.iter().take(LISTED) {
        let percent = |share: f64| Html::text(format_args!("{:.2} %", 100.0 * share));
        table.row([
            Html::name(&drift.name),
            Html::text(format_args!("{:.4}", drift.stability_index)),
            Html::text(drift.largest_gap.map_or_else(|| "–".to_owned(), |gap| format!("{gap:.4}"))),
            percent(drift.missing[0]),
            percent(drift.missing[1]),
        ]);
    }
    let slot = |index: f64| match index {
        ..0.1 => 8,
        ..0.25 => 1,
        _ => 2,
    };
    let bars = drifts.iter().take(DRAWN).map(|drift| BarRow {
        name: shortened(&drift.name),
        value: rounded(drift.stability_index),
        text: format!("{:.4}", drift.stability_index),
        slot: slot(drift.stability_index),
    });
    Figure {
        title: format!("Population stability index of {name}"),
        note: format!(
            "Deciles of the reference and a bin of missing values; {} and {} rows. Commonly, below 0.1 (grey) counts as stable, \
             above 0.25 (orange) as a large change; with few queries, features of the query itself differ by chance.",
            shown_count(rows[1] as u64),
            shown_count(rows[0] as u64)
        ),
        chart: Chart::Bars { measure: "stability index".to_owned(), rows: bars.collect() },
        table,
    }
}
