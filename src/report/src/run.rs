//! A run: a directory with what one experiment made. Its manifest is there if a pipeline made it.

use super::trials::Trials;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::catalog::{Entry, EntryKind, entries_of};
use planetree_data::dataset::MANIFEST;
use planetree_data::table::{TableKind, TableReader};
use planetree_run::pipeline::{RunManifest, RunStatus};

/// A run that was named.
#[derive(Debug, Clone)]
pub struct RunSource {
    /// What it is called; `None` for its directory's name.
    pub name: Option<String>,
    /// Where it is.
    pub location: Location,
}

/// What is in a run.
pub struct RunContents {
    /// What it is called.
    pub name: String,
    /// How it went, if a pipeline made it.
    pub manifest: Option<RunManifest>,
    /// The datasets and tables to show, by name.
    pub entries: Vec<Entry>,
    /// Why it is not complete, if it is not.
    pub unfinished: Option<String>,
}

impl RunContents {
    /// Looks into a run. One that is not complete is an error, unless that is allowed.
    pub fn open(source: &RunSource, unfinished: bool, within_run: bool) -> Result<Self> {
        let location = &source.location;
        if let Location::Local(path) = location
            && !path.is_dir()
        {
            return Err(not_a_directory(location, path.exists()));
        }
        let manifest = RunManifest::read(location)?;
        // The run that waits for this report is not complete yet, and other runs have to be.
        let waits = |manifest: &&RunManifest| within_run && manifest.status == RunStatus::Running;
        let state = manifest.as_ref().filter(|manifest| !waits(manifest)).and_then(why_unfinished);
        if let Some(problem) = &state
            && !unfinished
        {
            return Err(Error::place(
                location,
                format_args!("this run is not complete: {problem}"),
                "run the pipeline again to finish it, or pass --unfinished to see what is there",
            ));
        }
        let mut entries = entries_of(location)?;
        if let Some(manifest) = &manifest {
            add_outputs_elsewhere(manifest, &mut entries)?;
            // What a step that is gone has left behind is none of this run's.
            if manifest.steps.iter().any(|step| !step.outputs.is_empty()) {
                entries.retain(|entry| step_of(manifest, entry) < manifest.steps.len());
            }
            // As the steps ran: what was made first is what others are compared with.
            entries.sort_by_key(|entry| step_of(manifest, entry));
        }
        if entries.is_empty() {
            return Err(Error::place(
                location,
                "there are no tables of planetree in this directory",
                "name a directory that holds what `planetree run`, `train`, `predict` or `cv` wrote",
            ));
        }
        let name = source.name.clone().unwrap_or_else(|| match location {
            Location::Local(path) => {
                // `.` and `..` have names, too.
                let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
                Location::Local(whole).name()
            }
            Location::Remote(_) => location.name(),
        });
        Ok(RunContents { name, manifest, entries: worth_showing(entries)?, unfinished: state })
    }

    /// The tables of a kind.
    pub fn tables(&self, kind: TableKind) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.kind == EntryKind::Table(kind))
    }

    /// The datasets.
    pub fn datasets(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind == EntryKind::Dataset)
    }
}

fn not_a_directory(location: &Location, exists: bool) -> Error {
    match exists {
        true => Error::place(location, "this is a file, not a run", "name the directory that it is in"),
        false => Error::place(location, "there is no such directory", "check the spelling of the path"),
    }
}

fn why_unfinished(manifest: &RunManifest) -> Option<String> {
    if manifest.is_reportable() {
        return None; // a report may be the last step of the run that it is about
    }
    let finished = manifest.steps.iter().filter(|step| step.status.is_finished()).count();
    let done = format!("{finished} of {} steps are done", manifest.steps.len());
    match manifest.status {
        RunStatus::Complete => None,
        RunStatus::Running => Some(format!("it is at work or was stopped, {done}")),
        RunStatus::Failed => {
            let failed = manifest.steps.iter().find(|step| step.error.is_some());
            Some(match failed {
                Some(step) => format!("step {} failed, {done}", step.name),
                None => format!("it failed, {done}"),
            })
        }
    }
}

/// The place of the step that made something; behind all of them if none did.
fn step_of(manifest: &RunManifest, entry: &Entry) -> usize {
    let made = |written: &String| {
        let name = written.strip_suffix(".parquet").unwrap_or(written);
        let below = entry.name.strip_prefix(name);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || entry.location.to_string() == *written
    };
    let step = manifest.steps.iter().position(|step| step.outputs.values().any(made));
    step.unwrap_or(manifest.steps.len())
}

/// A step may have written outside the run's directory.
fn add_outputs_elsewhere(manifest: &RunManifest, entries: &mut Vec<Entry>) -> Result<()> {
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
                Some(EntryKind::Dataset)
            } else {
                TableReader::kind_of(&location)?.map(EntryKind::Table)
            };
            let name =
                if step.outputs.len() == 1 { step.name.clone() } else { format!("{}-{output}", step.name) };
            entries.extend(kind.map(|kind| Entry { name, kind, location }));
        }
    }
    Ok(())
}

/// Leaves out what only repeats: the parts of a cross-validation, the predictions of single folds, which
/// are in those of all folds, and all trials of a search but the best.
fn worth_showing(entries: Vec<Entry>) -> Result<Vec<Entry>> {
    // Where a cross-validation or a search is, and the trial to keep.
    let mut places: Vec<(String, Option<String>)> = Vec::new();
    for entry in &entries {
        let place =
            |name: &str| entry.name.strip_suffix(name).filter(|at| at.is_empty() || at.ends_with('/'));
        match entry.kind {
            EntryKind::Table(TableKind::Folds) => {
                places.extend(place("folds").map(|at| (at.to_owned(), None)));
            }
            EntryKind::Table(TableKind::Trials) => {
                if let Some(at) = place("trials") {
                    let best = Trials::read(&entry.location)?.best();
                    places
                        .push((at.to_owned(), Some(best.map_or_else(String::new, |best| best.to_string()))));
                }
            }
            _ => {}
        }
    }
    let repeats = |entry: &Entry| {
        places.iter().any(|(place, best)| {
            let Some(below) = entry.name.strip_prefix(place.as_str()) else { return false };
            let is_part = below.starts_with("parts/") && entry.kind == EntryKind::Dataset;
            let is_fold =
                below.starts_with("folds/") && entry.kind == EntryKind::Table(TableKind::Predictions);
            let is_trial = best.as_ref().is_some_and(|best| {
                let trial = below.strip_prefix("trials/").and_then(|rest| rest.split('/').next());
                trial.is_some_and(|trial| trial != best)
            });
            is_part || is_fold || is_trial
        })
    };
    Ok(entries.into_iter().filter(|entry| !repeats(entry)).collect())
}
