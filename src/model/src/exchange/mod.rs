//! Imports and exports models in the formats of other programs.
//!
//! ```text
//! model ──prepare──► features and scores of the target ──fold──► one ensemble ──binary──► binary trees ──► a file
//!   │                                                                                                        │
//!   └──────────────── verify: planetree's scores ══ scores by the target's arithmetic ◄──served── its reader ┘
//! model ◄──assemble── nodes in any order ◄── a file
//! ```
//!
//! Each format has a module of its own and an entry in [`MODEL_FORMATS`]. Writers and readers report a *loss* for
//! everything that they cannot express, and the caller decides whether to accept the losses. A format declares which
//! parts of a model it supports ([`PartSupport`]). Exporting a model with any other part is an error that names the
//! part. The writers share `portable.rs` (which uses `fold.rs` and `binary.rs`) and `nested.rs`, the readers share
//! `assemble.rs`, `json_text.rs` and `markup.rs`, and both use `names.rs` for feature names. Every export can be read
//! again as its target reads it, and `verify/` compares the scores.
//!
//! Scores are preserved up to rounding unless a loss is reported. If a feature has a fill value, every exported split
//! sends missing values to the branch that the fill value would take, so the fill value itself is not needed. A
//! separate branch for missing values becomes a second split on the same threshold.

mod assemble;
mod base64;
mod binary;
mod catboost;
mod elastic;
mod feature_index;
mod fold;
mod json;
mod json_text;
mod lightgbm;
mod ltr_plugin;
mod markup;
mod names;
mod nested;
mod onnx;
mod pmml;
mod portable;
mod prepare;
mod ranklib;
mod solr;
mod support;
mod treelite;
mod upload;
mod verify;
mod vespa;
mod xgboost;

pub use names::NameSource;
pub use prepare::{PreparedModel, TargetFeatures};
pub use support::PartSupport;
pub use upload::Upload;
pub use verify::{RowDifference, VerifyReport};

use crate::model::{Model, ModelFeature, Origin, Part};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileFormat, FileOutput, Guard, Location, OutputFormats, foreign};
use std::sync::Arc;
use verify::served::ServedModel;

/// Name of the kind of model that consists of trees.
const TREES: &str = "trees";
/// Name of the kind of model that consists of weights.
const LINEAR: &str = "linear";

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
    write: fn(&Model, &ExportOptions) -> ExportedModel,
    /// Checks whether a file in this format was written by planetree.
    pub is_ours: fn(&[u8]) -> bool,
    /// Returns the kind of model in a file.
    kind_of: fn(&[u8]) -> &'static str,
    /// Reads a file as the program does that will serve the model.
    served: fn(&[u8], &[ModelFeature]) -> Result<ServedModel, String>,
    /// Returns the commands that upload a file to a server.
    upload: Option<fn(&Upload<'_>) -> String>,
}

/// A kind of model within a format.
pub struct ModelKind {
    /// Name on the command line.
    pub name: &'static str,
    /// The parts of a model that the kind supports.
    pub parts: PartSupport,
}

const fn kind(name: &'static str, parts: PartSupport) -> ModelKind {
    ModelKind { name, parts }
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
struct ExportOptions {
    kind: &'static str,
    opset: Option<u32>,
    name: String,
}

/// Functions that import models in a format.
pub struct ModelImport {
    /// Checks whether a file looks like this format.
    pub is_likely: fn(&[u8]) -> bool,
    /// Reads a model from the content of a file. The second argument determines the feature names.
    pub read: fn(&[u8], &NameSource) -> Result<ImportedModel, ImportError>,
}

/// The kinds of a format that has trees only.
const TREE_KINDS: &[ModelKind] = &[kind(TREES, PartSupport::TreeSums)];
/// The kinds of the learning-to-rank plugins.
const PLUGIN_KINDS: &[ModelKind] = &[
    kind(ltr_plugin::DUMP, PartSupport::TreeSums),
    kind(ltr_plugin::RAW, PartSupport::TreeSums),
    kind(ltr_plugin::RANKLIB, PartSupport::ZeroMissingTreeSums),
    kind(LINEAR, PartSupport::LinearSums),
];
/// The kinds of formats with a choice of precision.
const PRECISIONS: &[ModelKind] =
    &[kind(onnx::FLOAT, PartSupport::TreeSums), kind(onnx::DOUBLE, PartSupport::TreeSums)];

/// The learning-to-rank plugins of Elasticsearch and OpenSearch share the format.
const fn plugin(name: &'static str, description: &'static str, noun: &'static str) -> ModelFormat {
    ModelFormat {
        name,
        description,
        noun,
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: PLUGIN_KINDS,
            opsets: &[],
            write: ltr_plugin::export,
            is_ours: ltr_plugin::is_ours,
            kind_of: ltr_plugin::kind,
            served: ltr_plugin::served,
            upload: Some(upload::plugin),
        }),
        import: None,
    }
}

/// All formats for the import and export of models.
pub static MODEL_FORMATS: [ModelFormat; 13] = [
    ModelFormat {
        name: "lightgbm",
        description: "LightGBM's text format, as written by its save_model",
        noun: "a LightGBM model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: lightgbm::export,
            is_ours: lightgbm::is_ours,
            kind_of: |_| TREES,
            served: lightgbm::served,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: lightgbm::is_likely, read: lightgbm::import }),
    },
    ModelFormat {
        name: "xgboost",
        description: "XGBoost's JSON format, as written by its save_model",
        noun: "an XGBoost model",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: xgboost::export,
            is_ours: xgboost::is_ours,
            kind_of: |_| TREES,
            served: xgboost::served,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: xgboost::is_likely, read: xgboost::import }),
    },
    ModelFormat {
        name: "json",
        description: "the complete model as JSON",
        noun: "a model as JSON",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::AllTrees)],
            opsets: &[],
            write: json::export,
            is_ours: json::is_likely,
            kind_of: |_| TREES,
            served: json::served,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: json::is_likely, read: json::import }),
    },
    ModelFormat {
        name: "ranklib",
        description: "RankLib's text format: trees or weights",
        noun: "a RankLib model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::ZeroMissingTreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: ranklib::export,
            is_ours: ranklib::is_ours,
            kind_of: ranklib::kind,
            served: ranklib::served,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: ranklib::is_likely, read: ranklib::import }),
    },
    ModelFormat {
        name: "solr",
        description: "Solr's MultipleAdditiveTreesModel or LinearModel",
        noun: "a model of Solr",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::TreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: solr::export,
            is_ours: solr::is_ours,
            kind_of: solr::kind,
            served: solr::served,
            upload: Some(upload::solr),
        }),
        import: None,
    },
    plugin(
        "elasticsearch-ltr",
        "the learning-to-rank plugin of Elasticsearch",
        "a model of the learning-to-rank plugin",
    ),
    plugin(
        "opensearch-ltr",
        "the learning-to-rank plugin of OpenSearch",
        "a model of the learning-to-rank plugin",
    ),
    ModelFormat {
        name: "elastic",
        description: "Elasticsearch's own learning to rank: a trained model",
        noun: "a trained model of Elasticsearch",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: TREE_KINDS,
            opsets: &[],
            write: elastic::export,
            is_ours: elastic::is_ours,
            kind_of: |_| TREES,
            served: elastic::served,
            upload: Some(upload::elastic),
        }),
        import: None,
    },
    ModelFormat {
        name: "vespa",
        description: "the files of Vespa's lightgbm() and xgboost()",
        noun: "a model of Vespa",
        files: &[FileFormat::Json, FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[
                kind(vespa::LIGHTGBM, PartSupport::TreeSums),
                kind(vespa::XGBOOST, PartSupport::TreeSums),
            ],
            opsets: &[],
            write: vespa::export,
            is_ours: vespa::is_ours,
            kind_of: vespa::kind,
            served: vespa::served,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "onnx",
        description: "ONNX: TreeEnsemble, or TreeEnsembleRegressor with --opset 3",
        noun: "an ONNX model",
        files: &[],
        export: Some(ModelExport {
            kinds: PRECISIONS,
            opsets: &onnx::OPSETS,
            write: onnx::export,
            is_ours: onnx::is_ours,
            kind_of: onnx::kind,
            served: onnx::served,
            upload: None,
        }),
        import: Some(ModelImport { is_likely: onnx::is_likely, read: onnx::import }),
    },
    ModelFormat {
        name: "treelite",
        description: "Treelite's byte stream of version 4",
        noun: "a Treelite model",
        files: &[],
        export: Some(ModelExport {
            kinds: PRECISIONS,
            opsets: &[],
            write: treelite::export,
            is_ours: treelite::is_ours,
            kind_of: treelite::kind,
            served: treelite::served,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "pmml",
        description: "PMML 4.4: trees or weights",
        noun: "a PMML model",
        files: &[FileFormat::Text],
        export: Some(ModelExport {
            kinds: &[kind(TREES, PartSupport::TreeSums), kind(LINEAR, PartSupport::LinearSums)],
            opsets: &[],
            write: pmml::export,
            is_ours: pmml::is_ours,
            kind_of: pmml::kind,
            served: pmml::served,
            upload: None,
        }),
        import: None,
    },
    ModelFormat {
        name: "catboost",
        description: "CatBoost's JSON format, as written by its save_model",
        noun: "a CatBoost model",
        files: &[],
        export: None,
        import: Some(ModelImport { is_likely: catboost::is_likely, read: catboost::import }),
    },
];

impl ModelFormat {
    /// Finds a format by name.
    pub fn named(name: &str) -> Option<&'static ModelFormat> {
        MODEL_FORMATS.iter().find(|format| format.name == name)
    }

    /// Returns the functions that export models, or an error if the format can only be imported.
    fn exporter(&self) -> Result<&ModelExport> {
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
        Ok((exporter.write)(model, &options))
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
fn imported_part(part: Part, features: Vec<ModelFeature>, rounds: u32, configuration: &str) -> Model {
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
    let importable = MODEL_FORMATS.iter().filter(|format| format.import.is_some());
    let names: Vec<String> =
        importable.map(|format| format!("{} ({})", format.name, format.description)).collect();
    ImportError::new(
        "not a model in a supported format",
        format!("the supported formats are {}", names.join(", ")),
    )
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
