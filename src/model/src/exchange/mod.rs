//! Imports and exports models in the formats of other programs.
//!
//! ```text
//! model ──prepare──► features and scores of the target ──fold──► one ensemble ──binary──► binary trees ──► a file
//!   │                                                                                                        │
//!   └──────────────── verify: planetree's scores ══ scores by the target's arithmetic ◄──served── its reader ┘
//! model ◄──assemble── nodes in any order ◄── a file
//! ```
//!
//! Each format has a module of its own and an entry in [`MODEL_FORMATS`] (`formats.rs`). Writers and readers report a *loss* for
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
mod categories;
mod elastic;
mod feature_index;
mod fold;
mod format;
mod formats;
mod frame;
mod import;
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

pub use format::{ExportRequest, ExportedModel, ModelExport, ModelFormat, ModelImport, ModelKind};
pub use formats::MODEL_FORMATS;
pub use import::{ImportError, ImportedModel, import};
pub use names::NameSource;
pub use prepare::{PreparedModel, TargetFeatures};
pub use support::PartSupport;
pub use upload::Upload;
pub use verify::{RowDifference, VerifyReport};

use format::ExportOptions;
use import::{imported_part, is_truncated};

/// Name of the kind of model that consists of trees.
const TREES: &str = "trees";
/// Name of the kind of model that consists of weights.
const LINEAR: &str = "linear";

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
