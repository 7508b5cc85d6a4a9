//! What is at a place: a dataset, a table of ours, or files of others.

use super::elsewhere::PlaceCheck;
use super::error::outward;
use super::foreign::{ForeignKind, open_foreign};
use super::scan::{DatasetSource, FileSource, Source, SourceTable};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::{AnyParquet, TableReader};
use std::sync::Arc;

/// What was found at a place.
enum Found {
    /// Rows of ours, and the files that they are in.
    Ours(Arc<dyn Source>, Vec<Location>),
    Foreign(ForeignKind, Vec<Location>),
}

/// Runs code that may wait for disks and networks, from within the engine.
pub fn blocking<T>(work: impl FnOnce() -> Result<T>) -> EngineResult<T> {
    tokio::task::block_in_place(work).map_err(outward)
}

/// Opens whatever is at a place as a table. `check` is asked about files that a directory turns out to have. For a
/// cluster, which is asked about all files, our own tables are plain files, too.
pub async fn open_table(
    state: &dyn Session,
    location: &Location,
    check: &(dyn Fn(&Location) -> Result<()> + Sync),
    cluster: Option<&PlaceCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    open_found(state, blocking(|| look_at(location, check))?, cluster).await
}

async fn open_found(
    state: &dyn Session,
    found: Found,
    cluster: Option<&PlaceCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    let (kind, files) = match (found, cluster) {
        (Found::Ours(source, _), None) => return Ok(Arc::new(SourceTable(source))),
        (Found::Ours(_, files), Some(_)) => (ForeignKind::Parquet, files),
        (Found::Foreign(kind, files), _) => (kind, files),
    };
    if let Some(cluster) = cluster {
        files.iter().try_for_each(|file| cluster(file)).map_err(outward)?;
    }
    open_foreign(state, kind, &files).await
}

/// Opens several files of others as one table.
pub async fn open_files(
    state: &dyn Session,
    shown: &str,
    files: Vec<Location>,
    cluster: Option<&PlaceCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    open_found(state, blocking(|| look_at_all(shown, files))?, cluster).await
}

fn look_at(location: &Location, check: &(dyn Fn(&Location) -> Result<()> + Sync)) -> Result<Found> {
    if location.join(MANIFEST).size()?.is_some() {
        let reader = Arc::new(DatasetReader::open(location)?);
        let files: Vec<Location> =
            reader.manifest().files.iter().map(|file| location.join(&file.name)).collect();
        files.iter().try_for_each(check)?;
        return Ok(Found::Ours(Arc::new(DatasetSource::new(reader)), files));
    }
    if location.size()?.is_none() {
        return look_at_all(&location.to_string(), files_of(location, check)?);
    }
    match ForeignKind::of_file(location)? {
        Some(ForeignKind::Parquet) => look_at_parquet(&location.to_string(), vec![location.clone()]),
        Some(kind) => Ok(Found::Foreign(kind, vec![location.clone()])),
        None => Err(Error::place(
            location,
            "this is neither Parquet nor called .csv, .tsv, .json, .ndjson or .jsonl",
            "convert the data first (planetree convert), or rename the file",
        )),
    }
}

/// Several files as one table.
fn look_at_all(shown: &str, files: Vec<Location>) -> Result<Found> {
    match kind_of_all(shown, &files)? {
        ForeignKind::Parquet => look_at_parquet(shown, files),
        kind => Ok(Found::Foreign(kind, files)),
    }
}

/// Parquet files: all of ours, which are checked, or all of others.
fn look_at_parquet(shown: &str, files: Vec<Location>) -> Result<Found> {
    let mut ours = Vec::new();
    for file in &files {
        match TableReader::open_or_foreign(file, "name the dataset's directory")? {
            AnyParquet::Ours(table) => ours.push(table),
            AnyParquet::Foreign(_) => {}
        }
    }
    match ours.len() {
        0 => Ok(Found::Foreign(ForeignKind::Parquet, files)),
        count if count == files.len() => Ok(Found::Ours(Arc::new(FileSource::new(ours, shown)?), files)),
        _ => Err(Error::place(
            shown,
            "some of these files are planetree's, and some are not",
            "name files of one kind",
        )),
    }
}

/// The files of a directory that is no dataset, each of which may be touched.
fn files_of(location: &Location, check: &(dyn Fn(&Location) -> Result<()> + Sync)) -> Result<Vec<Location>> {
    if matches!(location, Location::Local(path) if !path.is_dir()) || location.is_http() {
        return Err(location.absent());
    }
    let mut files = Vec::new();
    for name in location.list()? {
        if name.starts_with(['.', '_']) {
            continue; // what engines leave beside their files
        }
        let file = location.join(&name);
        check(&file)?;
        files.push(file);
    }
    if files.is_empty() {
        return Err(match location {
            Location::Local(_) => Error::place(
                location,
                "this directory is no dataset and has no files of rows",
                "name a dataset or a file; planetree sql DIRECTORY makes tables of all that is in one",
            ),
            Location::Remote(_) => location.absent(),
        });
    }
    Ok(files)
}

fn kind_of_all(shown: &str, files: &[Location]) -> Result<ForeignKind> {
    let Some(first) = files.first() else {
        return Err(Error::place(shown, "there is no such file", "check the spelling of the path"));
    };
    let kind = ForeignKind::of_file(first)?;
    for file in files {
        let other = ForeignKind::of_file(file)?;
        if kind.is_none() || other != kind {
            return Err(Error::place(
                shown,
                format_args!("{} and {} are not files of one kind", first.name(), file.name()),
                "name one file, or a pattern of files of one kind",
            ));
        }
    }
    kind.ok_or_else(|| Error::place(shown, "there are no Parquet, CSV or JSON files", "name other files"))
}
