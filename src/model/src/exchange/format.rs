//! Defines what a format for models can do: how it is named, what it carries, and its functions for export, import and
//! proof.

use super::formats::MODEL_FORMATS;
use super::import::{ImportError, ImportedModel};
use super::names::NameSource;
use super::support::{self, PartSupport};
use super::upload::Upload;
use super::verify::served::ServedModel;
use super::{TREES, onnx};
use crate::model::{Model, ModelFeature};
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
    /// Functions that export models. `None` if the format can only be imported.
    pub export: Option<ModelExport>,
    /// Functions that import models. `None` if the format can only be exported.
    pub import: Option<ModelImport>,
}

/// Functions that export models in a format.
pub struct ModelExport {
    /// The kinds of models within the format. The first that supports a model is the default.
    pub kinds: &'static [ModelKind],
    /// The versions of the format that can be selected. The first is the default. Empty if there is no choice.
    pub opsets: &'static [u32],
    /// Exports a model. The kind must support all parts of the model.
    pub(super) write: fn(&Model, &ExportOptions) -> ExportedModel,
    /// Checks whether a file in this format was written by planetree.
    pub is_ours: fn(&[u8]) -> bool,
    /// Returns the kind of model in a file.
    pub(super) kind_of: fn(&[u8]) -> &'static str,
    /// Reads a file as the program does that will serve the model.
    pub(super) served: fn(&[u8], &[ModelFeature]) -> Result<ServedModel, String>,
    /// Whether files have the categories of the features. If not, a note says that the target needs their codes.
    pub(super) has_categories: bool,
    /// Returns the commands that upload a file to a server.
    pub(super) upload: Option<fn(&Upload<'_>) -> String>,
}

/// A kind of model within a format.
pub struct ModelKind {
    /// Name on the command line.
    pub name: &'static str,
    /// The parts of a model that the kind supports.
    pub parts: PartSupport,
}

/// What the user asks of an export.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// Name of the kind within the format. `None` selects the first kind that supports the model.
    pub kind: Option<String>,
    /// Version of the format. `None` selects the default.
    pub opset: Option<u32>,
    /// Name of the model, for formats that contain it.
    pub name: String,
}

/// An [`ExportRequest`] with a kind and a version that the format has.
pub(super) struct ExportOptions {
    pub kind: &'static str,
    pub opset: Option<u32>,
    pub name: String,
}

/// Functions that import models in a format.
pub struct ModelImport {
    /// Checks whether a file looks like this format.
    pub is_likely: fn(&[u8]) -> bool,
    /// Reads a model from the content of a file. The second argument determines the feature names.
    pub read: fn(&[u8], &NameSource) -> Result<ImportedModel, ImportError>,
}

impl ModelFormat {
    /// Finds a format by name.
    pub fn named(name: &str) -> Option<&'static ModelFormat> {
        MODEL_FORMATS.iter().find(|format| format.name == name)
    }

    /// Returns the functions that export models, or an error if the format can only be imported.
    pub(super) fn exporter(&self) -> Result<&ModelExport> {
        self.export.as_ref().ok_or_else(|| {
            Error::usage(
                format_args!("models cannot be exported in the format {}", self.name),
                "see `planetree export --help` for the formats",
            )
        })
    }

    /// Exports a model. If the format does not support a part of the model, returns an error that names the part.
    pub fn export(&self, model: &Model, request: &ExportRequest) -> Result<ExportedModel> {
        let exporter = self.exporter()?;
        model.check_complete(&model.origin)?;
        if let Some(opset) = request.opset.filter(|opset| !exporter.opsets.contains(opset)) {
            let known: Vec<String> = exporter.opsets.iter().map(u32::to_string).collect();
            return Err(Error::usage(
                format_args!("--opset {opset} does not apply to the format {}", self.name),
                match known.is_empty() {
                    true => "remove --opset".to_owned(),
                    false => format!("use --opset {}", known.join(" or ")),
                },
            ));
        }
        let kind = match &request.kind {
            None => {
                let supports = |kind: &&ModelKind| support::problem_in(model, kind.parts).is_none();
                // If no kind supports the model, the error is about the kind that comes closest.
                let is_linear = model.parts.iter().all(|part| part.family.linear().is_some());
                let closest = |kind: &&ModelKind| (kind.parts == PartSupport::LinearSums) == is_linear;
                let mut kinds = exporter.kinds.iter();
                let found = kinds.clone().find(supports).or_else(|| kinds.find(closest));
                found.unwrap_or(&exporter.kinds[0])
            }
            Some(name) => exporter.kinds.iter().find(|kind| kind.name == name).ok_or_else(|| {
                let known: Vec<&str> = exporter.kinds.iter().map(|kind| kind.name).collect();
                Error::usage(
                    format_args!("the format {} has no kind {name:?}", self.name),
                    format!("the kinds are {}", known.join(", ")),
                )
            })?,
        };
        if let Some((label, problem, remedy)) = support::problem_in(model, kind.parts) {
            let problem = format!("{label} {problem}; {} cannot express this", self.noun);
            return Err(Error::place(&model.origin, problem, remedy));
        }
        if let Some(coupling) = model.coupling().filter(|_| kind.parts != PartSupport::AllTrees) {
            return Err(Error::place(
                &model.origin,
                format_args!("{coupling}; {} cannot express this", self.noun),
                "export with --format json, or export one of the models it was made of",
            ));
        }
        if kind.name == onnx::DOUBLE && request.opset.is_some_and(|opset| opset < onnx::OPSETS[0]) {
            return Err(Error::usage(
                format_args!("--opset {} has 32-bit floats only", request.opset.unwrap_or_default()),
                "remove --kind double, or use --opset 5",
            ));
        }
        let options = ExportOptions { kind: kind.name, opset: request.opset, name: request.name.clone() };
        let mut exported = (exporter.write)(model, &options);
        if !exporter.has_categories {
            exported.notes.extend(codes_note(model));
        }
        Ok(exported)
    }

    /// Returns the kind of model in an exported file.
    pub fn kind_of(&self, bytes: &[u8]) -> &'static str {
        self.export.as_ref().map_or(TREES, |export| (export.kind_of)(bytes))
    }

    /// Returns the commands that upload an exported file to a server, or an error if files of this format are not
    /// uploaded.
    pub fn upload_commands(&self, upload: &Upload<'_>) -> Result<String> {
        match self.exporter()?.upload {
            Some(commands) => Ok(commands(upload)),
            None => Err(Error::usage(
                format_args!("--curl: there is no server to upload the format {} to", self.name),
                "remove --curl, or use solr, elasticsearch-ltr, opensearch-ltr or elastic",
            )),
        }
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
        // Binary formats have no known extension.
        if !self.files.is_empty() {
            formats.of(location)?;
        }
        let exporters = || MODEL_FORMATS.iter().filter_map(|format| format.export.as_ref());
        let is_export = move |bytes: &[u8]| exporters().any(|export| (export.is_ours)(bytes));
        let guard: Guard = Arc::new(move |location| match location.read_all()? {
            Some(bytes) if !is_export(&bytes) => Err(foreign(location)),
            _ => Ok(()),
        });
        FileOutput::guarded(location, guard)
    }
}

/// Returns the note for formats without categories. `None` if no feature is categorical.
fn codes_note(model: &Model) -> Option<String> {
    let categorical = model.features.iter().filter(|feature| !feature.words.is_empty());
    let names: Vec<&str> = categorical.map(|feature| feature.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "categorical features: {}; the file has no categories, so their values must be codes: the index of the category \
             in the feature's list of `planetree describe --json`",
            names.join(", ")
        )
    })
}
