//! Generates safe HTML. Text is always escaped, so data can never be interpreted as markup.

use std::fmt::Display;

/// Maximum number of characters of a name. Longer names are shortened.
const LONGEST: usize = 160;

/// A fragment of HTML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Creates an empty fragment.
    pub(crate) fn new() -> Self {
        Html::default()
    }

    /// Creates a fragment of escaped text.
    pub(crate) fn text(text: impl Display) -> Self {
        Html(escaped(&text.to_string()))
    }

    /// Creates a fragment of escaped text that comes from data, such as a query id. Very long text is shortened.
    pub(crate) fn name(text: &str) -> Self {
        Html::text(shortened(text))
    }

    /// Creates a fragment of literal markup, which must be a constant of the program and never come from data.
    pub(crate) fn markup(markup: &'static str) -> Self {
        Html(markup.to_owned())
    }

    /// Creates a fragment of escaped text. Text between backticks is shown as code.
    pub(crate) fn prose(text: impl Display) -> Self {
        let text = text.to_string();
        let parts = text.split('`').map(escaped).zip([false, true].into_iter().cycle());
        let marked = parts.map(|(part, typed)| if typed { format!("<code>{part}</code>") } else { part });
        Html(marked.collect())
    }

    /// Creates an element with attributes and content.
    pub(crate) fn element(name: &str, attributes: &[(&str, &str)], content: Html) -> Self {
        let mut html = format!("<{name}");
        for (key, value) in attributes {
            html.push_str(&format!(" {key}=\"{}\"", escaped(value)));
        }
        html.push('>');
        html.push_str(&content.0);
        html.push_str(&format!("</{name}>"));
        Html(html)
    }

    /// Creates an element with a CSS class.
    pub(crate) fn classed(name: &str, class: &str, content: Html) -> Self {
        Html::element(name, &[("class", class)], content)
    }

    /// Creates a paragraph of escaped text. Text between backticks is shown as code.
    pub(crate) fn paragraph(class: &str, text: impl Display) -> Self {
        Html::classed("p", class, Html::prose(text))
    }

    /// Creates a card, which is a box with a heading.
    pub(crate) fn card(heading: impl Display, content: Html) -> Self {
        Html::classed("div", "card", Html::element("h3", &[], Html::text(heading)).and(content))
    }

    /// Appends a fragment and returns the result.
    pub(crate) fn and(mut self, other: Html) -> Self {
        self.push(other);
        self
    }

    /// Appends a fragment.
    pub(crate) fn push(&mut self, other: Html) {
        self.0.push_str(&other.0);
    }

    /// Returns whether the fragment is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the markup.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(parts: I) -> Self {
        parts.into_iter().fold(Html::new(), Html::and)
    }
}

/// Escapes text for use in elements and attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' => safe.push(letter),
            // Other control characters are not allowed in HTML.
            letter if letter.is_control() => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Shortens a name that is too long, and appends an ellipsis to show it.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Escapes JSON for use in a script element, so that it cannot close the element.
pub(crate) fn embedded(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => safe.push(letter),
        }
    }
    safe
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    name: String,
    number: bool,
}

/// Creates a column of text, which is aligned to the left.
pub(crate) fn words(name: impl Display) -> TableColumn {
    TableColumn { name: name.to_string(), number: false }
}

/// Creates a column of numbers, which are aligned to the right.
pub(crate) fn figures(name: impl Display) -> TableColumn {
    TableColumn { name: name.to_string(), number: true }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HtmlTable {
    columns: Vec<TableColumn>,
    rows: Vec<(bool, Vec<Html>)>,
}

/// Maximum number of rows that a table shows without scrolling.
const TALL: usize = 14;

impl HtmlTable {
    /// Creates a table without rows.
    pub(crate) fn new(columns: impl IntoIterator<Item = TableColumn>) -> Self {
        HtmlTable { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Html>) {
        self.rows.push((false, cells.into_iter().collect()));
    }

    /// Adds a highlighted row.
    pub(crate) fn best_row(&mut self, cells: impl IntoIterator<Item = Html>) {
        self.rows.push((true, cells.into_iter().collect()));
    }

    /// Returns the markup of the table. A long table scrolls within its own box.
    pub(crate) fn html(&self) -> Html {
        let class = |column: &TableColumn| if column.number { "number" } else { "text" };
        let head: Html = self
            .columns
            .iter()
            .map(|column| {
                let attributes = [("scope", "col"), ("class", class(column))];
                Html::element("th", &attributes, Html::name(&column.name))
            })
            .collect();
        let row = |(best, cells): &(bool, Vec<Html>)| {
            let cells = self.columns.iter().zip(cells);
            let cells: Html =
                cells.map(|(column, cell)| Html::classed("td", class(column), cell.clone())).collect();
            if *best { Html::classed("tr", "best", cells) } else { Html::element("tr", &[], cells) }
        };
        let rows: Html = self.rows.iter().map(row).collect();
        let table = Html::element("thead", &[], Html::element("tr", &[], head)).and(Html::element(
            "tbody",
            &[],
            rows,
        ));
        let class = if self.rows.len() > TALL { "scroll tall" } else { "scroll" };
        // A region that scrolls must be focusable, so that it can be scrolled with the keyboard.
        let attributes = [("class", class), ("tabindex", "0"), ("role", "region"), ("aria-label", "Table")];
        Html::element("div", &attributes, Html::element("table", &[], table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_data_becomes_markup() {
        let evil = "</script><script>alert('1')</script>\u{0}\"&";
        let html = Html::element("a", &[("title", evil)], Html::name(evil));
        assert_eq!(html.as_str().matches('<').count(), 2);
        assert_eq!(html.as_str().matches('"').count(), 2);
        assert!(!html.as_str().contains('\u{0}'));
        let json = serde_json::to_string(&[evil, "<!--", "\u{2028}"]).unwrap();
        let safe = embedded(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), [evil, "<!--", "\u{2028}"]);
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        assert_eq!(shortened("short"), "short");
        let long = "ä".repeat(500);
        assert_eq!(shortened(&long).chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_table_is_rows_of_its_columns() {
        let mut table = HtmlTable::new([words("query"), figures("ndcg@10")]);
        table.row([Html::name("<q>"), Html::text(0.5)]);
        let html = table.html();
        assert!(html.as_str().contains("<td class=\"text\">&lt;q&gt;</td><td class=\"number\">0.5</td>"));
    }
}
