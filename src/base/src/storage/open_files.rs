//! Checks the limit of open files before work that needs many of them.

use crate::error::{Error, Result};

/// Fails if this process may not have `needed` files open at the same time. `work` is what needs them, such as
/// "sorting". The limit is known on Linux only.
pub fn require_open_files(needed: u64, work: &str) -> Result<()> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    match soft_limit(&limits) {
        Some(limit) if limit < needed => Err(Error::usage(
            format_args!("{work} needs up to {needed} open files, and the limit of this process is {limit}"),
            format_args!(
                "raise the limit, for example with: ulimit -n {}",
                needed.next_power_of_two().max(1024)
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns the number of files that may be open; `None` if it is unlimited or unknown.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_read() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096       files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(soft_limit("Max open files            unlimited  unlimited files\n"), None);
        assert_eq!(soft_limit(""), None);
        assert!(require_open_files(3, "testing").is_ok());
    }
}
