//! Converts errors to Python exceptions, which have the place, the problem and the remedy as attributes.

use planetree_base::error::Error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Returns the exception for an error. The classes are defined in `_errors.py`, which names options as in Python.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let (class, place, problem) = match inner(error) {
        Error::Input(input) => ("DataError", Some(input.at.to_string()), input.problem.clone()),
        Error::Place { place, problem, .. } => ("DataError", Some(place.clone()), problem.clone()),
        Error::Usage { problem, .. } => ("UsageError", None, problem.clone()),
        Error::Bug { at, problem, .. } => ("InternalError", Some(at.clone()), problem.clone()),
        Error::QualityGate { problem } => ("QualityError", None, problem.clone()),
        Error::Interrupted | Error::Stopped { .. } | Error::Untrainable(_) => {
            return PyKeyboardInterrupt::new_err(error.to_string());
        }
    };
    create(py, class, place.as_deref(), &problem, error.remedy()).unwrap_or_else(|failure| failure)
}

/// Returns the error that explains why nothing can be trained, or the error itself.
fn inner(error: &Error) -> &Error {
    match error {
        Error::Untrainable(inner) => self::inner(inner),
        other => other,
    }
}

fn create(
    py: Python<'_>,
    class: &str,
    place: Option<&str>,
    problem: &str,
    remedy: Option<&str>,
) -> PyResult<PyErr> {
    let errors = py.import("planetree._errors")?;
    Ok(PyErr::from_value(errors.call_method1("from_command", (class, problem, place, remedy))?))
}
