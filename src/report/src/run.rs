//! Reads runs. A run is a directory with the outputs of one experiment. It has a manifest if a pipeline wrote it.

use super::trials::Trials;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::catalog::{CatalogEntry, CatalogKind, catalog_entries};
use planetree_data::dataset::MANIFEST;
use planetree_data::table::{TableKind, TableReader};
use planetree_run::pipeline::{RunManifest, RunStatus};

/// A run to report on.
#[derive(Debug, Clone)]
pub struct RunSource {
    /// The display name. `None` means the name of the directory.
    pub name: Option<String>,
    /// The directory of the run.
    pub location: Location,
}

/// The contents of a run.
pub(crate) struct RunContents {
    /// The display name.
    pub name: String,
    /// The directory of the run.
    pub location: Location,
    /// The manifest that the pipeline wrote. `None` if the run was not written by a pipeline.
    pub manifest: Option<RunManifest>,
    /// The datasets and tables to show, in the order of the pipeline's steps, or by name if there is no manifest.
    pub entries: Vec<CatalogEntry>,
    /// The reason why the run is incomplete. `None` if it is complete.
    pub unfinished: Option<String>,
}

impl RunContents {
    /// Opens a run. An incomplete run is an error unless `unfinished` is set.
    pub(crate) fn open(source: &RunSource, unfinished: bool, within_run: bool) -> Result<Self> {
        let location = &source.location;
        if let Location::Local(path) = location
            && !path.is_dir()
        {
            return Err(not_a_directory(location, path.exists()));
        }
        let manifest = RunManifest::read(location)?;
        // If the report is a step of this run, the run is still in progress. Any other run must be complete.
        let waits = |manifest: &&RunManifest| within_run && manifest.status == RunStatus::Running;
        let state = manifest.as_ref().filter(|manifest| !waits(manifest)).and_then(why_unfinished);
        if let Some(problem) = &state
            && !unfinished
        {
            return Err(Error::place(
                location,
                format_args!("run is not complete: {problem}"),
                "run the pipeline again to finish it, or pass --unfinished to report on it anyway",
            ));
        }
        let mut entries = catalog_entries(location)?;
        if let Some(manifest) = &manifest {
            add_outputs_elsewhere(manifest, &mut entries)?;
            // Outputs of steps that were removed from the pipeline no longer belong to the run.
            if manifest.steps.iter().any(|step| !step.outputs.is_empty()) {
                entries.retain(|entry| step_of(manifest, entry) < manifest.steps.len());
            }
            // The entries are sorted by step, because the first ranking is the baseline of comparisons.
            entries.sort_by_key(|entry| step_of(manifest, entry));
        }
        if entries.is_empty() {
            return Err(Error::place(
                location,
                "no tables of planetree in this directory",
                "pass a directory with the outputs of `planetree run`, `train`, `predict` or `cv`",
            ));
        }
        let name = source.name.clone().unwrap_or_else(|| match location {
            Location::Local(path) => {
                // Resolve `.` and `..`, which are not usable as display names.
                let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
                Location::Local(whole).name()
            }
            Location::Remote(_) => location.name(),
        });
        Ok(RunContents {
            name,
            location: location.clone(),
            manifest,
            entries: worth_showing(entries)?,
            unfinished: state,
        })
    }

    /// Returns the tables of a kind, such as predictions or metrics.
    pub(crate) fn tables(&self, kind: TableKind) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.iter().filter(move |entry| entry.kind == CatalogKind::Table(kind))
    }

    /// Returns the datasets of the run.
    pub(crate) fn datasets(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.iter().filter(|entry| entry.kind == CatalogKind::Dataset)
    }
}

fn not_a_directory(location: &Location, exists: bool) -> Error {
    match exists {
        true => Error::place(location, "this is a file, not a run", "pass the directory that contains it"),
        false => Error::place(location, "no such directory", "check the spelling of the path"),
    }
}

fn why_unfinished(manifest: &RunManifest) -> Option<String> {
    if manifest.is_reportable() {
        return None; // a report may be the last step of its own run
    }
    let finished = manifest.steps.iter().filter(|step| step.status.is_finished()).count();
    let done = format!("{finished} of {} steps are done", manifest.steps.len());
    match manifest.status {
        RunStatus::Complete => None,
        RunStatus::Running => Some(format!("it is still running or was stopped, {done}")),
        RunStatus::Failed => {
            let failed = manifest.steps.iter().find(|step| step.error.is_some());
            Some(match failed {
                Some(step) => format!("step {} failed, {done}", step.name),
                None => format!("it failed, {done}"),
            })
        }
    }
}

/// Returns the index of the step that wrote an entry, or the number of steps if no step did.
fn step_of(manifest: &RunManifest, entry: &CatalogEntry) -> usize {
    let made = |written: &String| {
        let name = written.strip_suffix(".parquet").unwrap_or(written);
        let below = entry.name.strip_prefix(name);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || entry.location.to_string() == *written
    };
    let step = manifest.steps.iter().position(|step| step.outputs.values().any(made));
    step.unwrap_or(manifest.steps.len())
}

/// Adds the outputs that steps wrote outside the run directory.
fn add_outputs_elsewhere(manifest: &RunManifest, entries: &mut Vec<CatalogEntry>) -> Result<()> {
    for step in manifest.steps.iter().filter(|step| step.status.is_finished()) {
        for (output, written) in &step.outputs {
            if !(written.contains("://") || written.starts_with('/')) {
                continue;
            }
            let location = Location::parse(written, planetree_base::storage::Access::Explicit)?;
            let shown = location.to_string();
            if entries.iter().any(|entry| entry.location.to_string() == shown) {
                continue;
            }
            let kind = if location.join(MANIFEST).size()?.is_some() {
                Some(CatalogKind::Dataset)
            } else {
                TableReader::kind_of(&location)?.map(CatalogKind::Table)
            };
            let name =
                if step.outputs.len() == 1 { step.name.clone() } else { format!("{}-{output}", step.name) };
            entries.extend(kind.map(|kind| CatalogEntry { name, kind, location }));
        }
    }
    Ok(())
}

/// Returns the entries that are worth showing. Three kinds of entries are left out: the datasets into which a
/// cross-validation split its data, the predictions of single folds (which are repeated in the predictions of all
/// folds), and everything that belongs to trials of a parameter search other than the best one.
fn worth_showing(entries: Vec<CatalogEntry>) -> Result<Vec<CatalogEntry>> {
    // The directory of each cross-validation and search and, for a search, the number of the trial to keep.
    let mut places: Vec<(String, Option<String>)> = Vec::new();
    for entry in &entries {
        let place =
            |name: &str| entry.name.strip_suffix(name).filter(|at| at.is_empty() || at.ends_with('/'));
        match entry.kind {
            CatalogKind::Table(TableKind::Folds) => {
                places.extend(place("folds").map(|at| (at.to_owned(), None)));
            }
            CatalogKind::Table(TableKind::Trials) => {
                if let Some(at) = place("trials") {
                    let best = Trials::read(&entry.location)?.best();
                    places
                        .push((at.to_owned(), Some(best.map_or_else(String::new, |best| best.to_string()))));
                }
            }
            _ => {}
        }
    }
    let repeats = |entry: &CatalogEntry| {
        places.iter().any(|(place, best)| {
            let Some(below) = entry.name.strip_prefix(place.as_str()) else { return false };
            let is_part = below.starts_with("parts/") && entry.kind == CatalogKind::Dataset;
            let is_fold =
                below.starts_with("folds/") && entry.kind == CatalogKind::Table(TableKind::Predictions);
            let is_trial = best.as_ref().is_some_and(|best| {
                let trial = below.strip_prefix("trials/").and_then(|rest| rest.split('/').next());
                trial.is_some_and(|trial| trial != best)
            });
            is_part || is_fold || is_trial
        })
    };
    Ok(entries.into_iter().filter(|entry| !repeats(entry)).collect())
}
