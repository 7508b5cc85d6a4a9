//! Directories and the files in them.

use std::path::Path;

/// A temporary directory for a test, removed at its end.
pub fn room() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Names and contents of all files of a directory, sorted.
pub fn files_of(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let content = std::fs::read(directory.join(&name)).unwrap();
        (name, content)
    };
    names_in(directory).into_iter().map(read).collect()
}

/// Asserts that two directories have the same files. The message names the directories, not the differing bytes.
pub fn assert_same_files(left: &Path, right: &Path) {
    let (left_files, right_files) = (files_of(left), files_of(right));
    assert!(!left_files.is_empty(), "{} is empty", left.display());
    assert!(left_files == right_files, "{} and {} differ", left.display(), right.display());
}

/// Asserts that two files of a directory have the same bytes, without printing them.
pub fn assert_same_bytes(directory: &Path, left: &str, right: &str, context: &str) {
    let [left_bytes, right_bytes] = [left, right].map(|name| std::fs::read(directory.join(name)).unwrap());
    assert!(left_bytes == right_bytes, "{context}: {left} and {right} differ");
}

/// Names of everything in a directory, including hidden entries, sorted.
pub fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A JSON file.
pub fn json_of(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}
