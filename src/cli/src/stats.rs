//! Implements the option `--stats`, which writes the time and memory of a command to a JSON file.

use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Head, Location, STATS_FORMATS, TextOutput, replaces};
use std::io::Write;

/// Option to write run time and memory use to a file.
#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// Write the seconds of each phase and the peak memory to a JSON file
    #[arg(long, value_name = "FILE.json")]
    pub stats: Option<String>,
}

/// Writes statistics as one JSON object.
pub(crate) fn write_stats(location: &Location, stats: &serde_json::Value) -> Result<()> {
    let mut output = create(location)?;
    writeln!(output, "{stats:#}").map_err(|error| Error::io(location, "write", error))?;
    output.commit()
}

/// Fails if [`write_stats`] would fail, so that the error appears before the work starts.
pub(crate) fn check_stats(location: &Location) -> Result<()> {
    create(location).map(drop)
}

fn create(location: &Location) -> Result<TextOutput> {
    let (_, compression) = STATS_FORMATS.of(location)?;
    TextOutput::create(location, compression, replaces(is_stats))
}

/// Checks whether a file was written by [`write_stats`].
fn is_stats(head: &Head) -> bool {
    let stats = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&head.bytes);
    let keys = ["thread_count", "total_s", "peak_memory_bytes"];
    stats.is_ok_and(|stats| keys.iter().all(|key| stats.contains_key(*key)))
}
