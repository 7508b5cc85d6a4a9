//! The path of the program, for commands that start it again as another process.

use std::path::PathBuf;
use std::sync::OnceLock;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the path of the program. It is for hosts whose executable is another program, such as an interpreter. Only the
/// first call has an effect.
pub fn set_program(path: PathBuf) {
    let _ = PROGRAM.set(path); // the first call counts
}

/// Returns the path of the program: the one that was set, or else the executable of this process.
pub fn program() -> std::io::Result<PathBuf> {
    PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok)
}
