//! What is in a directory: the datasets and tables below it, told by what they say they are.

use crate::dataset::MANIFEST;
use crate::table::{TableKind, TableReader};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// The file that says what a pipeline did, in its run directory.
pub const RUN_MANIFEST: &str = "run.json";

/// How deep directories are looked into: a run, a cross-validation in it, one of its folds.
const DEPTH: usize = 3;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory with a manifest.
    Dataset,
    /// One file.
    Table(TableKind),
}

/// A dataset or table in a directory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its path below the directory, without `.parquet`.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Where it is.
    pub location: Location,
}

/// All datasets and tables below a directory or prefix, by name. Hidden files, checkpoints and whatever
/// planetree did not write are passed over; nothing but footers is read.
pub fn entries_of(directory: &Location) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    look_into(directory, "", DEPTH, &mut entries)?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Refuses a place where a file of another kind would destroy what planetree wrote: a table, a part of a
/// dataset, a manifest.
pub fn refuse_ours(location: &Location) -> Result<()> {
    let found = match TableReader::kind_of(location)? {
        Some(kind) => Some(kind.noun()),
        None if [MANIFEST, RUN_MANIFEST].contains(&location.name().as_str()) => Some("a manifest"),
        None if location.with_suffix(&location.name(), MANIFEST).size()?.is_some() => {
            Some("within a dataset")
        }
        None => None,
    };
    match found {
        None => Ok(()),
        Some(what) => Err(Error::place(
            location,
            format_args!("this is {what}, which is not replaced"),
            "choose another name, or remove it first",
        )),
    }
}

fn look_into(directory: &Location, prefix: &str, depth: usize, entries: &mut Vec<Entry>) -> Result<()> {
    let (files, folders) = directory.contents()?;
    for file in files {
        if file.starts_with('.') || file.ends_with(".checkpoint") {
            continue;
        }
        let location = directory.join(&file);
        if let Some(kind) = TableReader::kind_of(&location)? {
            let stem = file.strip_suffix(".parquet").unwrap_or(&file);
            entries.push(Entry { name: format!("{prefix}{stem}"), kind: EntryKind::Table(kind), location });
        }
    }
    for folder in folders {
        if folder.starts_with('.') {
            continue;
        }
        let location = directory.join(&folder);
        if location.join(MANIFEST).size()?.is_some() {
            entries.push(Entry { name: format!("{prefix}{folder}"), kind: EntryKind::Dataset, location });
        } else if depth > 1 {
            look_into(&location, &format!("{prefix}{folder}/"), depth - 1, entries)?;
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
    fn tables_are_found_by_what_they_are() {
        let room = tempfile::tempdir().unwrap();
        let here = Location::parse(room.path().to_str().unwrap(), Access::Explicit).unwrap();
        std::fs::create_dir_all(room.path().join("cv/fold1/deep/deeper")).unwrap();
        for name in ["b.parquet", "cv/fold1/a.parquet", "cv/fold1/deep/deeper/lost.parquet", "b.checkpoint"] {
            let batch = RecordBatch::try_from_iter([("round", Arc::new(Int32Array::from(vec![1])) as _)]);
            let batch = batch.unwrap();
            let kind = if name == "b.checkpoint" { TableKind::Model } else { TableKind::Rounds };
            let mut writer = TableWriter::create(&here.join(name), kind, batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        std::fs::write(room.path().join("c.parquet"), "no table").unwrap();
        let found = entries_of(&here).unwrap();
        let names: Vec<&str> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["b", "cv/fold1/a"]);
        assert!(found.iter().all(|entry| entry.kind == EntryKind::Table(TableKind::Rounds)));
    }
}
