//! Runs the tests of the Python package: `test_*.py` in this folder, on the extension module of the same build.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/suite/support/tools.rs"]
#[expect(dead_code, reason = "other functions are for the suite")]
mod tools;

/// The folder that the tests of the suite expect beside this module.
mod program {
    pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
}

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Makes a package of the Python files and the extension module, in the target folder; the folder to import it from.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let executable = std::env::current_exe().expect("a test has a path");
        let build = executable.parent().expect("a test is in a folder");
        let library =
            format!("{}planetree_python{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let import_from = build.join("python-package");
        let folder = import_from.join("planetree");
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        for file in
            std::fs::read_dir(Path::new(FOLDER).join("python/planetree")).expect("there are Python files")
        {
            let file = file.expect("a file of the package").path();
            if file.is_file() {
                std::fs::copy(&file, folder.join(file.file_name().expect("a file has a name")))
                    .expect("copied");
            }
        }
        let module = folder.join("_native.abi3.so");
        let _ = std::fs::remove_file(&module); // another test process may have made it
        std::fs::hard_link(build.join(&library), &module)
            .unwrap_or_else(|error| panic!("{library}: {error}"));
        import_from
    })
}

/// The program of the same build.
fn planetree() -> PathBuf {
    let executable = std::env::current_exe().expect("a test has a path");
    let build = executable.parent().and_then(Path::parent).expect("a test is in target/PROFILE/deps");
    let program = build.join(format!("planetree{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{}: build the program first: cargo build -p planetree-cli", program.display());
    program
}

/// Runs the tests of a file.
fn run(name: &str) {
    let Some(python) = tools::python() else { return };
    let output = Command::new(python)
        .args(["-m", "unittest", "-v", name])
        .current_dir(Path::new(FOLDER).join("tests"))
        .env("PYTHONPATH", package())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PLANETREE_PROGRAM", planetree())
        .output()
        .expect("Python runs");
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("ModuleNotFoundError") && !text.contains("No module named 'planetree") {
        tools::skipped(text.lines().find(|line| line.contains("ModuleNotFoundError")).unwrap_or_default());
        return;
    }
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn rows_of_every_kind_give_one_model() {
    run("test_inputs");
}

#[test]
fn bad_input_gives_exceptions_with_remedies() {
    run("test_bad_input");
}

#[test]
fn the_ranker_is_an_estimator() {
    run("test_estimator");
}

#[test]
fn functions_are_the_commands() {
    run("test_functions");
}

#[test]
fn threads_forks_interrupts_and_memory() {
    run("test_processes");
}

#[test]
fn types_and_the_walk_through_are_current() {
    run("test_types");
}
