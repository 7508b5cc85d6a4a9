//! Opens tables: datasets, tables written by planetree, and other files.

use super::error::to_engine_error;
use super::foreign::{ForeignFormat, open_foreign, open_partitioned, refuse_other_delimiters};
use super::on_cluster::LocationCheck;
use super::partitions::{PartitionedFiles, is_hidden, is_partition};
use super::scan::{DatasetSource, FileSource, ScanSource, ScanTable};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::dataset::{DatasetReader, MANIFEST};
use planetree_data::table::{AnyParquet, TableReader};
use std::sync::Arc;

/// A table that was found at a location.
enum DetectedTable {
    /// A table written by planetree: its rows, and the files that contain them.
    Ours(Arc<dyn ScanSource>, Vec<Location>),
    /// Files of one format that planetree did not write.
    Foreign(ForeignFormat, Vec<Location>),
    /// Such files in folders named `key=value`, as Hive and Spark write them.
    Partitioned(ForeignFormat, PartitionedFiles),
}

/// Runs code that may block on disks and networks, from within the engine's asynchronous runtime.
pub(crate) fn blocking<T>(work: impl FnOnce() -> Result<T>) -> EngineResult<T> {
    tokio::task::block_in_place(work).map_err(to_engine_error)
}

/// Opens the table at a location. If it is a directory, `check` is called for its files. If a cluster is given, the
/// cluster's check is called for all files, and even planetree's own tables are opened as plain Parquet files.
pub(crate) async fn open_table(
    state: &dyn Session,
    location: &Location,
    check: &(dyn Fn(&Location) -> Result<()> + Sync),
    cluster: Option<&LocationCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    open_detected(state, blocking(|| detect(location, check))?, cluster).await
}

async fn open_detected(
    state: &dyn Session,
    detected: DetectedTable,
    cluster: Option<&LocationCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    let (kind, files) = match (detected, cluster) {
        (DetectedTable::Partitioned(kind, table), cluster) => {
            if let Some(cluster) = cluster {
                table.files().iter().try_for_each(|file| cluster(file)).map_err(to_engine_error)?;
            }
            blocking(|| refuse_other_delimiters(kind, &table.files()))?;
            return open_partitioned(state, kind, &table).await;
        }
        (DetectedTable::Ours(source, _), None) => return Ok(Arc::new(ScanTable(source))),
        (DetectedTable::Ours(_, files), Some(_)) => (ForeignFormat::Parquet, files),
        (DetectedTable::Foreign(kind, files), _) => (kind, files),
    };
    if let Some(cluster) = cluster {
        files.iter().try_for_each(|file| cluster(file)).map_err(to_engine_error)?;
    }
    blocking(|| refuse_other_delimiters(kind, &files))?;
    open_foreign(state, kind, &files).await
}

/// Opens several files as one table. `shown` is their path or pattern, for error messages.
pub(crate) async fn open_files(
    state: &dyn Session,
    shown: &str,
    files: Vec<Location>,
    cluster: Option<&LocationCheck>,
) -> EngineResult<Arc<dyn TableProvider>> {
    open_detected(state, blocking(|| detect_files(shown, files))?, cluster).await
}

fn detect(location: &Location, check: &(dyn Fn(&Location) -> Result<()> + Sync)) -> Result<DetectedTable> {
    if location.join(MANIFEST).size()?.is_some() {
        let reader = Arc::new(DatasetReader::open(location)?);
        let files: Vec<Location> =
            reader.manifest().files.iter().map(|file| location.join(&file.name)).collect();
        files.iter().try_for_each(check)?;
        return Ok(DetectedTable::Ours(Arc::new(DatasetSource::new(reader)), files));
    }
    if location.size()?.is_none() {
        if let Some(table) = PartitionedFiles::find(location, check)? {
            let kind = common_format(&location.to_string(), &table.files())?;
            return Ok(DetectedTable::Partitioned(kind, table));
        }
        return detect_files(&location.to_string(), files_of(location, check)?);
    }
    match ForeignFormat::of_file(location)? {
        Some(ForeignFormat::Parquet) => detect_parquet(&location.to_string(), vec![location.clone()]),
        Some(kind) => Ok(DetectedTable::Foreign(kind, vec![location.clone()])),
        None => Err(Error::place(
            location,
            "unknown format: the file is not Parquet, and its name does not end in .csv, .tsv, .json, .ndjson or .jsonl",
            "rename a CSV or JSON file, or read it with read_csv or read_json; convert other text with `planetree convert`",
        )),
    }
}

/// Checks whether there is something at a location that is meant as a table, although it may be unreadable.
pub(crate) fn seems_to_be_table(location: &Location) -> Result<bool> {
    if location.join(MANIFEST).size()?.is_some() || location.size()?.is_some() {
        return Ok(true);
    }
    if matches!(location, Location::Local(path) if !path.is_dir()) || location.is_http() {
        return Ok(false);
    }
    let (files, folders) = location.contents()?;
    let is_data = |name: &String| !is_hidden(name) && ForeignFormat::of_name(name).is_some();
    Ok(files.iter().any(is_data) || folders.iter().any(|folder| is_partition(folder)))
}

/// Detects the table that several files form together.
fn detect_files(shown: &str, files: Vec<Location>) -> Result<DetectedTable> {
    match common_format(shown, &files)? {
        ForeignFormat::Parquet => detect_parquet(shown, files),
        kind => Ok(DetectedTable::Foreign(kind, files)),
    }
}

/// Detects Parquet files, of which either all or none must be written by planetree. Files written by planetree are
/// verified.
fn detect_parquet(shown: &str, files: Vec<Location>) -> Result<DetectedTable> {
    let mut ours = Vec::new();
    for file in &files {
        match TableReader::open_or_foreign(file, "use the dataset's directory")? {
            AnyParquet::Ours(table) => ours.push(table),
            AnyParquet::Foreign(_) => {}
        }
    }
    match ours.len() {
        0 => Ok(DetectedTable::Foreign(ForeignFormat::Parquet, files)),
        count if count == files.len() => {
            Ok(DetectedTable::Ours(Arc::new(FileSource::new(ours, shown)?), files))
        }
        _ => Err(Error::place(
            shown,
            "some of these files were written by planetree, and some were not",
            "select only files written by planetree, or only other files",
        )),
    }
}

/// Returns the files of a directory that is not a dataset. Fails if one of them may not be read.
fn files_of(location: &Location, check: &(dyn Fn(&Location) -> Result<()> + Sync)) -> Result<Vec<Location>> {
    if matches!(location, Location::Local(path) if !path.is_dir()) || location.is_http() {
        return Err(location.absent());
    }
    let mut files = Vec::new();
    for name in location.list()? {
        if is_hidden(&name) {
            continue;
        }
        let file = location.join(&name);
        check(&file)?;
        files.push(file);
    }
    if files.is_empty() {
        return Err(match location {
            Location::Local(_) => Error::place(
                location,
                "this directory is not a dataset and contains no data files",
                "use a dataset or a file, or run planetree sql DIRECTORY to open all tables of a directory",
            ),
            Location::Remote(_) => location.absent(),
        });
    }
    Ok(files)
}

fn common_format(shown: &str, files: &[Location]) -> Result<ForeignFormat> {
    let Some(first) = files.first() else {
        return Err(Error::place(shown, "no file matches", "check the spelling of the pattern"));
    };
    let kind = ForeignFormat::of_file(first)?;
    for file in &files[1..] {
        if ForeignFormat::of_file(file)? != kind {
            return Err(Error::place(
                shown,
                format_args!("{} and {} have different formats", first.name(), file.name()),
                "use one file, or a pattern that matches files of one format",
            ));
        }
    }
    kind.ok_or_else(|| {
        Error::place(shown, "no Parquet, CSV or JSON files", "use files in one of these formats")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_table_have_one_known_format() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, "a,b\n1,2\n").unwrap();
            Location::Local(path)
        };
        let (csv, second, text, other) = (file("a.csv"), file("b.csv"), file("c.txt"), file("d.txt"));
        let format = |files: &[Location]| common_format("files", files).map_err(|error| error.to_string());
        assert_eq!(format(&[csv.clone(), second]), Ok(ForeignFormat::Delimited(b',')));
        assert_eq!(format(&[text.clone(), other]), Err("files: no Parquet, CSV or JSON files".to_owned()));
        for files in [[csv.clone(), text.clone()], [text, csv]] {
            let names = files.each_ref().map(Location::name);
            let problem = format!("files: {} and {} have different formats", names[0], names[1]);
            assert_eq!(format(&files), Err(problem));
        }
    }
}
