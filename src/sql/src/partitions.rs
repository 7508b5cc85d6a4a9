//! Finds the files of tables that other programs partitioned into folders named `key=value`.

use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// Maximum depth of folders.
const DEPTH: usize = 8;

/// The name that Hive and Spark give to folders of rows whose key is NULL.
const NULL_KEY: &str = "__HIVE_DEFAULT_PARTITION__";

/// The files of a partitioned table.
pub(crate) struct PartitionedFiles {
    /// The keys, one for each level of folders.
    pub keys: Vec<String>,
    /// The folders that contain files, in the order of their paths.
    pub folders: Vec<PartitionFolder>,
}

/// A folder of a partitioned table.
pub(crate) struct PartitionFolder {
    /// The values of the keys. `None` is NULL.
    pub values: Vec<Option<String>>,
    /// The files, in the order of their names.
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
        if has_files || !folders.iter().any(|folder| is_partition(folder)) {
            return Ok(None);
        }
        let mut table = PartitionedFiles { keys: Vec::new(), folders: Vec::new() };
        table.search(directory, &[], check)?;
        Ok((!table.folders.is_empty()).then_some(table))
    }

    /// Returns all files, in the order of their folders.
    pub(crate) fn files(&self) -> Vec<Location> {
        self.folders.iter().flat_map(|folder| folder.files.iter().cloned()).collect()
    }

    /// Adds the files below a folder. `values` are those of the folder and the folders above it.
    fn search(
        &mut self,
        directory: &Location,
        values: &[Option<String>],
        check: &(dyn Fn(&Location) -> Result<()> + Sync),
    ) -> Result<()> {
        let (names, folders) = directory.contents()?;
        let depth = values.len();
        let mut files = Vec::new();
        for name in names.iter().filter(|name| !is_hidden(name)) {
            let file = directory.join(name);
            check(&file)?;
            if depth < self.keys.len() {
                return Err(differ(&file));
            }
            files.push(file);
        }
        if !files.is_empty() {
            self.folders.push(PartitionFolder { values: values.to_vec(), files });
        }
        for folder in folders.iter().filter(|name| !is_hidden(name)) {
            let inner = directory.join(folder);
            let Some((key, value)) = key_and_value(folder).filter(|_| depth < DEPTH) else {
                return Err(differ(&inner));
            };
            match self.keys.get(depth) {
                Some(known) if known == key => {}
                None if self.folders.is_empty() => self.keys.push(key.to_owned()),
                _ => return Err(differ(&inner)),
            }
            let mut values = values.to_vec();
            values.push((value != NULL_KEY).then(|| decoded(value)));
            self.search(&inner, &values, check)?;
        }
        Ok(())
    }
}

/// Checks whether a file or folder is hidden, or a marker of another engine.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

/// Checks whether a folder is named `key=value`.
pub(crate) fn is_partition(folder: &str) -> bool {
    key_and_value(folder).is_some()
}

fn key_and_value(folder: &str) -> Option<(&str, &str)> {
    folder.split_once('=').filter(|(key, _)| !key.is_empty())
}

/// Replaces `%20` and the like, with which Hive and Spark write characters that may not be in the name of a folder.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| value.to_owned())
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
        for name in [
            "t/day=2/market=us/b.csv",
            "t/day=1/market=us/a.csv",
            "t/_SUCCESS",
            "t/day=1/market=us/.a.csv.crc",
            "plain/a.csv",
        ] {
            write(name);
        }
        let allow = |_: &Location| Ok(());
        let table = PartitionedFiles::find(&place("t"), &allow).unwrap().unwrap();
        assert_eq!(table.keys, ["day", "market"]);
        let names: Vec<String> = table.files().iter().map(Location::name).collect();
        assert_eq!(names, ["a.csv", "b.csv"]);
        assert_eq!(table.folders[1].values, [Some("2".to_owned()), Some("us".to_owned())]);
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

    #[test]
    fn values_are_decoded_unless_they_are_invalid() {
        for (value, expected) in
            [("a%20b%2Fc", "a b/c"), ("5%", "5%"), ("%+f%4", "%+f%4"), ("%FF", "%FF"), ("", "")]
        {
            assert_eq!(decoded(value), expected);
        }
    }
}
