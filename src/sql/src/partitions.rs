//! Finds the files of tables that other programs partitioned into folders named `key=value`.

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// Maximum depth of folders.
const DEPTH: usize = 8;

/// The files of a partitioned table.
pub(crate) struct PartitionedFiles {
    /// The directory that contains the folders.
    pub directory: Location,
    /// The keys, one for each level of folders.
    pub keys: Vec<String>,
    /// All files, in the order of their paths.
    pub files: Vec<Location>,
}

impl PartitionedFiles {
    /// Finds the files below a directory whose folders are named `key=value`. Returns `None` if it is no such directory.
    /// Fails if a file may not be read, or if the folders of a level have different keys.
    pub(crate) fn find(
        directory: &Location,
        check: &(dyn Fn(&Location) -> Result<()> + Sync),
    ) -> Result<Option<Self>> {
        if matches!(directory, Location::Local(path) if !path.is_dir()) || directory.is_http() {
            return Ok(None);
        }
        let (files, folders) = directory.contents()?;
        let has_files = files.iter().any(|name| !is_hidden(name));
        if has_files || !folders.iter().any(|folder| key_of(folder).is_some()) {
            return Ok(None);
        }
        let mut table =
            PartitionedFiles { directory: directory.clone(), keys: Vec::new(), files: Vec::new() };
        table.search(directory, 0, check)?;
        Ok((!table.files.is_empty()).then_some(table))
    }

    fn search(
        &mut self,
        directory: &Location,
        depth: usize,
        check: &(dyn Fn(&Location) -> Result<()> + Sync),
    ) -> Result<()> {
        let (files, folders) = directory.contents()?;
        for name in files.iter().filter(|name| !is_hidden(name)) {
            let file = directory.join(name);
            check(&file)?;
            if depth < self.keys.len() {
                return Err(differ(&file));
            }
            self.files.push(file);
        }
        for folder in folders.iter().filter(|name| !is_hidden(name)) {
            let inner = directory.join(folder);
            let Some(key) = key_of(folder).filter(|_| depth < DEPTH) else { return Err(differ(&inner)) };
            match self.keys.get(depth) {
                Some(known) if known == key => {}
                None if self.files.is_empty() => self.keys.push(key.to_owned()),
                _ => return Err(differ(&inner)),
            }
            self.search(&inner, depth + 1, check)?;
        }
        Ok(())
    }
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

fn key_of(folder: &str) -> Option<&str> {
    folder.split_once('=').map(|(key, _)| key).filter(|key| !key.is_empty())
}

fn differ(place: &Location) -> Error {
    Error::place(
        place,
        "the folders of a partitioned table must have the same keys on each level, such as day=2026-11-18",
        "name one folder, or a pattern such as 'clicks/day=*/*.parquet'",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_the_keys_of_their_folders() {
        let room = tempfile::tempdir().unwrap();
        let place = |name: &str| Location::Local(room.path().join(name));
        let write = |name: &str| {
            let path = room.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "a\n1\n").unwrap();
        };
        for name in ["t/day=2/market=us/b.csv", "t/day=1/market=us/a.csv", "t/_SUCCESS", "plain/a.csv"] {
            write(name);
        }
        let allow = |_: &Location| Ok(());
        let table = PartitionedFiles::find(&place("t"), &allow).unwrap().unwrap();
        assert_eq!(table.keys, ["day", "market"]);
        let names: Vec<String> = table.files.iter().map(Location::name).collect();
        assert_eq!(names, ["a.csv", "b.csv"]);
        assert!(PartitionedFiles::find(&place("plain"), &allow).unwrap().is_none());
        assert!(PartitionedFiles::find(&place("absent"), &allow).unwrap().is_none());
        let refuse = |file: &Location| Err(differ(file));
        assert!(PartitionedFiles::find(&place("t"), &refuse).is_err());
        for name in ["t/day=3/c.csv", "t/week=3/market=us/c.csv", "t/other/c.csv"] {
            write(name);
            let error = PartitionedFiles::find(&place("t"), &allow).map(|_| name).unwrap_err();
            assert!(error.to_string().contains("the same keys on each level"), "{error}");
            std::fs::remove_dir_all(room.path().join(name).parent().unwrap()).unwrap();
        }
    }
}
