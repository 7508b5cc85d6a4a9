//! What identifies the content of a file, dataset or directory, whatever it is called and whenever it was
//! written. Datasets have it in their manifest; objects in their store's version; other files are hashed.

use super::graph::StepInput;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{
    Access, Digest, HeldDirectory, Location, RunningDigest, StoredFile, interrupt,
};
use planetree_data::dataset::{MANIFEST, Manifest, verify_part};
use planetree_data::ingest::{Input, description_beside, expand};
use planetree_data::table::TableReader;
use std::io::Read;

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its content.
    pub digest: Digest,
    /// Its size, all files together.
    pub bytes: u64,
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A dataset is what its manifest says; whoever reads it checks the rest.
    Quick,
    /// Every byte on this machine, every size in a store: somebody may have changed it by hand.
    Close,
}

/// What is at a place; `None` if there is nothing.
pub fn identify(location: &Location, look: Look) -> Result<Option<Identity>> {
    interrupt::check()?;
    if let Some((directory, bytes)) = HeldDirectory::open(location, MANIFEST)? {
        return dataset(&directory, &bytes, look).map(Some);
    }
    if let Some(found) = location.found()? {
        return Ok(Some(Identity { digest: file(location, &found)?, bytes: found.bytes }));
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
    Ok(Some(Identity { digest: digest.digest(), bytes }))
}

/// What a dataset is. One that lacks a file or a byte is another, which equals no whole one.
fn dataset(directory: &HeldDirectory, bytes: &[u8], look: Look) -> Result<Identity> {
    let mut digest = RunningDigest::new();
    digest.update(bytes);
    let Ok(manifest) = Manifest::from_bytes(bytes, directory.location()) else {
        digest.update(b"damaged");
        return Ok(Identity { digest: digest.digest(), bytes: bytes.len() as u64 });
    };
    let whole = look == Look::Quick
        || manifest.files.iter().all(|entry| {
            let present = directory.size(&entry.name).is_ok_and(|size| size == Some(entry.bytes));
            let is_remote = matches!(directory.location(), Location::Remote(_));
            present && (is_remote || verify_part(directory, entry).is_ok())
        });
    if !whole {
        digest.update(b"damaged");
    }
    interrupt::check()?;
    let files: u64 = manifest.files.iter().map(|entry| entry.bytes).sum();
    Ok(Identity { digest: digest.digest(), bytes: bytes.len() as u64 + files })
}

/// The content of one file.
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
        let count = reader.read(&mut buffer).map_err(|error| Error::io(location, "read", &error))?;
        if count == 0 {
            return Ok(digest.digest());
        }
        digest.update(&buffer[..count]);
    }
}

/// What an input from outside is; `None` if there is nothing.
pub fn identify_outside(input: &StepInput, kind: &str, access: Access) -> Result<Option<Identity>> {
    let location = Location::parse(&input.text, access)?;
    if kind != "convert" || input.key != "input" {
        return identify(&location, Look::Quick);
    }
    // These may be directories and patterns, and have files beside them that are read along.
    let Ok(files) = expand(std::slice::from_ref(&input.text), access) else { return Ok(None) };
    if location.join(MANIFEST).found()?.is_some() {
        return identify(&location, Look::Quick);
    }
    let mut digest = RunningDigest::new();
    let mut bytes = 0;
    for each in files {
        for place in with_side_files(&each)? {
            let Some(found) = place.found()? else { return Ok(None) };
            digest.update(format!("{} {}\n", place.name(), file(&place, &found)?).as_bytes());
            bytes += found.bytes;
        }
    }
    Ok(Some(Identity { digest: digest.digest(), bytes }))
}

fn with_side_files(input: &Input) -> Result<Vec<Location>> {
    let mut places: Vec<Location> = input.location.iter().cloned().collect();
    if !matches!(&input.location, Some(location) if location.is_http()) {
        for suffix in [".query", ".weight", ".position"] {
            places.extend(input.beside(suffix)?);
        }
        places.extend(description_beside(input)?);
    }
    Ok(places)
}

/// Rows of a dataset or of a Parquet file; `None` for anything else.
pub fn rows_of(location: &Location) -> Option<u64> {
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
    fn content_counts_and_names_and_times_do_not() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| Location::Local(root.path().join(name));
        let digest = |name: &str| identify(&at(name), Look::Close).unwrap().map(|identity| identity.digest);
        assert_eq!(digest("a"), None);
        fs::write(root.path().join("a"), "text").unwrap();
        fs::write(root.path().join("b"), "text").unwrap();
        assert_eq!(digest("a"), digest("b"));
        fs::write(root.path().join("b"), "texT").unwrap();
        assert_ne!(digest("a"), digest("b"));
        fs::create_dir_all(root.path().join("d/e")).unwrap();
        assert_eq!(digest("d"), None, "a directory without files is nothing");
        fs::write(root.path().join("d/e/f"), "1").unwrap();
        let one = digest("d");
        fs::write(root.path().join("d/.hidden"), "1").unwrap();
        assert_eq!(digest("d"), one);
        fs::rename(root.path().join("d/e/f"), root.path().join("d/e/g")).unwrap();
        assert_ne!(digest("d"), one);
    }

    #[test]
    fn a_side_file_is_part_of_its_input() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("rank.train"), "1 1:1\n").unwrap();
        let input = |text: &str| StepInput {
            label: "input".into(),
            key: "input",
            text: root.path().join(text).to_string_lossy().into_owned(),
            place: String::new(),
            from: None,
        };
        let look = |text: &str| identify_outside(&input(text), "convert", Access::Explicit).unwrap();
        let before = look("rank.train").unwrap();
        assert_eq!(before.bytes, 6);
        fs::write(root.path().join("rank.train.query"), "1\n").unwrap();
        let after = look("rank.train").unwrap();
        assert_ne!(before.digest, after.digest);
        assert_eq!(look("rank.*rain"), Some(after));
        assert_eq!(look("absent*"), None);
        assert_eq!(look("absent"), None);
    }
}
