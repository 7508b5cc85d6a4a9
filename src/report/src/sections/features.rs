//! Renders the section that shows feature importance.

use super::Content;
use crate::chart::{BarRow, Chart, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{MODELS, Material, NamedModel};
use crate::number::{count, short, shown_count};
use crate::page::{Figure, Page};
use planetree_base::error::Result;
use planetree_model::model::FeatureImportance;

/// Maximum number of features in a chart.
const DRAWN: usize = 20;
/// Maximum number of features in a table.
const LISTED: usize = 100;

/// A measure of feature importance.
struct ImportanceMeasure {
    name: &'static str,
    note: &'static str,
    of: fn(&FeatureImportance) -> f64,
}

const MEASURES: [ImportanceMeasure; 3] = [
    ImportanceMeasure {
        name: "Gain",
        note: "Total reduction of the loss by splits on the feature; in a linear part, the standard deviation of the feature's term.",
        of: |feature| feature.gain,
    },
    ImportanceMeasure {
        name: "Cover",
        note: "Total weight of the training documents at splits on the feature; in a linear part, of all training documents.",
        of: |feature| feature.cover,
    },
    ImportanceMeasure {
        name: "Splits",
        note: "Number of splits on the feature; a weight of a linear part counts as one.",
        of: |feature| feature.splits as f64,
    },
];

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    if material.models.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for named in material.models.iter().take(MODELS) {
        panels.push((named.name.clone(), of_model(named, page)));
    }
    let mut html = page.tabs("Models", panels);
    if material.models.len() > MODELS {
        html.push(Html::paragraph(
            "note",
            format_args!("The first {MODELS} of {} models are shown.", material.models.len()),
        ));
    }
    Ok(Content::Shown(html))
}

fn of_model(named: &NamedModel, page: &mut Page) -> Html {
    let used: Vec<FeatureImportance> =
        named.model.importance().into_iter().filter(|feature| feature.splits > 0).collect();
    if used.is_empty() {
        return Html::classed("div", "absent", Html::text("The model uses no features."));
    }
    let panels = MEASURES.iter().map(|measure| {
        let figure = figure(named, &used, measure);
        (measure.name.to_owned(), page.figure(figure))
    });
    let panels = panels.collect();
    page.tabs("Measures", panels)
}

fn figure(named: &NamedModel, used: &[FeatureImportance], measure: &ImportanceMeasure) -> Figure {
    let name = |feature: &FeatureImportance| shortened(&named.model.features[feature.feature as usize].name);
    let total: f64 = used.iter().map(measure.of).sum();
    let share = |feature: &FeatureImportance| if total > 0.0 { (measure.of)(feature) / total } else { 0.0 };
    let mut sorted: Vec<&FeatureImportance> = used.iter().collect();
    sorted.sort_by(|one, other| (measure.of)(other).total_cmp(&(measure.of)(one)));
    let mut table = HtmlTable::new([
        words("feature"),
        figures("share"),
        figures("gain"),
        figures("cover"),
        figures("splits"),
    ]);
    for feature in sorted.iter().take(LISTED) {
        table.row([
            Html::text(name(feature)),
            Html::text(format_args!("{:.2} %", 100.0 * share(feature))),
            Html::text(short(feature.gain)),
            Html::text(short(feature.cover)),
            count(feature.splits),
        ]);
    }
    let rows: Vec<BarRow> = sorted
        .iter()
        .take(DRAWN)
        .map(|feature| BarRow {
            name: name(feature),
            value: rounded((measure.of)(feature)),
            text: format!("{:.1} %", 100.0 * share(feature)),
            slot: 1,
        })
        .collect();
    let mut note = measure.note.to_owned();
    if used.len() > DRAWN {
        let listed = if used.len() > LISTED { format!("the first {LISTED}") } else { "all".to_owned() };
        note.push_str(&format!(
            " The first {DRAWN} of {} features used; the table has {listed}.",
            shown_count(used.len() as u64)
        ));
    }
    Figure {
        title: format!("{} of {}", measure.name, named.name),
        note,
        chart: Chart::Bars { measure: format!("share of {}", measure.name.to_lowercase()), rows },
        table,
    }
}
