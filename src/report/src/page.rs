//! Assembles the page: fills the template with the rendered sections and their data, and writes one self-contained
//! file.

use super::chart::Chart;
use super::documents::QueryList;
use super::drill::{Drill, ExplainedSystem};
use super::forest::ModelTrees;
use super::html::{Html, HtmlTable, embedded};
use super::material::Material;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileOutput, Head, Location, REPORT_FORMATS, replaces};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

const TEMPLATE: &str = include_str!("assets/template.html");
const STYLE: &str = include_str!("assets/report.css");
/// The scripts of the page. Each script may use functions of the scripts before it.
const SCRIPTS: [&str; 6] = [
    include_str!("assets/charts.js"),
    include_str!("assets/figures.js"),
    include_str!("assets/trees.js"),
    include_str!("assets/why.js"),
    include_str!("assets/search.js"),
    include_str!("assets/page.js"),
];
/// Name and version of the program, as recorded in the page.
pub(crate) const PROGRAM: &str = concat!("planetree ", env!("CARGO_PKG_VERSION"));
/// Start of the element that marks an HTML file as a report of planetree.
const SIGNATURE: &str = "<meta name=\"generator\" content=\"planetree ";

/// The data that the page contains for its scripts. Sections add data while they are rendered.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Page {
    charts: Vec<Labelled>,
    forests: Vec<ModelTrees>,
    /// The systems whose documents are explained.
    explained: Vec<ExplainedSystem>,
    /// The explained documents of queries.
    drills: Vec<Drill>,
    /// The queries that can be searched.
    searches: Vec<SearchableQueries>,
    /// Files that can be saved from the page.
    downloads: Vec<Download>,
    /// The index in `explained` of each system.
    #[serde(skip)]
    explained_systems: BTreeMap<usize, usize>,
    /// The index in `drills` of each system and query. `None` if it does not fit.
    #[serde(skip)]
    drill_numbers: BTreeMap<(usize, String), Option<usize>>,
    /// Number of bytes that explained documents take so far.
    #[serde(skip)]
    explained_bytes: usize,
    #[serde(skip)]
    tabs: usize,
    /// Number of bytes that per-query content takes so far.
    #[serde(skip)]
    spent: usize,
}

/// Maximum number of bytes for document lists and per-query charts.
const ROOM: usize = 2_500_000;
/// Maximum number of bytes for the values and contributions of explained documents.
const EXPLAINED_ROOM: usize = 700_000;

/// The queries of a query set, which the reader can search.
#[derive(Debug, Serialize)]
pub(crate) struct SearchableQueries {
    /// Name of the metric.
    pub metric: String,
    /// Names of the systems.
    pub systems: Vec<String>,
    /// Query id, text, and value of the metric in each system.
    pub queries: Vec<(String, Option<String>, Vec<Option<f64>>)>,
}

/// A file that can be saved from the page.
#[derive(Debug, Serialize)]
struct Download {
    name: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Labelled {
    label: String,
    #[serde(flatten)]
    chart: Chart,
}

/// A chart with its title and caption, and a table of its numbers.
pub(crate) struct Figure {
    /// The title above the chart.
    pub title: String,
    /// The caption, which follows the title.
    pub note: String,
    /// The chart.
    pub chart: Chart,
    /// The numbers of the chart as a table.
    pub table: HtmlTable,
}

impl Page {
    /// Adds a figure whose table is collapsed at first.
    pub(crate) fn figure(&mut self, figure: Figure) -> Html {
        self.place(figure, &[])
    }

    /// Adds a figure whose table is expanded at first, because it has more details than the chart.
    pub(crate) fn figure_with_table(&mut self, figure: Figure) -> Html {
        self.place(figure, &[("open", "")])
    }

    fn place(&mut self, figure: Figure, details: &[(&str, &str)]) -> Html {
        let Figure { title, note, chart, table } = figure;
        let number = self.charts.len().to_string();
        self.charts.push(Labelled { label: title.clone(), chart });
        let caption = Html::element("strong", &[], Html::name(&title)).and(Html::element(
            "span",
            &[],
            Html::text(note),
        ));
        let plot = Html::classed("div", "plot", Html::new());
        let details =
            Html::element("details", details, Html::markup("<summary>Table</summary>").and(table.html()));
        let content = Html::element("figcaption", &[], caption).and(plot).and(details);
        Html::element("figure", &[("data-chart", &number)], content)
    }

    /// Returns per-query content if it fits within the size limit, otherwise a note that it was omitted.
    pub(crate) fn if_room(&mut self, content: Html) -> Html {
        if self.has_room(content.as_str().len()) {
            return content;
        }
        left_out()
    }

    /// Reserves bytes within the size limit. Returns `false` if they do not fit.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        let fits = self.spent + bytes <= ROOM;
        if fits {
            self.spent += bytes;
        }
        fits
    }

    /// Adds the trees of a model and returns the element that a script draws them in.
    pub(crate) fn forest(&mut self, forest: ModelTrees) -> Html {
        let number = self.forests.len().to_string();
        self.forests.push(forest);
        Html::element("div", &[("data-forest", &number)], Html::new())
    }

    /// Adds the explanation of the first documents of a query, and returns the element that a script draws it in. The
    /// fragment is empty if the scores of the system are not explained.
    pub(crate) fn why(&mut self, material: &Material, system: usize, query: &str, list: &QueryList) -> Html {
        let Some(Ok(insight)) = material.insights.get(system) else { return Html::new() };
        let key = (system, query.to_owned());
        let number = match self.drill_numbers.get(&key) {
            Some(number) => *number,
            None => {
                let next = self.explained.len();
                let place = *self.explained_systems.entry(system).or_insert(next);
                if place == next {
                    self.explained.push(ExplainedSystem::of(material, insight));
                }
                let Some(drill) = Drill::of(material, place, insight, (query, list)) else {
                    return Html::new();
                };
                let bytes = serde_json::to_string(&drill).map_or(usize::MAX, |json| json.len());
                let fits = bytes <= EXPLAINED_ROOM - self.explained_bytes;
                let number = fits.then_some(self.drills.len());
                if fits {
                    self.explained_bytes += bytes;
                    self.drills.push(drill);
                }
                self.drill_numbers.insert(key, number);
                number
            }
        };
        match number {
            Some(number) => {
                Html::element("div", &[("class", "why"), ("data-drill", &number.to_string())], Html::new())
            }
            None => Html::paragraph(
                "note",
                "Contributions are omitted to keep this file small; `explain_score` of planetree sql computes them.",
            ),
        }
    }

    /// Adds queries that can be searched, and returns the element that a script places the search in.
    pub(crate) fn search(&mut self, queries: SearchableQueries) -> Html {
        let number = self.searches.len().to_string();
        self.searches.push(queries);
        Html::element("div", &[("class", "card search"), ("data-search", &number)], Html::new())
    }

    /// Adds a file that can be saved from the page, and returns a button for it.
    pub(crate) fn download(&mut self, name: &str, text: String) -> Html {
        let number = self.downloads.len().to_string();
        self.downloads.push(Download { name: name.to_owned(), text });
        let attributes = [("type", "button"), ("class", "download"), ("data-download", number.as_str())];
        Html::element("button", &attributes, Html::text(format_args!("Save {name}")))
    }

    /// Creates tabbed panels. A single panel is returned without tabs.
    pub(crate) fn tabs(&mut self, label: &str, mut panels: Vec<(String, Html)>) -> Html {
        if panels.len() == 1 {
            return panels.remove(0).1;
        }
        let first = self.tabs;
        self.tabs += panels.len();
        let mut list = Html::new();
        let mut all = Html::new();
        for (number, (name, content)) in (first..).zip(panels) {
            let (tab, panel) = (format!("tab-{number}"), format!("panel-{number}"));
            let selected = if number == first { "true" } else { "false" };
            let attributes = [
                ("type", "button"),
                ("role", "tab"),
                ("id", tab.as_str()),
                ("aria-controls", panel.as_str()),
                ("aria-selected", selected),
            ];
            list.push(Html::element("button", &attributes, Html::name(&name)));
            let attributes =
                [("role", "tabpanel"), ("id", panel.as_str()), ("aria-labelledby", tab.as_str())];
            let title = Html::classed("h3", "paneltitle", Html::name(&name));
            all.push(Html::element("div", &attributes, title.and(content)));
        }
        let list =
            Html::element("div", &[("class", "tablist"), ("role", "tablist"), ("aria-label", label)], list);
        list.and(all)
    }
}

/// Creates the note that replaces content that does not fit within the size limit.
pub(crate) fn left_out() -> Html {
    Html::paragraph("note", "Omitted to keep this file small; report on fewer runs to see it.")
}

/// A rendered section.
pub(crate) struct PlacedSection {
    /// The id of the section's element, which links refer to.
    pub id: &'static str,
    /// The heading of the section.
    pub title: &'static str,
    /// The content below the heading.
    pub content: Html,
}

/// Renders the whole page.
pub(crate) fn assemble(
    page: &Page,
    title: &str,
    notices: &[String],
    placed: &[PlacedSection],
    footer: &str,
) -> String {
    let data = serde_json::to_string(page).expect("names and numbers always serialise");
    let contents: Html = placed
        .iter()
        .map(|section| {
            let link =
                Html::element("a", &[("href", &format!("#{}", section.id))], Html::text(section.title));
            Html::element("li", &[], link)
        })
        .collect();
    let sections: Html = placed.iter().map(as_section).collect();
    let notices: Html = notices
        .iter()
        .map(|notice| Html::element("div", &[("class", "notice"), ("role", "note")], Html::text(notice)))
        .collect();
    fill(TEMPLATE, |slot| match slot {
        "program" => PROGRAM.to_owned(),
        "title" => Html::text(title).as_str().to_owned(),
        "css" => STYLE.trim_end().to_owned(),
        "contents" => contents.as_str().to_owned(),
        "notices" => notices.as_str().to_owned(),
        "sections" => sections.as_str().to_owned(),
        "footer" => Html::text(footer).as_str().to_owned(),
        "data" => embedded(&data),
        "script" => SCRIPTS.concat().trim_end().to_owned(),
        other => unreachable!("the template has no {other}"),
    })
}

fn as_section(section: &PlacedSection) -> Html {
    let heading = format!("{}-heading", section.id);
    // The summary has no heading of its own, because it follows the heading of the page.
    let title = match section.id {
        "summary" => Html::new(),
        _ => Html::element("h2", &[("id", &heading)], Html::text(section.title)),
    };
    let attributes = [("id", section.id), ("aria-labelledby", heading.as_str())];
    Html::element("section", &attributes, title.and(section.content.clone()))
}

/// Replaces placeholders of the form `{{name}}` in a single pass, so that placeholders in inserted text are not
/// replaced.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (slot, behind) = after.split_once("}}").unwrap_or((after, ""));
        filled.push_str(before);
        filled.push_str(&value(slot));
        rest = behind;
    }
    filled.push_str(rest);
    filled
}

/// Opens the output file. An existing file is replaced only if it is a report of planetree.
pub(crate) fn create(output: &Location) -> Result<FileOutput> {
    REPORT_FORMATS.of(output)?;
    let is_report = |head: &Head| {
        let start = &head.bytes[..head.bytes.len().min(1024)];
        memchr::memmem::find(start, SIGNATURE.as_bytes()).is_some()
    };
    FileOutput::guarded(output, replaces(is_report))
}

/// Writes the page atomically.
pub(crate) fn write(output: &Location, page: &str) -> Result<()> {
    let mut file = create(output)?;
    file.write_all(page.as_bytes()).map_err(|error| Error::io(output, "write", error))?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_once() {
        assert_eq!(fill("a {{x}} b {{y}}", |slot| format!("[{slot} {{{{x}}}}]")), "a [x {{x}}] b [y {{x}}]");
    }

    #[test]
    fn a_page_is_one_file() {
        let page = assemble(&Page::default(), "<t>", &[], &[], "");
        assert!(page.starts_with("<!doctype html>") && page[..1024].contains(SIGNATURE));
        assert!(page.contains("<title>&lt;t&gt;</title>"));
        for elsewhere in ["src=", "http://", "https://", "@import", "url("] {
            let allowed = page.matches("http://www.w3.org/2000/svg").count();
            let found = page.matches(elsewhere).count();
            assert_eq!(found, if elsewhere == "http://" { allowed } else { 0 }, "{elsewhere}");
        }
        // Inserted content must not close the element that surrounds it.
        assert_eq!(page.matches("</script>").count(), 3);
        assert_eq!(page.matches("</style>").count(), 1);
    }
}
