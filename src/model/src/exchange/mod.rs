//! Imports and exports models in the formats of other programs.
//!
//! ```text
//! model ──fold──► one ensemble ──binary──► binary trees ──► LightGBM's text, XGBoost's JSON
//! model ◄──assemble── nodes in any order ◄──┘
//! ```
//!
//! Each format has a module of its own and an entry in [`MODEL_FORMATS`]. Writers and readers report a *loss* for
//! everything that they cannot express, and the caller decides whether to accept the losses. A format declares which
//! parts of a model it supports ([`PartSupport`]). Exporting a model with any other part is an error that names the
//! part. The writers share `fold.rs` and `binary.rs`, the readers share `assemble.rs`, and both use `names.rs` for
//! feature names.
//!
//! Scores are preserved up to rounding unless a loss is reported. If a feature has a fill value, every exported split
//! sends missing values to the branch that the fill value would take, so the fill value itself is not needed. A
//! separate branch for missing values becomes a second split on the same threshold.

mod assemble;
mod binary;
mod fold;
mod json;
mod lightgbm;
mod names;
mod xgboost;

pub use names::NameSource;

use crate::model::{Combine, Model, ModelFeature, Normalisation, Origin, Part, TreeEnsemble};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileFormat, FileOutput, Guard, Location, OutputFormats, foreign};
use std::sync::Arc;

/// A model in the format of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedModel {
    /// Content of the file to write.
    pub bytes: Vec<u8>,
    /// Notes for the user about differences that do not affect scores.
    pub notes: Vec<String>,
    /// Messages about everything that the format cannot express. Each loss changes the scores of some rows.
    pub losses: Vec<String>,
}

/// A model read from the file of another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedModel {
    /// The imported model.
    pub model: Model,
    /// Notes for the user about differences that do not affect scores.
    pub notes: Vec<String>,
    /// Messages about everything that planetree's models cannot express. Each loss changes the scores of some rows.
    pub losses: Vec<String>,
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
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        ImportError { problem: problem.into(), remedy: remedy.into() }
    }

    /// Prefixes the problem with the number of a tree.
    fn in_tree(self, number: usize) -> Self {
        ImportError { problem: format!("tree {number}: {}", self.problem), ..self }
    }
}

/// Returns whether invalid JSON is probably truncated. This is assumed if the parser reached the end, or if a file that
/// starts with a brace does not end with one.
fn is_truncated(error: &serde_json::Error, bytes: &[u8]) -> bool {
    error.is_eof() || (bytes.trim_ascii_start().starts_with(b"{") && !bytes.trim_ascii_end().ends_with(b"}"))
}

/// A file format for models.
pub struct ModelFormat {
    /// Name of the format on the command line.
    pub name: &'static str,
    /// One-line description.
    pub description: &'static str,
    /// Noun phrase for messages, such as "a LightGBM model".
    pub noun: &'static str,
    /// File types that an export can be written to, identified by the file extension. The first is the usual one.
    pub files: &'static [FileFormat],
    /// The parts of a model that the format supports.
    pub parts: PartSupport,
    /// Exports a model. The format must support all parts of the model.
    write: fn(&Model) -> ExportedModel,
    /// Checks whether a file in this format was written by planetree.
    pub is_ours: fn(&[u8]) -> bool,
    /// Functions that import models. `None` if the format can only be exported.
    pub import: Option<ModelImport>,
}

/// Functions that import models in a format.
pub struct ModelImport {
    /// Checks whether a file looks like this format.
    pub is_likely: fn(&[u8]) -> bool,
    /// Reads a model from the content of a file. The second argument determines the feature names.
    pub read: fn(&[u8], &NameSource) -> Result<ImportedModel, ImportError>,
}

/// The parts of a model that a format supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartSupport {
    /// Any trees, also pairwise models and normalised parts.
    AllTrees,
    /// Sums and means of trees without normalisation. Several such parts are folded into one ensemble.
    TreeSums,
}

impl PartSupport {
    /// Returns why a part is not supported and what to do about it, or `None` if it is supported.
    fn problem(self, part: &Part) -> Option<(String, &'static str)> {
        const REMEDY: &str = "export with --format json, or export a model without this part";
        let Some(ensemble) = part.family.trees() else {
            return Some((
                format!("has no trees (its kind is {})", part.family.kind()),
                "score rows with `planetree predict`, or export a model that consists of trees",
            ));
        };
        if self == PartSupport::AllTrees {
            return None;
        }
        if ensemble.combine == Combine::Wins {
            return Some((
                "is a pairwise model, which compares the documents of a query".to_owned(),
                "export with --format json, or train with another preset, such as rf-point",
            ));
        }
        if part.normalisation != Normalisation::None {
            let name = part.normalisation.name();
            return Some((format!("is normalised over the documents of a query ({name})"), REMEDY));
        }
        None
    }
}

/// All formats for the import and export of models.
pub static MODEL_FORMATS: [ModelFormat; 3] = [
    ModelFormat {
        name: "lightgbm",
        description: "LightGBM's text format, as written by its save_model",
        noun: "a LightGBM model",
        files: &[FileFormat::Text],
        parts: PartSupport::TreeSums,
        write: lightgbm::export,
        is_ours: lightgbm::is_ours,
        import: Some(ModelImport { is_likely: lightgbm::is_likely, read: lightgbm::import }),
    },
    ModelFormat {
        name: "xgboost",
        description: "XGBoost's JSON format, as written by its save_model",
        noun: "an XGBoost model",
        files: &[FileFormat::Json, FileFormat::Text],
        parts: PartSupport::TreeSums,
        write: xgboost::export,
        is_ours: xgboost::is_ours,
        import: Some(ModelImport { is_likely: xgboost::is_likely, read: xgboost::import }),
    },
    ModelFormat {
        name: "json",
        description: "the complete model as JSON",
        noun: "a model as JSON",
        files: &[FileFormat::Json, FileFormat::Text],
        parts: PartSupport::AllTrees,
        write: json::export,
        is_ours: json::is_likely,
        import: Some(ModelImport { is_likely: json::is_likely, read: json::import }),
    },
];

impl ModelFormat {
    /// Finds a format by name.
    pub fn named(name: &str) -> Option<&'static ModelFormat> {
        MODEL_FORMATS.iter().find(|format| format.name == name)
    }

    /// Exports a model. If the format does not support a part of the model, returns an error that names the part.
    pub fn export(&self, model: &Model) -> Result<ExportedModel> {
        for (number, part) in model.parts.iter().enumerate() {
            if let Some((problem, remedy)) = self.parts.problem(part) {
                let label = model.part_label(number);
                let problem = format!("{label} {problem}; {} cannot express this", self.noun);
                return Err(Error::place(&model.origin, problem, remedy));
            }
        }
        Ok((self.write)(model))
    }

    /// Returns whether a file looks like this format and the format can be imported.
    pub fn is_likely(&self, bytes: &[u8]) -> bool {
        self.import.as_ref().is_some_and(|import| (import.is_likely)(bytes))
    }

    /// Opens a file for writing in this format. An existing file is replaced only if planetree exported it.
    pub fn output(&'static self, location: &Location) -> Result<FileOutput> {
        let formats = OutputFormats {
            what: self.noun,
            takes: self.files,
            takes_unknown: true,
            takes_compression: false,
        };
        formats.of(location)?;
        let is_export = |bytes: &[u8]| MODEL_FORMATS.iter().any(|format| (format.is_ours)(bytes));
        let guard: Guard = Arc::new(move |location| match location.read_all()? {
            Some(bytes) if !is_export(&bytes) => Err(foreign(location)),
            _ => Ok(()),
        });
        FileOutput::guarded(location, guard)
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

/// Creates a model from an imported ensemble of trees. The list of training datasets is empty, because files of other
/// programs do not contain it.
fn imported_model(
    ensemble: TreeEnsemble,
    features: Vec<ModelFeature>,
    rounds: u32,
    configuration: &str,
) -> Model {
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(ensemble)],
        features,
        configuration: configuration.to_owned(),
        data: Vec::new(),
        rounds,
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns the error for a file whose format was not detected.
fn unknown(bytes: &[u8]) -> ImportError {
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
    let names: Vec<String> =
        MODEL_FORMATS.iter().map(|format| format!("{} ({})", format.name, format.description)).collect();
    ImportError::new(
        "not a model in a supported format",
        format!("the supported formats are {}", names.join(", ")),
    )
}

#[cfg(test)]
mod tests;
