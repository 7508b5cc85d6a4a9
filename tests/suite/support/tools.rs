//! Tools and data that may be missing: Python with its packages, real datasets, and tests skipped for lack of them.

use super::program::ROOT;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file or folder of the real datasets and fault injectors beside the checkout, if it exists.
pub fn shared(part: &str) -> Option<PathBuf> {
    let path = Path::new(ROOT).join("../shared").join(part);
    if !path.exists() {
        // Not ours to distribute.
        impossible_here(&format!("{} is not beside the checkout", path.display()));
        return None;
    }
    path.canonicalize().ok()
}

/// Records that a tool which a test needs is missing. Where tools are required (`make test`, and always in CI) the test
/// fails; where skips are allowed they are counted and listed at the end.
pub fn skipped(why: &str) {
    let required = std::env::var_os("PLANETREE_TOOLS_REQUIRED").is_some_and(|value| !value.is_empty());
    assert!(!required && !in_ci(), "{why} (make test ALLOW_SKIPS=1 skips tests that need it)");
    record_skip(why);
}

/// Records that a test cannot run on this machine, whatever is installed. It fails in CI only, unless the CI says that
/// its machines lack data or rights.
pub fn impossible_here(why: &str) {
    let allowed = std::env::var_os("ALLOW_IMPOSSIBLE").is_some_and(|value| !value.is_empty());
    assert!(!in_ci() || allowed, "{why} (ALLOW_IMPOSSIBLE=1 skips it in CI)");
    record_skip(why);
}

fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn record_skip(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("PLANETREE_SKIPS") {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // One write per line, so that the lines of concurrent tests do not mix.
        file.and_then(|mut file| file.write_all(format!("{name}\t{why}\n").as_bytes())).unwrap();
    }
}

/// A Python with the packages that tests need, as `make venv` installs it.
pub fn python() -> Option<PathBuf> {
    let home = std::env::var_os("PLANETREE_TEST_VENV").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
            .map(|cache| cache.join("planetree/venv"))
    })?;
    let python = home.join("bin/python");
    if !python.exists() {
        skipped("there is no Python with the test packages: install python3 with venv and run `make venv`");
        return None;
    }
    Some(python)
}

/// Runs a check of `reference.py` in a directory; what it printed, or `None` without Python.
pub fn reference(directory: &Path, arguments: &str) -> Option<String> {
    reference_script(directory, "reference.py", arguments)
}

/// Runs a check of another script of `tests/suite`.
pub fn reference_script(directory: &Path, script: &str, arguments: &str) -> Option<String> {
    let script = Path::new(ROOT).join("tests/suite").join(script);
    let output = Command::new(python()?)
        .arg(script)
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("ModuleNotFoundError") {
        skipped(stderr.lines().last().unwrap_or_default());
        return None;
    }
    assert!(output.status.success(), "{arguments}: {stderr}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Runs lines of Python in a directory; false without Python.
#[allow(dead_code, reason = "only tests of the cluster use it, and this file is part of two test programs")]
pub fn run_python(directory: &Path, script: &str) -> bool {
    let Some(python) = python() else { return false };
    let output = Command::new(python).current_dir(directory).args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}
