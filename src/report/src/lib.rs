//! Reports: one self-contained HTML file per set of runs.
//!
//! ```text
//! runs ──► tables ──► material: evaluated and compared systems, models, documents of some queries
//!                        │
//!                        ▼ sections: charts (data and text), tables, trees
//!                      page ──► template + style + scripts + data ──► one file
//! ```
//!
//! To add a section, add a file in `sections/` and a line in its table; the browser draws charts from data.

mod chart;
mod documents;
mod forest;
mod html;
mod material;
mod number;
mod page;
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
use planetree_metric::{Convention, Metric};
use sections::{Content, SECTIONS};

/// Runs to report on and options.
pub struct ReportRequest {
    /// The runs.
    pub runs: Vec<RunSource>,
    /// The primary metric.
    pub metric: Metric,
    /// Convention of the metrics; `None` for that of the runs' metrics tables, or else the default.
    pub convention: Option<Convention>,
    /// The page's heading; `None` for the name of the run.
    pub title: Option<String>,
    /// Whether to show incomplete runs.
    pub unfinished: bool,
    /// Whether this report is a step of the run that it shows.
    pub within_run: bool,
    /// Number of threads; 0 for all cores.
    pub threads: usize,
}

/// Contents of the written report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Size of the file in bytes.
    pub bytes: usize,
    /// Number of systems.
    pub systems: usize,
    /// Number of models.
    pub models: usize,
}

/// Writes a report, whole or not at all. The same runs give the same bytes.
pub fn write_report(request: &ReportRequest, output: &Location) -> Result<Written> {
    drop(page::create(output)?); // before the work, not after it
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
        "{}. Metrics by the convention {}. This file needs no network.",
        page::PROGRAM,
        material.judging.convention
    );
    let whole = page::assemble(&page, &title, &notices, &placed, &footer);
    page::write(output, &whole)?;
    Ok(Written { bytes: whole.len(), systems: material.systems.len(), models: material.models.len() })
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
