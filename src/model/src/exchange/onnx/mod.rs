//! ONNX files with one tree ensemble: the operator `TreeEnsemble` of `ai.onnx.ml` 5, or `TreeEnsembleRegressor` of
//! versions 1 to 3. Missing values are NaN. The input is a matrix with one column per feature, in the order of the model.

mod graph;
mod proto;
mod read;
mod serve;
mod write;

pub(super) use read::{import, is_likely};
pub(super) use serve::{kind, served};
pub(super) use write::{export, is_ours};

/// Name of the kind with 32-bit floats.
pub(super) const FLOAT: &str = "float";
/// Name of the kind with 64-bit floats.
pub(super) const DOUBLE: &str = "double";
/// The versions of `ai.onnx.ml` that can be written. The first is the default.
pub(super) const OPSETS: [u32; 2] = [5, 3];

/// Domain of the tree operators.
const DOMAIN: &str = "ai.onnx.ml";
/// The operator of version 5.
const ENSEMBLE: &str = "TreeEnsemble";
/// The operator of earlier versions.
const REGRESSOR: &str = "TreeEnsembleRegressor";

/// Types of tensor elements.
const TYPE_FLOAT: i64 = 1;
const TYPE_UINT8: i64 = 2;
const TYPE_DOUBLE: i64 = 11;
