//! Errors in inputs, with their places and remedies.

use super::chunk::{ChunkError, MAX_LINE};
use super::decode::batch::TableFault;
use super::decompress::InputCompression;
use super::encoding::{only_carriage_returns, wrong_encoding};
use super::input::Input;
use crate::rows::fault::{Fault, FaultKind};
use planetree_base::error::{Error, InputError, Position};

/// Returns the error for an input that differs from the first one.
pub(super) fn input_mismatch(input: &Input, first: &Input, problem: &str) -> Error {
    Error::place(
        &input.name,
        format_args!("{problem} {}", first.name),
        "convert inputs with different columns or formats separately",
    )
}

/// Converts a fault in a Parquet table to a user error.
pub(super) fn table_error(name: &str, names: &[String], first_row: u64, fault: TableFault) -> Error {
    let column_name = |column: usize| names[column].clone();
    match fault {
        TableFault::Column { column, problem } => Error::place(
            format_args!("{name}: column {}", column_name(column)),
            problem,
            "pass --ignore-columns NAME to skip the column, or --categorical NAME if its values are categories",
        ),
        TableFault::Cell { row, column, kind, found } => Error::place(
            format_args!("{name}: row {}, column {}", first_row + row as u64, column_name(column)),
            format_args!("found {found}, expected {}", kind.entry().expected),
            kind.entry().remedy,
        ),
    }
}

/// Returns the error for an input that cannot be split into lines.
pub(super) fn chunk_error(input: &Input, compression: InputCompression, error: ChunkError) -> Error {
    let at = |line: u64| Position { file: input.name.clone(), line, column: 1 };
    match error {
        ChunkError::Io(error, lines) => read_error(input, compression, error, lines),
        ChunkError::LineTooLong(line) => Error::Input(Box::new(InputError {
            at: at(line),
            problem: format!("found a line of more than {} MiB, expected shorter lines", MAX_LINE >> 20),
            remedy: "check that this is a text file with line breaks".to_owned(),
        })),
        ChunkError::CarriageReturns => only_carriage_returns(&input.name),
        ChunkError::Encoding(encoding) => wrong_encoding(&input.name, encoding),
        ChunkError::QuoteOpen(line) => {
            Fault { kind: FaultKind::QuoteOpen, line, column: 1, found: "the end of the file".to_owned() }
                .in_file(&input.name)
        }
    }
}

/// Returns the error for a failed read of an input. The cause may be the operating system, the object store or the
/// decompressor. `lines` is the number of lines read before.
pub(super) fn read_error(
    input: &Input,
    compression: InputCompression,
    error: std::io::Error,
    lines: u64,
) -> Error {
    if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        // A reader has wrapped an error of planetree, so return that error.
        if let Some(Ok(error)) = error.into_inner().map(|inner| inner.downcast::<Error>()) {
            return *error;
        }
        return Error::place(
            &input.name,
            "reading the file failed for an unknown reason",
            "check that the file is accessible, then run the command again",
        );
    }
    if compression == InputCompression::Plain || error.raw_os_error().is_some() {
        return Error::io(&input.name, "read", error);
    }
    let problem = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            format!("{} data truncated after {lines} lines", compression.name())
        }
        _ => format!("corrupt {} data after {lines} lines: {error}", compression.name()),
    };
    Error::place(&input.name, problem, "copy or download the file again")
}
