//! Checks that an exported model gives planetree's scores in the arithmetic of the program that will serve it.
//!
//! The file is read as that program reads it (`served.rs`), not as it was meant to be written. Every split of every tree
//! is tried on the rows of `rows.rs`; then whole rows are scored, of these and of a dataset. `values.rs` has planetree's
//! values, and `reason.rs` explains the first row that differs.
//!
//! A row is a *mismatch* if a tree has a value that is not planetree's, rounded to the precision of the program, or if
//! the sum differs by more than the rounding errors of its additions can. Differences below that are the program's
//! arithmetic, not an error of the export. The largest difference of all is reported.
//!
//! Linear functions have no splits. They are tried on rows in which every term counts about equally, so that an error in
//! any weight shows on most of them, and on the same rows with one extreme value.

mod compare;
mod data;
mod reason;
mod report;
mod rows;
pub(super) mod served;
mod values;

pub use report::{RowDifference, VerifyReport};

use super::ModelFormat;
use super::prepare::PreparedModel;
use compare::Comparer;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use std::fmt::Display;

impl ModelFormat {
    /// Checks a file that was exported from a model. `data` are rows to score besides those at the thresholds of the
    /// splits.
    pub fn verify(
        &self,
        prepared: &PreparedModel,
        bytes: &[u8],
        place: impl Display,
        data: Option<&DatasetReader>,
    ) -> Result<VerifyReport> {
        let failed = |problem: String| {
            Error::place(
                &place,
                format_args!("cannot read this as {}: {problem}", self.noun),
                "export the model again, or pass the --format that the file was exported with",
            )
        };
        let served = (self.exporter()?.served)(bytes, &prepared.model.features).map_err(&failed)?;
        let mut comparer = Comparer::new(&prepared.model, &served).map_err(&failed)?;
        comparer.try_splits();
        if let Some(reader) = data {
            data::try_rows(&mut comparer, prepared, reader)?;
        }
        Ok(comparer.report(self.name, self.kind_of(bytes)))
    }
}

#[cfg(test)]
mod tests;
