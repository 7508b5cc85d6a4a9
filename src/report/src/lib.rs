//! Writes reports on runs. A run is a directory with the outputs of one experiment, and a report is one
//! self-contained HTML file about one or more runs.
//!
//! ```text
//! runs ──► tables ──► material: evaluated and compared systems, models, documents of some queries
//!                        │
//!                        ▼ sections: charts (data and text), tables, trees
//!                      page ──► template + style + scripts + data ──► one file
//! ```
//!
//! To add a section, add a file in `sections/` and a line in the table of sections in `sections/mod.rs`. The page
//! contains the data of charts, and a script draws the charts in the browser.

#![warn(unreachable_pub)]

mod chart;
mod display;
mod disputed;
mod documents;
mod drift;
mod drill;
mod forest;
mod html;
mod insight;
mod material;
mod moves;
mod number;
mod page;
mod rules;
mod run;
mod sections;
mod system;
mod trials;

pub use run::RunSource;

use html::Html;
use material::Material;
use page::{Page, PlacedSection};
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_metric::{Convention, Metric};
use sections::{Content, SECTIONS};

/// The runs to report on, and options.
pub struct ReportRequest {
    /// The runs.
    pub runs: Vec<RunSource>,
    /// The primary metric, by which systems are compared.
    pub metric: Metric,
    /// The convention, which is the set of rules for computing metrics. `None` means the convention of the metrics
    /// tables of the runs, or the default if there are no such tables or if their conventions differ.
    pub convention: Option<Convention>,
    /// Labels that replace those of the rankings. `None` means the map of the metrics tables of the runs, or none if there
    /// are no such tables or if their maps differ.
    pub label_map: Option<LabelMap>,
    /// The heading of the page. `None` means the name of the pipeline or of the runs.
    pub title: Option<String>,
    /// The date to show. It is part of the input: a report never shows the time at which it was written.
    pub date: Option<String>,
    /// Tables with texts of queries, titles and links of documents, and segments.
    pub display: Vec<Location>,
    /// The CSV file of disputed labels to write.
    pub disputed: Option<Location>,
    /// Whether to report on runs that are not complete, instead of returning an error.
    pub unfinished: bool,
    /// Whether the report is written by a step of the run that it shows.
    pub within_run: bool,
    /// Number of threads, or 0 for all cores.
    pub threads: usize,
}

/// Size of a written report, and how much it contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Size of the file in bytes.
    pub bytes: usize,
    /// Number of systems, which are the rankings in the report.
    pub systems: usize,
    /// Number of models in the report.
    pub models: usize,
    /// What the user should know, such as a display table of other queries.
    pub notes: Vec<String>,
}

/// Writes a report atomically. The same runs always give the same bytes.
pub fn write_report(request: &ReportRequest, output: &Location) -> Result<Written> {
    drop(page::create(output)?); // fails now, not after the work, if the file cannot be written
    if let Some(disputed) = &request.disputed {
        drop(disputed::create(disputed)?);
    }
    let material = Material::gather(request)?;
    let title = request.title.clone().unwrap_or_else(|| title_of(&material));
    let mut page = Page::default();
    let mut placed = Vec::new();
    for section in SECTIONS {
        let lead = Html::paragraph("lead", section.lead);
        let content = match (section.make)(&material, &mut page)? {
            Content::Shown(content) => content,
            Content::Absent(reason) => {
                Html::classed("div", "absent", Html::prose(format_args!("Not shown. {reason}")))
            }
            Content::Nothing => continue,
        };
        let content = if section.lead.is_empty() { content } else { lead.and(content) };
        placed.push(PlacedSection { id: section.id, title: section.title, content });
    }
    if let Some(summary) = placed.first_mut() {
        summary.content = sections::hero(&material, &title).and(summary.content.clone());
    }
    let notices: Vec<String> = material
        .runs
        .iter()
        .filter_map(|run| {
            Some(format!(
                "Unfinished: {} is not complete: {}. Tables may be missing.",
                run.name,
                run.unfinished.as_ref()?
            ))
        })
        .collect();
    let footer = format!(
        "{}{}. Metrics by the convention {}. This file needs no network.",
        page::PROGRAM,
        material.date.as_ref().map_or_else(String::new, |date| format!(", {date}")),
        material.judging.rules()
    );
    let whole = page::assemble(&page, &title, &notices, &placed, &footer);
    page::write(output, &whole)?;
    if let Some(output) = &request.disputed {
        disputed::write(&material, output)?;
    }
    Ok(Written {
        bytes: whole.len(),
        systems: material.systems.len(),
        models: material.models.len(),
        notes: material.display.notes,
    })
}

fn title_of(material: &Material) -> String {
    let names: Vec<&str> = material.runs.iter().map(|run| run.name.as_str()).collect();
    match (names.as_slice(), material.runs[0].manifest.as_ref()) {
        ([_], Some(manifest)) if !manifest.pipeline.is_empty() => manifest.pipeline.clone(),
        ([one], _) => (*one).to_owned(),
        ([one, two], _) => format!("{one} and {two}"),
        (several, _) => format!("{} and {} other runs", several[0], several.len() - 1),
    }
}
