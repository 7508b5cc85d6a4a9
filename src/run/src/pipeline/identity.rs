//! Identifies the content of a file, dataset or directory, independently of its name and modification time. A dataset
//! is identified by its manifest, and an object in an object store by its version. The content of other files is
//! hashed.

use super::graph::StepInput;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{
    Access, Digest, HeldDirectory, Location, RunningDigest, StoredFile, interrupt,
};
use planetree_data::dataset::{MANIFEST, Manifest, verify_part};
use planetree_data::ingest::{Input, expand, sibling_description};
use planetree_data::table::TableReader;
use std::io::Read;

/// The identity of a file, dataset or directory, which changes whenever its content changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentIdentity {
    /// Hash of the content.
    pub digest: Digest,
    /// Total size in bytes.
    pub bytes: u64,
}

/// How thoroughly the files of a dataset are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdentityCheck {
    /// Trust the manifest of a dataset without reading its files, because the commands that read the dataset verify
    /// the files.
    Quick,
    /// Verify every byte of local files, and the size of every object in a store, to detect manual changes.
    Thorough,
}

/// Returns the identity of a location; `None` if nothing exists there.
pub(super) fn identify(location: &Location, check: IdentityCheck) -> Result<Option<ContentIdentity>> {
    interrupt::check()?;
    if let Some((directory, bytes)) = HeldDirectory::open(location, MANIFEST)? {
        return dataset(&directory, &bytes, check).map(Some);
    }
    if let Some(found) = location.found()? {
        return Ok(Some(ContentIdentity { digest: file(location, &found)?, bytes: found.bytes }));
    }
    let files = location.tree()?;
    if files.is_empty() {
        return Ok(None);
    }
    let mut digest = RunningDigest::new();
    let mut bytes = 0;
    for found in files {
        interrupt::check()?;
        let content = file(&location.join(&found.name), &found)?;
        digest.update(format!("{} {content}\n", found.name).as_bytes());
        bytes += found.bytes;
    }
    Ok(Some(ContentIdentity { digest: digest.digest(), bytes }))
}

/// Returns the identity of a dataset. The identity of a damaged dataset differs from that of an intact one.
fn dataset(directory: &HeldDirectory, bytes: &[u8], check: IdentityCheck) -> Result<ContentIdentity> {
    let mut digest = RunningDigest::new();
    digest.update(bytes);
    let Ok(manifest) = Manifest::from_bytes(bytes, directory.location()) else {
        digest.update(b"damaged");
        return Ok(ContentIdentity { digest: digest.digest(), bytes: bytes.len() as u64 });
    };
    let is_intact = check == IdentityCheck::Quick
        || manifest.files.iter().all(|entry| {
            let present = directory.size(&entry.name).is_ok_and(|size| size == Some(entry.bytes));
            let is_remote = matches!(directory.location(), Location::Remote(_));
            present && (is_remote || verify_part(directory, entry).is_ok())
        });
    if !is_intact {
        digest.update(b"damaged");
    }
    interrupt::check()?;
    let files: u64 = manifest.files.iter().map(|entry| entry.bytes).sum();
    Ok(ContentIdentity { digest: digest.digest(), bytes: bytes.len() as u64 + files })
}

/// Returns a hash of a file's content, or of its version if it is in an object store.
fn file(location: &Location, found: &StoredFile) -> Result<Digest> {
    let mut digest = RunningDigest::new();
    if let Some(version) = &found.version {
        digest.update(format!("{version} {}", found.bytes).as_bytes());
        return Ok(digest.digest());
    }
    let mut reader = location.open()?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        let count = reader.read(&mut buffer).map_err(|error| Error::io(location, "read", error))?;
        if count == 0 {
            return Ok(digest.digest());
        }
        digest.update(&buffer[..count]);
    }
}

/// Returns the identity of an input that no step writes; `None` if the input does not exist.
pub(crate) fn identify_external(
    input: &StepInput,
    kind: &str,
    access: Access,
) -> Result<Option<ContentIdentity>> {
    let location = Location::parse(&input.text, access)?;
    if !reads_tables(kind, input.key) {
        return identify(&location, IdentityCheck::Quick);
    }
    // Tables may be directories or patterns, and additional files next to them may be read.
    let Ok(files) = expand(std::slice::from_ref(&input.text), access) else { return Ok(None) };
    if location.join(MANIFEST).found()?.is_some() {
        return identify(&location, IdentityCheck::Quick);
    }
    let mut digest = RunningDigest::new();
    let mut bytes = 0;
    for input in files {
        for location in with_side_files(&input)? {
            let Some(found) = location.found()? else { return Ok(None) };
            digest.update(format!("{} {}\n", location.name(), file(&location, &found)?).as_bytes());
            bytes += found.bytes;
        }
    }
    Ok(Some(ContentIdentity { digest: digest.digest(), bytes }))
}

/// Checks whether this input of a command may be a table that the command converts.
fn reads_tables(kind: &str, key: &str) -> bool {
    match key {
        "input" => kind == "convert",
        "data" => matches!(kind, "train" | "predict" | "cv" | "evaluate" | "blend" | "augment" | "cost"),
        "valid" => kind == "train",
        _ => false,
    }
}

fn with_side_files(input: &Input) -> Result<Vec<Location>> {
    let mut locations: Vec<Location> = input.location.iter().cloned().collect();
    if !matches!(&input.location, Some(location) if location.is_http()) {
        for suffix in [".query", ".weight", ".position"] {
            locations.extend(input.sibling(suffix)?);
        }
        locations.extend(sibling_description(input)?);
    }
    Ok(locations)
}

/// Returns the number of rows of a dataset or Parquet file; `None` for anything else.
pub(super) fn rows_of(location: &Location) -> Option<u64> {
    if let Ok(manifest) = Manifest::read(location) {
        return Some(manifest.rows);
    }
    TableReader::rows_of(location).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn identity_depends_on_content_and_not_on_the_name() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| Location::Local(root.path().join(name));
        let digest = |name: &str| {
            identify(&at(name), IdentityCheck::Thorough).unwrap().map(|identity| identity.digest)
        };
        assert_eq!(digest("a"), None);
        fs::write(root.path().join("a"), "text").unwrap();
        fs::write(root.path().join("b"), "text").unwrap();
        assert_eq!(digest("a"), digest("b"));
        fs::write(root.path().join("b"), "texT").unwrap();
        assert_ne!(digest("a"), digest("b"));
        fs::create_dir_all(root.path().join("d/e")).unwrap();
        assert_eq!(digest("d"), None, "an empty directory counts as missing");
        fs::write(root.path().join("d/e/f"), "1").unwrap();
        let one = digest("d");
        fs::write(root.path().join("d/.hidden"), "1").unwrap();
        assert_eq!(digest("d"), one);
        fs::rename(root.path().join("d/e/f"), root.path().join("d/e/g")).unwrap();
        assert_ne!(digest("d"), one);
    }

    #[test]
    fn side_files_are_part_of_an_input() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("rank.train"), "1 1:1\n").unwrap();
        let input = |text: &str| StepInput {
            label: "input".into(),
            key: "input",
            text: root.path().join(text).to_string_lossy().into_owned(),
            place: String::new(),
            from: None,
        };
        let identity = |text: &str| identify_external(&input(text), "convert", Access::Explicit).unwrap();
        let before = identity("rank.train").unwrap();
        assert_eq!(before.bytes, 6);
        fs::write(root.path().join("rank.train.query"), "1\n").unwrap();
        let after = identity("rank.train").unwrap();
        assert_ne!(before.digest, after.digest);
        assert_eq!(identity("rank.*rain"), Some(after));
        assert_eq!(identity("absent*"), None);
        assert_eq!(identity("absent"), None);
    }

    #[test]
    fn side_files_are_part_of_every_input_that_may_be_a_table() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("rank.train"), "1 1:1\n").unwrap();
        let text = root.path().join("rank.train").to_string_lossy().into_owned();
        let identity = |kind: &str, key: &'static str| {
            let (label, text) = (key.to_owned(), text.clone());
            let input = StepInput { label, key, text, place: String::new(), from: None };
            identify_external(&input, kind, Access::Explicit).unwrap()
        };
        let inputs = [
            ("train", "data"),
            ("train", "valid"),
            ("predict", "data"),
            ("cv", "data"),
            ("evaluate", "data"),
            ("blend", "data"),
            ("augment", "data"),
            ("cost", "data"),
        ];
        let of_inputs = || inputs.map(|(kind, key)| identity(kind, key));
        let (before, other) = (of_inputs(), identity("train", "config"));
        fs::write(root.path().join("rank.train.query"), "1\n").unwrap();
        for ((before, after), input) in before.into_iter().zip(of_inputs()).zip(inputs) {
            assert_ne!(before, after, "{input:?}");
        }
        assert_eq!(identity("train", "config"), other);
    }
}
