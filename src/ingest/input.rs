//! What the user named as input: files, directories, globs, URLs, or `-`.

use crate::dataset::{MANIFEST, PartEntry};
use crate::error::{Error, Result};
use crate::storage::{Access, Location};
use std::io::Read;

/// One file to read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it is; `None` is standard input.
    pub location: Option<Location>,
    /// Its name in messages.
    pub name: String,
    /// What the manifest says of it, if it is part of a dataset.
    pub part: Option<PartEntry>,
}

/// What lies beside data and is not data.
const SIDE_FILES: &[&str] = &[".query", ".weight", ".position", ".cd", ".group", ".init", ".names"];

impl Input {
    /// A file or object.
    pub fn at(location: Location) -> Self {
        Input { name: location.to_string(), location: Some(location), part: None }
    }

    /// Opens it from the start.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        match &self.location {
            Some(location) => location.open(),
            None => Ok(Box::new(std::io::stdin())),
        }
    }

    /// Its size in bytes, where that is known.
    pub fn size(&self) -> Option<u64> {
        self.location.as_ref().and_then(|location| location.size().ok().flatten())
    }

    /// The file beside it that has the same name but for its packing, and `suffix` added.
    pub fn beside(&self, suffix: &str) -> Option<Location> {
        let location = self.location.as_ref()?;
        let name = location.name();
        let packing = [".gz", ".bz2", ".xz", ".zst"].into_iter().find(|ending| name.ends_with(ending));
        let beside = location.with_suffix(packing.unwrap_or(""), suffix);
        matches!(beside.size(), Ok(Some(_))).then_some(beside)
    }
}

/// Every file the arguments name, in the order of the arguments, sorted within a directory or a
/// pattern.
pub fn expand(arguments: &[String], access: Access) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        if argument == "-" {
            inputs.push(Input { location: None, name: "<stdin>".to_owned(), part: None });
            continue;
        }
        let found = expand_one(argument, access)?;
        if found.is_empty() {
            return Err(Error::place(argument, "nothing to read here", "check the spelling of the path"));
        }
        inputs.extend(found);
    }
    Ok(inputs)
}

fn expand_one(argument: &str, access: Access) -> Result<Vec<Input>> {
    let is_pattern = argument.contains(['*', '?', '[']);
    let location = Location::parse(argument, access)?;
    match &location {
        Location::Local(path) if is_pattern && !path.exists() => {
            let paths = glob::glob(argument).map_err(|error| {
                Error::usage(format_args!("{argument}: not a pattern: {error}"), "check the brackets")
            })?;
            let mut inputs = Vec::new();
            for path in paths {
                let path = path.map_err(|error| Error::io(error.path().display(), "list", error.error()))?;
                if path.is_file() {
                    inputs.push(Input::at(Location::Local(path)));
                }
            }
            Ok(inputs)
        }
        Location::Local(path) if path.is_dir() => in_directory(&location),
        Location::Local(path) if !path.exists() => Err(location.absent()),
        Location::Local(_) => Ok(vec![Input::at(location)]),
        Location::Remote(_) if is_pattern => remote_pattern(argument, access),
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

/// The data files of a directory or prefix: a dataset's own parts, or what looks like data.
fn in_directory(location: &Location) -> Result<Vec<Input>> {
    let names = location.list()?;
    if names.iter().any(|name| name == MANIFEST) {
        let manifest = crate::dataset::Manifest::read(location)?;
        let of_part =
            |file: PartEntry| Input { part: Some(file.clone()), ..Input::at(location.join(&file.name)) };
        return Ok(manifest.files.into_iter().map(of_part).collect());
    }
    let is_data = |name: &&String| {
        let lower = name.to_ascii_lowercase();
        let hidden = name.starts_with(['.', '_']);
        let told = lower.starts_with("readme") || lower.starts_with("license");
        !hidden && !told && !SIDE_FILES.iter().any(|ending| lower.ends_with(ending))
    };
    Ok(names.iter().filter(is_data).map(|name| Input::at(location.join(name))).collect())
}

/// Objects of one prefix whose last name matches a pattern.
fn remote_pattern(argument: &str, access: Access) -> Result<Vec<Input>> {
    let (prefix, pattern) = argument.rsplit_once('/').unwrap_or(("", argument));
    if prefix.contains(['*', '?', '[']) {
        return Err(Error::usage(
            format_args!("{argument}: in a URL a pattern may stand only in the last name"),
            "name the prefixes one by one",
        ));
    }
    let pattern = glob::Pattern::new(pattern).map_err(|error| {
        Error::usage(format_args!("{argument}: not a pattern: {error}"), "check the brackets")
    })?;
    let directory = Location::parse(prefix, access)?;
    let names = directory.list()?;
    Ok(names
        .iter()
        .filter(|name| pattern.matches(name))
        .map(|name| Input::at(directory.join(name)))
        .collect())
}
