//! Defines what a check reports.

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Name of the format.
    pub format: &'static str,
    /// The kind of model within the format.
    pub kind: &'static str,
    /// Number of trees in the file.
    pub trees: usize,
    /// How the program adds up scores.
    pub arithmetic: &'static str,
    /// Number of rows at thresholds that were tried on the tree of the threshold.
    pub split_rows: u64,
    /// Number of such rows that were tried on the whole model.
    pub whole_rows: u64,
    /// Number of rows of the dataset.
    pub data_rows: u64,
    /// Number of rows whose score is not planetree's in the program's arithmetic.
    pub mismatches: u64,
    /// Number of further rows that differ because the program cannot tell their values from others.
    pub blind_rows: u64,
    /// Why the program cannot tell these values from others.
    pub blind_reason: Option<&'static str>,
    /// The largest difference of scores over all rows that are no mismatch.
    pub largest_difference: f64,
    /// Number of documents of the dataset whose rank differs.
    pub changed_ranks: u64,
    /// What was subtracted from planetree's scores before the comparison, because the format has no constant.
    pub constant: f64,
    /// The first row that is a mismatch.
    pub first: Option<RowDifference>,
}

/// A row whose score differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowDifference {
    /// The row: its features that matter, or its number in the dataset.
    pub row: String,
    /// planetree's value.
    pub planetree: f64,
    /// The value at the target.
    pub target: f64,
    /// Why they differ.
    pub reason: String,
}
