//! Finds a single file, or all files below a directory or prefix, with their sizes and versions.

use super::border;
use super::location::Location;
use crate::error::{Error, Result};
use futures::TryStreamExt;
use std::path::Path;

/// An existing file or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Path relative to the listed directory or prefix; empty if the location itself is the file.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// The object store's version of the content (ETag); `None` for local files.
    pub version: Option<String>,
}

impl Location {
    /// Returns the file or object at this location, or `None` if it does not exist.
    pub fn found(&self) -> Result<Option<StoredFile>> {
        Ok(match self {
            Location::Local(_) => {
                self.size()?.map(|bytes| StoredFile { name: String::new(), bytes, version: None })
            }
            Location::Remote(remote) => self.head(remote)?.map(|meta| StoredFile {
                name: String::new(),
                bytes: meta.size,
                version: meta.e_tag,
            }),
        })
    }

    /// Returns all files below this directory or prefix, sorted by name. The list is empty if the directory does not
    /// exist. Hidden files are omitted, because they are never results.
    pub fn tree(&self) -> Result<Vec<StoredFile>> {
        let mut found = Vec::new();
        match self {
            Location::Local(path) => {
                walk(path, "", &mut found).map_err(|error| Error::io(self, "list", error))?
            }
            Location::Remote(_) if self.is_http() => {}
            Location::Remote(remote) => {
                let listing = border::retry(|| remote.store.list(Some(&remote.path)).try_collect::<Vec<_>>());
                let listed =
                    border::wait_or_interrupt(listing)?.map_err(|error| self.store_error("list", &error))?;
                for meta in listed {
                    let Some(parts) = meta.location.prefix_match(&remote.path) else { continue };
                    let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
                    if !parts.is_empty() && !parts.iter().any(|part| part.starts_with('.')) {
                        let name = parts.join("/");
                        found.push(StoredFile { name, bytes: meta.size, version: meta.e_tag });
                    }
                }
            }
        }
        found.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(found)
    }

    /// Removes a directory with its contents, or all objects below a prefix, if they exist.
    pub fn remove_tree(&self) -> Result<()> {
        match self {
            Location::Local(path) => match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::io(self, "remove", error))
                }
                _ => Ok(()),
            },
            Location::Remote(_) => self.tree()?.iter().try_for_each(|found| self.join(&found.name).remove()),
        }
    }
}

fn walk(directory: &Path, below: &str, found: &mut Vec<StoredFile>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        let metadata = std::fs::metadata(entry.path())?;
        if metadata.is_dir() {
            walk(&entry.path(), &name, found)?;
        } else if metadata.is_file() {
            found.push(StoredFile { name, bytes: metadata.len(), version: None });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::FileOutput;
    use object_store::memory::InMemory;
    use std::io::Write;
    use std::sync::Arc;

    #[test]
    fn files_below_a_place_are_found() {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(InMemory::new());
        for place in [Location::Local(root.path().join("run")), Location::in_memory(&store, "run")] {
            assert_eq!(place.tree().unwrap(), []);
            for name in ["b/deep/file", "a", ".hidden/file", "b/.hidden"] {
                let mut output = FileOutput::create(&place.join(name)).unwrap();
                output.write_all(name.as_bytes()).unwrap();
                output.commit().unwrap();
            }
            let names: Vec<(String, u64)> =
                place.tree().unwrap().into_iter().map(|found| (found.name, found.bytes)).collect();
            assert_eq!(names, [("a".to_owned(), 1), ("b/deep/file".to_owned(), 11)]);
            assert_eq!(place.join("a").found().unwrap().map(|found| found.bytes), Some(1));
            assert_eq!(place.join("c").found().unwrap(), None);
            place.join("b").remove_tree().unwrap();
            place.join("c").remove_tree().unwrap();
            assert_eq!(place.tree().unwrap().len(), 1);
        }
    }
}
