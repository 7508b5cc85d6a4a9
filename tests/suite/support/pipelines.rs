//! Pipelines and the records of their runs.

use super::datasets::some_text;
use super::files::room;
use planetree::storage::{Access, Location};
use planetree_run::pipeline::RunManifest;
use std::fs;
use std::path::Path;

/// A directory with a pipeline `p.toml` and `train.txt`, its input.
pub fn prepared(text: &str) -> tempfile::TempDir {
    let room = room();
    fs::write(room.path().join("train.txt"), some_text(30, 20)).unwrap();
    fs::write(room.path().join("p.toml"), text).unwrap();
    room
}

/// The record of a run directory.
pub fn manifest(run: &Path) -> RunManifest {
    let location = Location::parse(run.to_str().unwrap(), Access::Explicit).unwrap();
    RunManifest::read(&location).unwrap().unwrap()
}
