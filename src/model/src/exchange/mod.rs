//! Models from and for other programs.
//!
//! ```text
//! model ──binary──► two branches a split ──► LightGBM's text, XGBoost's JSON
//! model ◄──assemble── nodes in their order ◄──┘
//! ```
//!
//! Each format is a file and a line in [`FORMATS`]. A writer says what it cannot express, a reader what
//! it does not understand; whoever asked decides whether that is good enough. `binary.rs` is what the
//! writers share, `assemble.rs` what the readers share, `names.rs` how features are called on either side.
//!
//! Scores are meant to stay the same. A value that is missing goes, at any split, where a model's fill would
//! go, so that fills become directions and nothing is lost; a branch of its own for missing values becomes a
//! second split on the same threshold.

mod assemble;
mod binary;
mod json;
mod lightgbm;
mod names;
mod xgboost;

pub use names::FeatureNames;

use crate::model::Model;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileFormat, FileOutput, Guard, Location, OutputFormats, foreign};
use std::sync::Arc;

/// A model written for others.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The file's content.
    pub text: String,
    /// What may surprise, though scores are the same.
    pub notes: Vec<String>,
    /// What the format cannot express: scores are others where it matters.
    pub losses: Vec<String>,
}

/// A model read from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The model.
    pub model: Model,
    /// What may surprise, though scores are the same.
    pub notes: Vec<String>,
    /// What planetree's models cannot express: scores are others where it matters.
    pub losses: Vec<String>,
}

/// Why a file is not the model that it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault { problem: problem.into(), remedy: remedy.into() }
    }
}

/// Whether a file that is no JSON would be some if it went on: what begins with a brace ends with one.
fn ends_early(error: &serde_json::Error, bytes: &[u8]) -> bool {
    error.is_eof() || (bytes.trim_ascii_start().starts_with(b"{") && !bytes.trim_ascii_end().ends_with(b"}"))
}

/// A format of models.
pub struct Format {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// A model in it, as a noun in a sentence.
    pub noun: &'static str,
    /// The formats of files that it may be called by; the first is its own.
    pub files: &'static [FileFormat],
    /// Writes a model.
    pub export: fn(&Model) -> Exported,
    /// Whether a file is one that planetree exported.
    pub is_ours: fn(&[u8]) -> bool,
    /// Whether a file looks like one.
    pub is_likely: fn(&[u8]) -> bool,
    /// Reads a model.
    pub import: fn(&[u8], &FeatureNames) -> Result<Imported, Fault>,
}

/// All formats.
pub static FORMATS: [Format; 3] = [
    Format {
        name: "lightgbm",
        description: "LightGBM's text, as its save_model writes it",
        noun: "a LightGBM model",
        files: &[FileFormat::Text],
        export: lightgbm::export,
        is_ours: lightgbm::is_ours,
        is_likely: lightgbm::is_likely,
        import: lightgbm::import,
    },
    Format {
        name: "xgboost",
        description: "XGBoost's JSON, as its save_model writes it",
        noun: "an XGBoost model",
        files: &[FileFormat::Json, FileFormat::Text],
        export: xgboost::export,
        is_ours: xgboost::is_ours,
        is_likely: xgboost::is_likely,
        import: xgboost::import,
    },
    Format {
        name: "json",
        description: "all that a model of planetree has, as JSON",
        noun: "a model as JSON",
        files: &[FileFormat::Json, FileFormat::Text],
        export: json::export,
        is_ours: json::is_likely,
        is_likely: json::is_likely,
        import: json::import,
    },
];

impl Format {
    /// The format of a name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Prepares to write a file of this format, in the place of an earlier export at most.
    pub fn output(&'static self, location: &Location) -> Result<FileOutput> {
        let formats = OutputFormats {
            what: self.noun,
            takes: self.files,
            takes_unknown: true,
            takes_compression: false,
        };
        formats.of(location)?;
        let is_export = |bytes: &[u8]| FORMATS.iter().any(|format| (format.is_ours)(bytes));
        let guard: Guard = Arc::new(move |location| match location.read_all()? {
            Some(bytes) if !is_export(&bytes) => Err(foreign(location)),
            _ => Ok(()),
        });
        FileOutput::guarded(location, guard)
    }
}

/// Reads a model of another program; without a format, by the look of the file.
pub fn import(location: &Location, format: Option<&Format>, names: &FeatureNames) -> Result<Imported> {
    let bytes = location.read_all()?.ok_or_else(|| location.absent())?;
    let likely = FORMATS.iter().find(|format| (format.is_likely)(&bytes));
    let failed = |fault: Fault| Error::place(location, fault.problem, fault.remedy);
    let Some(format) = format.or(likely) else {
        return Err(failed(unknown(&bytes)));
    };
    let imported = (format.import)(&bytes, names).map_err(failed)?;
    match imported.model.fault() {
        None => Ok(imported),
        Some(fault) => Err(failed(Fault::new(
            format!("not a valid model: {fault}"),
            "save the model again, or ask who made this file",
        ))),
    }
}

/// What to say of a file that is of no format.
fn unknown(bytes: &[u8]) -> Fault {
    if bytes.is_empty() {
        return Fault::new("the file is empty", "save the model again");
    }
    if bytes.starts_with(b"PAR1") {
        return Fault::new(
            "this is a Parquet file, perhaps a model of planetree already",
            "`planetree describe` says what is in it",
        );
    }
    if let Some(fault) = xgboost::binary_fault(bytes) {
        return fault;
    }
    let names: Vec<String> =
        FORMATS.iter().map(|format| format!("{} ({})", format.name, format.description)).collect();
    Fault::new("not a model of any format that planetree reads", format!("name one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests;
