//! Finds the input files that command-line arguments refer to. An argument can be a file, a directory, a glob
//! pattern, a URL, or `-` for standard input.

use crate::dataset::{Categories, MANIFEST, PartEntry};
use planetree_base::error::{Error, Result, copy_of};
use planetree_base::storage::{Access, HeldDirectory, Location};
use std::io::Read;
use std::sync::Arc;

/// An input file to read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Location of the file; `None` for standard input.
    pub location: Option<Location>,
    /// Name of the input in messages.
    pub name: String,
    /// The entry in the manifest, and the dataset's directory, if the file is part of a dataset.
    pub part: Option<(PartEntry, Arc<HeldDirectory>)>,
    /// The categories of the dataset, in the order of their codes, if the file is part of a dataset.
    pub categories: Vec<Categories>,
}

/// Suffixes of files that accompany data files and are not data themselves.
const SIDE_FILES: &[&str] = &[".query", ".weight", ".position", ".cd", ".group", ".init", ".names"];

impl Input {
    /// Creates an input for a file or object.
    pub fn at(location: Location) -> Self {
        Input { name: location.to_string(), location: Some(location), part: None, categories: Vec::new() }
    }

    /// Opens the input for reading.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        match &self.location {
            Some(location) => location.open(),
            None => Ok(Box::new(std::io::stdin())),
        }
    }

    /// Returns the size in bytes, or `None` if it is unknown.
    pub fn size(&self) -> Option<u64> {
        self.location.as_ref().and_then(|location| location.size().ok().flatten())
    }

    /// Returns the file next to the input whose name is the name of the input plus `suffix`, if it exists. If the
    /// name of the input ends in a compression suffix such as `.gz`, that suffix may be missing in the name of the
    /// other file.
    pub fn sibling(&self, suffix: &str) -> Result<Option<Location>> {
        let name = self.location.as_ref().map(Location::name).unwrap_or_default();
        let compression = [".gz", ".bz2", ".xz", ".zst"].into_iter().find(|ending| name.ends_with(ending));
        match compression {
            Some(compression) => Ok(self.renamed(compression, suffix)?.or(self.renamed("", suffix)?)),
            None => self.renamed("", suffix),
        }
    }

    /// Returns the file next to the input whose name ends in `add` instead of `strip`, if it exists.
    pub fn renamed(&self, strip: &str, add: &str) -> Result<Option<Location>> {
        let Some(location) = &self.location else { return Ok(None) };
        let beside = location.with_suffix(strip, add);
        Ok(beside.size()?.map(|_| beside))
    }
}

/// Returns all files that the arguments refer to, in the order of the arguments. The files of a directory or pattern
/// are sorted by name.
pub fn expand(arguments: &[String], access: Access) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        if argument == "-" {
            inputs.push(Input {
                location: None,
                name: "<stdin>".to_owned(),
                part: None,
                categories: Vec::new(),
            });
            continue;
        }
        let found = expand_one(argument, access)?;
        if found.is_empty() {
            let shown = Location::parse(argument, access)?;
            return Err(Error::place(shown, "no input files found", "check the path"));
        }
        inputs.extend(found);
    }
    Ok(inputs)
}

fn expand_one(argument: &str, access: Access) -> Result<Vec<Input>> {
    let location = Location::parse(argument, access)?;
    // In a URL, a question mark is not a wildcard, but starts the query string.
    let is_pattern = match &location {
        Location::Local(_) => argument.contains(['*', '?', '[']),
        Location::Remote(_) => argument.split('?').next().unwrap_or_default().contains(['*', '[']),
    };
    match &location {
        Location::Local(path) if is_pattern && !path.exists() => {
            let paths =
                glob::glob(&path.to_string_lossy()).map_err(|error| bad_pattern(&location, &error))?;
            let mut inputs = Vec::new();
            for path in paths {
                let path =
                    path.map_err(|error| Error::io(error.path().display(), "list", copy_of(error.error())))?;
                if path.is_file() {
                    inputs.push(Input::at(Location::Local(path)));
                }
            }
            Ok(inputs)
        }
        Location::Local(path) if path.is_dir() => in_directory(&location),
        Location::Local(path) if !path.exists() => Err(location.absent()),
        Location::Local(_) => Ok(vec![Input::at(location)]),
        Location::Remote(_) if is_pattern => remote_pattern(&location, argument, access),
        Location::Remote(_) => {
            if !argument.ends_with('/') && location.size()?.is_some() {
                return Ok(vec![Input::at(location)]);
            }
            if location.is_http() {
                return Err(location.absent());
            }
            in_directory(&location)
        }
    }
}

/// Maximum depth of folders named `key=value`.
const PARTITION_DEPTH: usize = 8;

/// Returns the data files in a directory or prefix. If the directory is a dataset, these are the files in its
/// manifest. Otherwise, these are all files except hidden files, side files, and files such as `README`, and those in
/// folders named `key=value`, as Hive and Spark write them.
fn in_directory(location: &Location) -> Result<Vec<Input>> {
    let (names, folders) = location.contents()?;
    if names.iter().any(|name| name == MANIFEST) {
        let (directory, manifest) = crate::dataset::Manifest::open(location)?;
        let directory = Arc::new(directory);
        let of_part = |file: PartEntry| Input {
            categories: manifest.categories.clone(),
            part: Some((file.clone(), directory.clone())),
            ..Input::at(location.join(&file.name))
        };
        return Ok(manifest.files.iter().cloned().map(of_part).collect());
    }
    let is_data = |name: &&String| {
        let lower = name.to_ascii_lowercase();
        let hidden = name.starts_with(['.', '_']);
        let is_notice = lower.starts_with("readme") || lower.starts_with("license");
        !hidden && !is_notice && !SIDE_FILES.iter().any(|ending| lower.ends_with(ending))
    };
    let mut inputs: Vec<Input> =
        names.iter().filter(is_data).map(|name| Input::at(location.join(name))).collect();
    for folder in folders.iter().filter(|folder| partition_key(folder).is_some()) {
        let inner = location.join(folder);
        let path = inner.to_string();
        if path.split('/').rev().take_while(|name| partition_key(name).is_some()).count() > PARTITION_DEPTH {
            return Err(Error::place(inner, "too many nested folders", "pass the files"));
        }
        inputs.extend(in_directory(&inner)?);
    }
    Ok(inputs)
}

/// Returns the key of a folder of a partitioned table, such as `day` of `day=2026-11-18`.
fn partition_key(folder: &str) -> Option<&str> {
    let (key, _) = folder.split_once('=')?;
    (!key.is_empty() && !key.starts_with(['.', '_'])).then_some(key)
}

/// Returns the keys of the folders in which the inputs are, such as `day` of `clicks/day=2026-11-18/part.parquet`.
pub(super) fn partition_keys(inputs: &[Input]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for location in inputs.iter().filter_map(|input| input.location.as_ref()) {
        let path = location.to_string();
        let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
        for key in folders.split('/').filter_map(partition_key) {
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
        }
    }
    keys
}

/// Returns the objects directly below a prefix whose names match a pattern.
fn remote_pattern(shown: &Location, argument: &str, access: Access) -> Result<Vec<Input>> {
    let (prefix, pattern) = argument.rsplit_once('/').unwrap_or(("", argument));
    if prefix.contains(['*', '[']) {
        return Err(Error::usage(
            format_args!("{shown}: wildcards are only allowed in the last component of a URL"),
            "pass one URL per directory, such as s3://bucket/a/*.txt s3://bucket/b/*.txt",
        ));
    }
    let pattern = glob::Pattern::new(pattern).map_err(|error| bad_pattern(shown, &error))?;
    let directory = Location::parse(prefix, access)?;
    let names = directory.list()?;
    Ok(names
        .iter()
        .filter(|name| pattern.matches(name))
        .map(|name| Input::at(directory.join(name)))
        .collect())
}

fn bad_pattern(shown: &Location, error: &glob::PatternError) -> Error {
    Error::usage(format_args!("{shown}: invalid pattern: {error}"), "check the brackets")
}
