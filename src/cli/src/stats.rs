//! What a run took: the file of `--stats`.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Head, Location, STATS_FORMATS, TextOutput, replaces};
use std::io::Write;

/// Writes a run's figures as one JSON object.
pub fn write_stats(place: &Location, stats: &serde_json::Value) -> Result<()> {
    let mut output = create(place)?;
    writeln!(output, "{stats:#}").map_err(|error| Error::io(place, "write", &error))?;
    output.commit()
}

/// Fails where [`write_stats`] would: to be asked before the work.
pub fn check_stats(place: &Location) -> Result<()> {
    create(place).map(drop)
}

fn create(place: &Location) -> Result<TextOutput> {
    let (_, compression) = STATS_FORMATS.of(place)?;
    TextOutput::create(place, compression, replaces(is_ours))
}

/// Whether a file has a run's figures.
fn is_ours(head: &Head) -> bool {
    let figures = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&head.bytes);
    let keys = ["thread_count", "total_s", "peak_memory_bytes"];
    figures.is_ok_and(|figures| keys.iter().all(|key| figures.contains_key(*key)))
}

/// The most memory that this process had at any time; `None` where the system does not say.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_some_memory() {
        assert!(peak_memory_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
