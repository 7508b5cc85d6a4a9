//! Commands of the program as function calls.

use super::job::{self, Reports};
use clap::ArgAction;
use planetree_train::config::{ListedKind, listed_parameters};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs a command. Returns what it would print on standard output.
#[pyfunction]
#[pyo3(signature = (arguments, report=None))]
pub(crate) fn run(py: Python<'_>, arguments: Vec<String>, report: Option<Py<PyAny>>) -> PyResult<String> {
    let reports = Arc::new(Reports::default());
    let console = reports.clone();
    job::run(py, report.as_ref(), &reports, move || planetree_cli::run_inside(&arguments, console))?;
    Ok(reports.result())
}

/// Runs the program with the arguments of a command line. `program` is a file that starts it. Returns the exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, program: Option<PathBuf>, arguments: Vec<OsString>) -> u8 {
    if let Some(program) = program {
        planetree_base::program::set_program(program);
    }
    py.detach(|| planetree_cli::main_with(arguments))
}

/// Returns the options of a command: name, whether it takes a value, and whether it may be repeated.
#[pyfunction]
pub(crate) fn options_of(command: &str) -> Vec<(String, bool, bool)> {
    let mut program = planetree_cli::command_line();
    program.build();
    let arguments = program.find_subcommand(command).into_iter().flat_map(|found| found.get_arguments());
    let options = arguments.filter_map(|argument| {
        let name = argument.get_long()?.replace('-', "_");
        let takes_value = argument.get_action().takes_values();
        let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
        let is_list = many || argument.get_value_delimiter().is_some();
        Some((name, takes_value, is_list || matches!(argument.get_action(), ArgAction::Append)))
    });
    options.collect()
}

/// Returns the parameters of training: name, aliases, type, words, default and help.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "Python sees a tuple")]
pub(crate) fn parameters()
-> Vec<(&'static str, Vec<&'static str>, &'static str, Vec<&'static str>, &'static str, &'static str)> {
    let listed = listed_parameters().into_iter().map(|one| {
        let (kind, words) = match one.kind {
            ListedKind::Whole => ("int", Vec::new()),
            ListedKind::Real => ("float", Vec::new()),
            ListedKind::Flag => ("bool", Vec::new()),
            ListedKind::Word(words) => ("word", words),
            ListedKind::Text => ("str", Vec::new()),
            ListedKind::Table => ("table", Vec::new()),
        };
        (one.name, one.aliases.to_vec(), kind, words, one.default, one.help)
    });
    listed.collect()
}

/// Returns the names of the presets.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    planetree_train::config::presets().iter().map(|preset| preset.name).collect()
}
