//! Decides what happens to rows without a label, such as unjudged documents.

use crate::ingest::Ingest;
use crate::rows::{Block, BlockBuilder};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, digest_of};

/// What happens to rows without a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unlabelled {
    /// They stay in the dataset. It can be scored, but not trained on.
    #[default]
    Keep,
    /// They are left out.
    Drop,
    /// They get the label 0.
    Zero,
    /// They are an error.
    Error,
}

impl Unlabelled {
    /// Fails if rows would be dropped of which side files have further values.
    pub(super) fn check_side_files(self, ingest: &Ingest) -> Result<()> {
        let mut sides = ingest.sides().iter().zip(ingest.names());
        let with_files = sides
            .find(|(side, _)| side.queries.is_some() || side.weights.is_some() || side.positions.is_some());
        match with_files {
            Some((_, name)) if self == Unlabelled::Drop => Err(Error::place(
                name,
                "--unlabelled drop does not work with side files (.query, .weight, .position)",
                "use --unlabelled zero, or convert the input and then the dataset with --unlabelled drop",
            )),
            _ => Ok(()),
        }
    }

    /// Fails if all rows would get the label 0 because the input has no column of labels.
    pub(super) fn check_label_column(self, ingest: &Ingest) -> Result<()> {
        if self != Unlabelled::Zero || ingest.has_label_column() {
            return Ok(());
        }
        Err(Error::usage(
            format_args!(
                "{}: no label column found, so --unlabelled zero would give every row the label 0",
                ingest.names().first().map_or("input", String::as_str)
            ),
            "name the column of labels with --label-column; without labels, leave out --unlabelled",
        ))
    }

    /// Drops or labels decoded rows, and returns how many there are.
    pub(super) fn apply(self, rows: &mut BlockBuilder) -> usize {
        match self {
            Unlabelled::Keep | Unlabelled::Error => 0,
            Unlabelled::Drop => rows.drop_unlabelled(),
            Unlabelled::Zero => rows.label_unlabelled(),
        }
    }

    /// Fails if a row without a label is an error. `input` is the name of the input.
    pub(super) fn check(self, block: &Block, input: &str) -> Result<()> {
        if self != Unlabelled::Error {
            return Ok(());
        }
        let Some(row) = block.labels.iter().position(|label| label.is_nan()) else { return Ok(()) };
        let run = block.runs.partition_point(|run| run.first_row as usize <= row).saturating_sub(1);
        let query = match block.runs.is_empty() {
            true => String::new(),
            false => format!("query {}: ", String::from_utf8_lossy(block.run_name(run))),
        };
        Err(Error::place(
            input,
            format_args!("{query}a row has no label (-1 or empty)"),
            "judge it, or choose --unlabelled drop or zero",
        ))
    }

    /// Returns the error for an input of which all rows were dropped.
    pub(super) fn nothing_left(self, input: &str) -> Error {
        Error::place(
            input,
            "no row has a label, so --unlabelled drop leaves none",
            "remove --unlabelled, or name the column of labels with --label-column",
        )
    }

    /// Returns the fingerprint of the input without its missing labels, given that of the input as it is.
    pub(super) fn fingerprint(self, source: Digest) -> Digest {
        match self {
            Unlabelled::Keep | Unlabelled::Error => source,
            Unlabelled::Drop => digest_of(format!("{source} unlabelled dropped").as_bytes()),
            Unlabelled::Zero => digest_of(format!("{source} unlabelled zero").as_bytes()),
        }
    }
}
