//! Renders the section in which the reader can browse the trees of the models.

use super::Content;
use crate::forest::ModelTrees;
use crate::html::Html;
use crate::material::{MODELS, Material, NamedModel};
use crate::page::Page;
use planetree_base::error::Result;
use planetree_model::model::{FeatureNormalisation, Model, TreeEnsemble};

/// Maximum total number of tree nodes on the page. This many nodes take about a megabyte.
const NODES: usize = 24_000;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let models = material.models.iter().enumerate();
    let parts: Vec<TreePart<'_>> =
        models.flat_map(|(number, named)| tree_parts(number, named)).take(MODELS).collect();
    if parts.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for part in &parts {
        let mut forest = ModelTrees::of(&part.name, part.model, part.ensemble, NODES / parts.len());
        forest.model = part.number;
        let (shown, all) = (forest.trees.len(), forest.all);
        let mut content = Html::markup(
            "<noscript><p class=\"note\">Trees are shown by a script; `planetree describe --tree` prints one.</p></noscript>",
        );
        if shown > 0 {
            content.push(page.forest(forest));
        }
        if part.ensemble.normalisation != FeatureNormalisation::None {
            content.push(Html::paragraph(
                "note",
                "Thresholds apply to features that are normalised over the documents of the query: 0 is the smallest value, 1 the largest.",
            ));
        }
        if shown < all {
            let which = if shown == 0 { "None".to_owned() } else { shown.to_string() };
            content.push(Html::paragraph(
                "note",
                format_args!("{which} of {all} trees are in this file to keep it small; `planetree describe --tree N` prints any."),
            ));
        }
        panels.push((part.name.clone(), Html::classed("div", "card", content)));
    }
    Ok(Content::Shown(page.tabs("Models", panels)))
}

/// A part of a model that consists of trees. A model is a sum of one or several parts.
struct TreePart<'a> {
    /// The name of the model, and of the part if the model has several.
    name: String,
    /// Index of the model.
    number: usize,
    model: &'a Model,
    ensemble: &'a TreeEnsemble,
}

fn tree_parts(place: usize, named: &NamedModel) -> impl Iterator<Item = TreePart<'_>> {
    let model = &named.model;
    model.parts.iter().enumerate().filter_map(move |(number, part)| {
        let ensemble = part.family.trees().filter(|ensemble| !ensemble.trees.is_empty())?;
        let name = match model.parts.len() {
            1 => named.name.clone(),
            _ => format!("{}, {}", named.name, model.part_label(number)),
        };
        Some(TreePart { name, number: place, model, ensemble })
    })
}
