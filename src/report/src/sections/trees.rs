//! Browser for the trees of the models.

use super::Content;
use crate::forest::ModelTrees;
use crate::html::Html;
use crate::material::{MODELS, Material};
use crate::page::Page;
use planetree_base::error::Result;

/// Maximum nodes of all trees on the page, about a megabyte.
const NODES: usize = 24_000;

/// Makes the section.
pub fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let models: Vec<_> =
        material.models.iter().filter(|named| !named.model.trees.is_empty()).take(MODELS).collect();
    if models.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for named in &models {
        let forest = ModelTrees::of(&named.name, &named.model, NODES / models.len());
        let (shown, all) = (forest.trees.len(), forest.all);
        let mut content = Html::markup(
            "<noscript><p class=\"note\">Trees are shown by a script; `planetree describe --tree` prints one.</p></noscript>",
        );
        if shown > 0 {
            content.push(page.forest(forest));
        }
        if shown < all {
            let which = if shown == 0 { "None".to_owned() } else { shown.to_string() };
            content.push(Html::paragraph(
                "note",
                format_args!("{which} of {all} trees are in this file to keep it small; `planetree describe --tree N` prints any."),
            ));
        }
        panels.push((named.name.clone(), Html::classed("div", "card", content)));
    }
    Ok(Content::Shown(page.tabs("Models", panels)))
}
