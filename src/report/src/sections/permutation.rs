//! Renders the section that shows permutation importance.

use super::Content;
use crate::chart::{BarRow, Chart, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::Material;
use crate::number::{short, shown_count, signed, value};
use crate::page::{Figure, Page};
use planetree_base::error::{Error, Result};
use planetree_base::progress::unwatched;
use planetree_model::predict::{PermutationImportance, permutation_importance};

/// Maximum number of rows times trees times features, which limits the time.
const WORK: u64 = 2_000_000_000;
/// Maximum number of features in a chart.
const DRAWN: usize = 20;
/// Maximum number of features in a table.
const LISTED: usize = 100;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut pairs: Vec<(usize, &str)> = Vec::new();
    for system in &material.systems {
        if let (Some(model), Some(dataset), Ok(_)) =
            (material.model_of(system), material.dataset_of(system), &system.judged)
            && !pairs.contains(&(model, dataset.name.as_str()))
        {
            pairs.push((model, &dataset.name));
        }
    }
    let pool = material.judging.pool()?;
    let mut panels = Vec::new();
    for (number, dataset) in pairs.into_iter().take(crate::material::MODELS) {
        let named = &material.models[number];
        let Some(data) = material.datasets.iter().find(|data| data.name == dataset) else { continue };
        let work = data.manifest.rows.min(1 << 18)
            * (named.model.trees().count().max(1) * named.model.used_features().len().max(1)) as u64;
        let content = match work {
            work if work > WORK => Html::paragraph(
                "note",
                format_args!(
                    "Not computed: rows times trees times features are {}, the limit is {}. `planetree describe \
                     --permutation` computes it.",
                    shown_count(work),
                    shown_count(WORK)
                ),
            ),
            _ => {
                match pool.install(|| permutation_importance(&named.model, &data.location, 0, &*unwatched()))
                {
                    Ok(importance) => {
                        page.figure(figure(&named.name, dataset, material, number, &importance))
                    }
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => Html::paragraph("note", format_args!("Not computed. {error}")),
                }
            }
        };
        panels.push((named.name.clone(), content));
    }
    Ok(match panels.is_empty() {
        true => Content::Nothing,
        false => Content::Shown(page.tabs("Models", panels)),
    })
}

fn figure(
    model: &str,
    dataset: &str,
    material: &Material,
    number: usize,
    importance: &PermutationImportance,
) -> Figure {
    let name = |feature: u32| shortened(&material.models[number].model.features[feature as usize].name);
    let mut sorted = importance.features.clone();
    sorted.sort_by(|one, other| {
        other.ndcg_drop.total_cmp(&one.ndcg_drop).then(one.feature.cmp(&other.feature))
    });
    let mut table =
        HtmlTable::new([words("feature"), figures("drop of ndcg@10"), figures("increase of rmse")]);
    for feature in sorted.iter().take(LISTED) {
        table.row([
            Html::text(name(feature.feature)),
            Html::text(signed(feature.ndcg_drop)),
            Html::text(signed(feature.rmse_increase)),
        ]);
    }
    let rows = sorted.iter().take(DRAWN).map(|feature| BarRow {
        name: name(feature.feature),
        value: rounded(feature.ndcg_drop),
        text: signed(feature.ndcg_drop),
        slot: if feature.ndcg_drop > 0.0 { 1 } else { 8 },
    });
    Figure {
        title: format!("Drop of ndcg@10 of {} on {}", shortened(model), shortened(dataset)),
        note: format!(
            "{} rows; ndcg@10 is {}, rmse {} with all features. One shuffle per feature: small drops may be chance.",
            shown_count(importance.rows as u64),
            value(importance.ndcg),
            short(importance.rmse)
        ),
        chart: Chart::Bars { measure: "drop of ndcg@10".to_owned(), rows: rows.collect() },
        table,
    }
}
