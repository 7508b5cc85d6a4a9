//! Renders the section that lists disputed labels.

use super::Content;
use crate::disputed::{DisputedLabel, as_csv};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::{count, short, shown_count};
use crate::page::{Page, left_out};
use planetree_base::error::Result;

/// Maximum number of labels in the table.
const LISTED: usize = 30;
/// Maximum number of labels in the file that the page contains.
const SAVED: usize = 500;

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut panels = Vec::new();
    for set in &material.sets {
        let mut systems = Vec::new();
        for place in &set.systems {
            let (system, disputed) = (&material.systems[*place], &material.disputed[*place]);
            if !disputed.is_empty() {
                systems.push((system.name.clone(), of_system(material, &system.name, disputed, page)));
            }
        }
        if !systems.is_empty() {
            panels.push((set.name.clone(), page.tabs("Rankings", systems)));
        }
    }
    Ok(match panels.is_empty() {
        true => Content::Nothing,
        false => Content::Shown(page.tabs("Queries", panels)),
    })
}

fn of_system(material: &Material, name: &str, disputed: &[DisputedLabel], page: &mut Page) -> Html {
    let mut table = HtmlTable::new([
        words("query"),
        words("document"),
        figures("label"),
        figures("rank"),
        figures("score"),
        figures("better labelled"),
        figures("their label"),
        figures("margin"),
        figures("dispute"),
    ]);
    for it in disputed.iter().take(LISTED) {
        let id = Html::classed("span", "id", Html::name(&it.query));
        let query = match material.display.text(&it.query) {
            Some(text) => Html::classed("span", "title", Html::name(text)).and(id),
            None => id,
        };
        let document = it.document.as_deref();
        table.row([
            query,
            document.map_or_else(|| Html::text("–"), |id| material.display.shown_document(&it.query, id)),
            Html::text(it.label),
            count(it.rank.into()),
            Html::text(short(it.score)),
            count(it.better as u64),
            Html::text(short(it.better_label)),
            Html::text(format_args!("{:.2}", it.margin)),
            Html::text(format_args!("{:.2}", it.strength())),
        ]);
    }
    let text = as_csv(std::iter::once((name, disputed)), &material.display, SAVED);
    let table = page.if_room(table.html());
    let save = match page.has_room(text.len()) {
        true => page.download("disputed-labels.csv", text),
        false => left_out(),
    };
    let note = format!(
        "The first {} of {} by dispute: the margin times the difference of the labels. The margin is the score minus the \
         mean score of the better-labelled documents, in standard deviations of the query's scores. The file has the \
         first {SAVED}; `planetree report --disputed FILE` writes more.",
        disputed.len().min(LISTED),
        shown_count(disputed.len() as u64)
    );
    Html::classed("div", "card", table.and(Html::paragraph("note", note)).and(save))
}
