//! What a run took: the file of `--stats`.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileOutput, Location};
use std::io::Write;

/// Writes a run's figures as one JSON object.
pub fn write_stats(place: &Location, stats: &serde_json::Value) -> Result<()> {
    let mut output = FileOutput::create(place)?;
    writeln!(output, "{stats:#}").map_err(|error| Error::io(place, "write", &error))?;
    output.commit()
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
