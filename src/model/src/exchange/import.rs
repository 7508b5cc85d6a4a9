//! Reads models from the files of other programs, whatever their format.

use super::format::ModelFormat;
use super::formats::MODEL_FORMATS;
use super::frame::FrameCategories;
use super::names::NameSource;
use super::xgboost;
use crate::model::{Model, ModelFeature, Origin, Part};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;

/// A model read from the file of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedModel {
    /// The imported model.
    pub model: Model,
    /// Notes for the user about differences that do not affect scores.
    pub notes: Vec<String>,
    /// Messages about everything that planetree's models cannot express. Each loss changes the scores of some rows.
    pub losses: Vec<String>,
    /// Categories of features that the file does not name.
    pub(super) frame: Option<FrameCategories>,
}

/// The reason why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// What is wrong with the file.
    pub problem: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl ImportError {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        ImportError { problem: problem.into(), remedy: remedy.into() }
    }

    /// Creates the error for a file that ends too early.
    pub(super) fn truncated(problem: impl std::fmt::Display) -> Self {
        Self::new(format!("truncated: {problem}"), "copy the whole file, or save the model again")
    }

    /// Prefixes the problem with the number of a tree.
    pub(super) fn in_tree(self, number: usize) -> Self {
        ImportError { problem: format!("tree {number}: {}", self.problem), ..self }
    }
}

/// Reads a model from another program's file. If `format` is `None`, the format is detected from the content of the
/// file.
pub fn import(
    location: &Location,
    format: Option<&ModelFormat>,
    names: &NameSource,
) -> Result<ImportedModel> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let likely = MODEL_FORMATS.iter().find(|format| format.is_likely(&bytes));
    let failed = |fault: ImportError| Error::place(location, fault.problem, fault.remedy);
    let Some(format) = format.or(likely) else {
        return Err(failed(unknown(&bytes)));
    };
    let Some(import) = &format.import else {
        let problem = format!("models in the format {} cannot be imported", format.name);
        return Err(failed(ImportError::new(problem, "use a file in another format")));
    };
    let imported = (import.read)(&bytes, names).map_err(failed)?;
    match imported.model.fault() {
        None => Ok(imported),
        Some(fault) => Err(failed(ImportError::new(
            format!("not a valid model: {fault}"),
            "save the model again, or check the program that wrote this file",
        ))),
    }
}

/// Creates a model from an imported part. The list of training datasets is empty, because files of other programs do not
/// contain it.
pub(super) fn imported_part(
    part: Part,
    features: Vec<ModelFeature>,
    rounds: u32,
    configuration: &str,
) -> Model {
    Model {
        intercept: 0.0,
        parts: vec![part],
        groups: Vec::new(),
        features,
        configuration: configuration.to_owned(),
        data: Vec::new(),
        rounds,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns the error for a file whose format was not detected.
pub(super) fn unknown(bytes: &[u8]) -> ImportError {
    if bytes.is_empty() {
        return ImportError::new("the file is empty", "save the model again");
    }
    if bytes.starts_with(b"PAR1") {
        return ImportError::new(
            "this is a Parquet file; if it is a planetree model, it needs no import",
            "run `planetree describe` to see its contents",
        );
    }
    if let Some(fault) = xgboost::binary_format_error(bytes) {
        return fault;
    }
    let importable = MODEL_FORMATS.iter().filter(|format| format.import.is_some());
    let names: Vec<String> =
        importable.map(|format| format!("{} ({})", format.name, format.description)).collect();
    ImportError::new(
        "not a model in a supported format",
        format!("the supported formats are {}", names.join(", ")),
    )
}

/// Returns whether invalid JSON is probably truncated. This is assumed if the parser reached the end, or if a file that
/// starts with a brace does not end with one.
pub(super) fn is_truncated(error: &serde_json::Error, bytes: &[u8]) -> bool {
    error.is_eof() || (bytes.trim_ascii_start().starts_with(b"{") && !bytes.trim_ascii_end().ends_with(b"}"))
}
