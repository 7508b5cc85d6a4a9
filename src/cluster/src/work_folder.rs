//! The directory in which an executor keeps results until they are fetched. The engine treats a full disk as a failure
//! of the whole request, but an I/O error before anything is written as one of a task, which is repeated elsewhere.

use super::executor::name;
use rustix::fs::statvfs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directory of this executor.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// What an error about a full disk says, as the system does.
pub(crate) const NO_SPACE: &str = "No space left on device";

/// Bytes that are left free, for what the engine writes beside a result.
const MARGIN: u64 = 64 << 10;

/// Sets the directory. Has an effect only once in a process.
pub(crate) fn set_folder(folder: &Path) {
    let _ = FOLDER.set(folder.to_owned());
}

/// Returns an error if there is no room for a result of this size. Without a directory, there always is.
pub(crate) fn check_room(bytes: usize) -> io::Result<()> {
    FOLDER.get().map_or(Ok(()), |folder| check_room_in(folder, bytes as u64))
}

fn check_room_in(folder: &Path, bytes: u64) -> io::Result<()> {
    let Ok(disk) = statvfs(folder) else { return Ok(()) };
    if disk.f_bavail.saturating_mul(disk.f_frsize) >= bytes.saturating_add(MARGIN) {
        return Ok(());
    }
    let place = format!("executor {}: {}", name(), folder.display());
    Err(io::Error::new(io::ErrorKind::StorageFull, format!("{place}: {NO_SPACE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_does_not_fit_is_an_error_that_names_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        check_room_in(folder.path(), 1000).unwrap();
        let error = check_room_in(folder.path(), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(
            text.contains(&folder.path().display().to_string()) && text.contains("No space left"),
            "{text}"
        );
        assert!(check_room_in(Path::new("/nowhere/at/all"), u64::MAX).is_ok());
    }
}
