//! Reads how much memory this process has, and keeps it from having more than it uses.

/// Returns the memory of this process in bytes, or `None` on systems without `/proc`.
pub fn resident_bytes() -> Option<u64> {
    in_status("VmRSS:")
}

/// Returns the peak memory of this process in bytes, or `None` on systems without `/proc`.
pub fn peak_bytes() -> Option<u64> {
    in_status("VmHWM:")
}

/// Makes the allocator of the C library give large blocks back to the system as soon as they are freed. It would otherwise
/// keep ever larger blocks for reuse, of which those of other sizes fit only a part: a forest whose trees are written to
/// disk as they are grown had 0.3 MiB more after each tree. Page faults make programs up to a tenth slower in return, so
/// this is for processes with a memory limit.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt is a function of the C library")]
pub fn return_freed_memory() {
    use std::ffi::c_int;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    /// `M_MMAP_THRESHOLD` of malloc.h, which does not grow any more once it has been set.
    const MMAP_THRESHOLD: c_int = -3;
    /// Blocks from this size on are returned.
    const LARGE: c_int = 128 << 10;
    // SAFETY: the function takes two numbers and may be called at any time. If it fails, nothing has changed.
    let _ = unsafe { mallopt(MMAP_THRESHOLD, LARGE) };
}

/// Does nothing: other allocators return large blocks by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}

fn in_status(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_more_than_a_mebibyte_and_not_more_than_at_its_peak() {
        let resident = resident_bytes().unwrap();
        let peak = peak_bytes().unwrap(); // read last, since memory may grow between the two
        assert!(resident > 1 << 20 && resident <= peak, "{resident} {peak}");
    }
}
