//! Defines what a check reports.

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VerifyReport {
    /// Name of the format.
    pub format: &'static str,
    /// The kind of model within the format.
    pub kind: &'static str,
    /// Number of trees in the file, without that of the base score.
    pub trees: usize,
    /// The base score, if the file has it as a tree of one leaf.
    pub base_leaf: Option<f64>,
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
    /// The largest difference of a tree or a score over all rows that can be compared and have finite scores, mismatches
    /// included. For a linear function it is relative to the sum of the absolute values of the row's terms.
    pub largest_difference: f64,
    /// Whether the largest difference is relative.
    pub is_relative: bool,
    /// Number of documents of the dataset whose rank differs.
    pub changed_ranks: u64,
    /// What was subtracted from planetree's scores before the comparison, because the format has no constant.
    pub constant: f64,
    /// The first row that is a mismatch.
    pub first: Option<RowDifference>,
}

impl VerifyReport {
    /// Returns the largest difference, what it is relative to, and the arithmetic of the program.
    pub fn difference_text(&self) -> String {
        let of = if self.is_relative { " of the sum of a row's absolute terms" } else { "" };
        format!("{:.1e}{of} ({})", self.largest_difference, self.arithmetic)
    }
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
