//! Lists the datasets and tables below a directory. They are recognised by their content, not by their names.

use crate::dataset::MANIFEST;
use crate::table::{TableKind, TableReader};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// Name of the file in which a pipeline run records its steps, in the directory of the run.
pub const RUN_MANIFEST: &str = "run.json";

/// Maximum depth of the search in directories. Three levels are enough for a pipeline run, a cross-validation within
/// the run, and a fold of the cross-validation.
const DEPTH: usize = 3;

/// The type of a catalog entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogKind {
    /// A dataset, which is a directory with a manifest.
    Dataset,
    /// A table, which is a single Parquet file.
    Table(TableKind),
}

/// A dataset or table in a directory.
#[derive(Debug, Clone)]
pub struct CatalogEntry {
    /// Path relative to the searched directory, without `.parquet`.
    pub name: String,
    /// Whether the entry is a dataset or a table, and which kind of table.
    pub kind: CatalogKind,
    /// Location of the dataset or table.
    pub location: Location,
}

/// Lists all datasets and tables below a directory or prefix, sorted by name. Skips hidden files, checkpoints and
/// files that planetree did not write. Reads only the footers of the files.
pub fn catalog_entries(directory: &Location) -> Result<Vec<CatalogEntry>> {
    let mut entries = Vec::new();
    search(directory, "", DEPTH, &mut entries)?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Fails if an output would overwrite a file that planetree wrote: a table, a part of a dataset, or a manifest.
pub fn refuse_planetree_files(location: &Location) -> Result<()> {
    let found = match TableReader::kind_of(location)? {
        Some(kind) => Some(kind.noun()),
        None if [MANIFEST, RUN_MANIFEST].contains(&location.name().as_str()) => Some("a manifest"),
        None if location.with_suffix(&location.name(), MANIFEST).size()?.is_some() => {
            Some("a file of a dataset")
        }
        None => None,
    };
    match found {
        None => Ok(()),
        Some(what) => Err(Error::place(
            location,
            format_args!("refusing to overwrite: this is {what}"),
            "choose another name, or remove it first",
        )),
    }
}

fn search(directory: &Location, prefix: &str, depth: usize, entries: &mut Vec<CatalogEntry>) -> Result<()> {
    let (files, folders) = directory.contents()?;
    for file in files {
        if file.starts_with('.') || file.ends_with(".checkpoint") {
            continue;
        }
        let location = directory.join(&file);
        if let Some(kind) = TableReader::kind_of(&location)? {
            let stem = file.strip_suffix(".parquet").unwrap_or(&file);
            entries.push(CatalogEntry {
                name: format!("{prefix}{stem}"),
                kind: CatalogKind::Table(kind),
                location,
            });
        }
    }
    for folder in folders {
        if folder.starts_with('.') {
            continue;
        }
        let location = directory.join(&folder);
        if location.join(MANIFEST).size()?.is_some() {
            entries.push(CatalogEntry {
                name: format!("{prefix}{folder}"),
                kind: CatalogKind::Dataset,
                location,
            });
        } else if depth > 1 {
            search(&location, &format!("{prefix}{folder}/"), depth - 1, entries)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{TableKind, TableWriter};
    use arrow::array::{Int32Array, RecordBatch};
    use planetree_base::storage::Access;
    use std::sync::Arc;

    #[test]
    fn tables_are_recognised_by_content() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Location::parse(temporary.path().to_str().unwrap(), Access::Explicit).unwrap();
        std::fs::create_dir_all(temporary.path().join("cv/fold1/deep/deeper")).unwrap();
        for name in ["b.parquet", "cv/fold1/a.parquet", "cv/fold1/deep/deeper/lost.parquet", "b.checkpoint"] {
            let batch = RecordBatch::try_from_iter([("round", Arc::new(Int32Array::from(vec![1])) as _)]);
            let batch = batch.unwrap();
            let kind = if name == "b.checkpoint" { TableKind::Model } else { TableKind::Rounds };
            let mut writer = TableWriter::create(&directory.join(name), kind, batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        std::fs::write(temporary.path().join("c.parquet"), "no table").unwrap();
        let found = catalog_entries(&directory).unwrap();
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["b", "cv/fold1/a"]);
        assert!(found.iter().all(|entry| entry.kind == CatalogKind::Table(TableKind::Rounds)));
    }
}
