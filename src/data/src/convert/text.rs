//! Converts small texts, for tests of other crates.

use super::{ConvertOptions, MIN_MEMORY, convert};
use crate::ingest::{Ingest, IngestOptions, Input, InputFormat};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use std::path::Path;

/// Writes a text to a directory and converts it to a dataset beside it, whose files have `partition_rows` rows.
pub fn convert_text(
    directory: &Path,
    name: &str,
    text: &str,
    format: InputFormat,
    partition_rows: usize,
) -> Result<Location> {
    let (input, output) = (directory.join(format!("{name}.txt")), Location::Local(directory.join(name)));
    std::fs::write(&input, text).map_err(|error| Error::io(input.display(), "write", error))?;
    let ingest = IngestOptions { format: Some(format), ..IngestOptions::default() };
    let options = ConvertOptions {
        partition_rows: Some(partition_rows),
        threads: 1,
        memory_limit: MIN_MEMORY,
        ..ConvertOptions::new(output.clone())
    };
    convert(Ingest::open(vec![Input::at(Location::Local(input))], ingest)?, &options, &mut |_| {})?;
    Ok(output)
}
