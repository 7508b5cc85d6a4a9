//! Draws how the first documents of a query move from one ranking to another, as lines between two lists. The drawing
//! is part of the page, so it needs no script.

use super::documents::{QueryList, RankedDocument};
use super::html::{Html, shortened};
use std::fmt::Write;

/// Number of documents of each list.
const LISTED: usize = 10;
const WIDTH: f64 = 340.0;
const STEP: f64 = 21.0;
const TOP: f64 = 26.0;
/// Horizontal positions of the ends of the lines.
const ENDS: [f64; 2] = [118.0, 222.0];
/// Maximum number of letters of a document id.
const LETTERS: usize = 13;

/// Two rankings of a query whose documents move from one to the other.
pub(crate) struct Movement<'a> {
    /// Names of the rankings.
    pub names: [&'a str; 2],
    /// Whether both tables list the same documents in the same order.
    pub same_rows: bool,
    /// Returns the title of the document with an id, if it has one.
    pub title: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// Draws the movement of documents. Returns an empty fragment if no document can be found in the other list.
pub(crate) fn movement(movement: &Movement<'_>, before: &QueryList, after: &QueryList) -> Html {
    let Movement { names, same_rows, title } = *movement;
    let title_of = |document: &RankedDocument| title(document.id.as_deref()?);
    let lists = [before, after].map(|list| &list.first[..list.first.len().min(LISTED)]);
    let mut lines: Vec<(&RankedDocument, u32, u32)> = Vec::new();
    for document in lists[0] {
        lines.extend(after.rank_of(document, same_rows).map(|rank| (document, document.rank, rank)));
    }
    let listed = |rank: u32| rank as usize <= LISTED;
    for document in lists[1] {
        let was = before.rank_of(document, same_rows).filter(|was| !listed(*was));
        lines.extend(was.map(|was| (document, was, document.rank)));
    }
    if lines.is_empty() {
        return Html::new();
    }
    let rows = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let y = |rank: u32| TOP + STEP * (f64::from(rank) - 0.5).min(rows as f64 + 0.45);
    let height = TOP + STEP * (rows as f64 + 1.0);
    let mut drawn = Html::new();
    for ((list, name), side) in lists.iter().zip(names).zip([0, 1]) {
        let (x, anchor) = if side == 0 { (ENDS[0] - 6.0, "end") } else { (ENDS[1] + 6.0, "start") };
        drawn.push(text(x, 12.0, anchor, "head", &cut(name, 17)));
        for document in *list {
            let id = title_of(document).or(document.id.as_deref()).unwrap_or("–");
            let id = cut(id, LETTERS);
            let label = document.label.map_or_else(String::new, |label| format!(" [{label}]"));
            let said = match side {
                0 => format!("{id}{label} {}", document.rank),
                _ => format!("{} {id}{label}", document.rank),
            };
            drawn.push(text(x, y(document.rank) + 4.0, anchor, "entry", &said));
        }
    }
    for (document, was, is) in lines {
        let slot = match was.cmp(&is) {
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Less => 2,
            std::cmp::Ordering::Equal => 8,
        };
        let relevant = if document.label.is_some_and(|label| label > 0.0) { " relevant" } else { "" };
        let leaves = if listed(was) && listed(is) { "" } else { " leaves" };
        let mut path = String::new();
        let (from, to, middle) = (y(was), y(is), (ENDS[0] + ENDS[1]) / 2.0);
        let _ =
            write!(path, "M{} {from:.1}C{middle} {from:.1} {middle} {to:.1} {} {to:.1}", ENDS[0], ENDS[1]); // writing to a String cannot fail
        let id = shortened(document.id.as_deref().unwrap_or("document"));
        let said = match title_of(document) {
            Some(title) => format!("{} ({id}): {was} → {is}", shortened(title)),
            None => format!("{id}: {was} → {is}"),
        };
        let title = Html::element("title", &[], Html::text(said));
        let class = format!("move s{slot}{relevant}{leaves}");
        drawn.push(Html::element("path", &[("class", &class), ("d", &path)], title));
    }
    let size = format!("0 0 {WIDTH} {height}");
    let label = format!("Movement of documents from {} to {}", shortened(names[0]), shortened(names[1]));
    let picture = Html::element("svg", &[("viewBox", &size), ("role", "img"), ("aria-label", &label)], drawn);
    let note = "Lines: blue up, orange down; thick if relevant; dashed if the document leaves or enters the first 10. \
                Labels are in brackets.";
    Html::classed("div", "moves", picture.and(Html::paragraph("note", note)))
}

fn text(x: f64, y: f64, anchor: &str, class: &str, said: &str) -> Html {
    let (x, y) = (format!("{x}"), format!("{y:.1}"));
    let attributes = [("x", x.as_str()), ("y", &y), ("text-anchor", anchor), ("class", class)];
    Html::element("text", &attributes, Html::text(said))
}

/// Cuts a text to a number of letters.
fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(order: &[&str]) -> QueryList {
        let document = |(place, id): (usize, &&str)| RankedDocument {
            rank: place as u32 + 1,
            id: Some((*id).to_owned()),
            label: Some(1.0),
            score: 0.0,
            place,
        };
        let first: Vec<RankedDocument> = order.iter().enumerate().map(document).collect();
        let all = first.iter().map(|document| (document.id.clone(), document.rank)).collect();
        QueryList { documents: first.len() as u64, first, first_row: 0, all }
    }

    #[test]
    fn every_document_of_either_list_has_a_line() {
        let many: Vec<String> = (0..15).map(|number| format!("d{number}")).collect();
        let mut names: Vec<&str> = many.iter().map(String::as_str).collect();
        let before = list(&names);
        names.swap(0, 14);
        let title = |id: &str| (id == "d1").then_some("A cat & a dog in a house");
        let between = Movement { names: ["a", "<b>"], same_rows: false, title: &title };
        let drawn = movement(&between, &before, &list(&names));
        let drawn = drawn.as_str();
        assert_eq!(drawn.matches("<path").count(), 11, "10 of the first list and one that enters");
        assert!(drawn.contains("d0: 1 → 15") && drawn.contains("d14: 15 → 1"), "{drawn}");
        assert_eq!(drawn.matches(" leaves\"").count(), 2);
        assert!(drawn.contains("&lt;b&gt;"));
        assert!(drawn.contains("A cat &amp; a dog in a house (d1): 2 → 2"), "{drawn}");
        assert!(drawn.contains("A cat &amp; a dog…") && !drawn.contains("d1 [1]"), "{drawn}");
        assert!(movement(&between, &before, &list(&["x"])).is_empty());
    }
}
