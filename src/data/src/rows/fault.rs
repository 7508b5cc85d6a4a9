//! Lists the faults that input lines can have, with their messages and their treatment under `--lenient`.

use planetree_base::error::{Error, InputError, Position};

/// Kinds of faults. They must be in the same order as in [`FAULTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The label is not a number, or the line ends before it.
    LabelMalformed,
    /// The label is `nan`, `NULL` or infinite.
    LabelNotFinite,
    /// The label is negative and not -1.
    LabelNegative,
    /// `qid:` is missing.
    QueryMissing,
    /// The query id is empty.
    QueryEmpty,
    /// A feature has no colon.
    ColonMissing,
    /// The feature index is not a whole number.
    IndexMalformed,
    /// The feature index is 0, but indices start at 1.
    IndexZero,
    /// The feature index exceeds `--max-features`.
    IndexTooLarge,
    /// A line has the same feature index twice.
    IndexRepeated,
    /// The value after the colon is empty.
    ValueEmpty,
    /// The value is not a number.
    ValueMalformed,
    /// The value overflows float32.
    ValueTooLarge,
    /// The value is infinite. It is treated as missing even without `--lenient`, but counted.
    ValueInfinite,
    /// The weight is not a finite number.
    WeightMalformed,
    /// The position is not a whole number.
    PositionMalformed,
    /// The line contains bytes that are not UTF-8 text.
    NotText,
    /// A delimited row has too few or too many fields.
    FieldCount,
    /// A quoted field is not closed.
    QuoteOpen,
    /// A number has a decimal comma in a file with decimal points.
    DecimalComma,
    /// A number has a decimal point in a file with decimal commas.
    DecimalPoint,
    /// A column that was detected as categorical contains a number.
    NumberAmongWords,
}

/// Treatment of a faulty line under `--lenient`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Skip the line.
    SkipLine,
    /// Treat the value as missing.
    Missing,
    /// Treat the row as unlabelled.
    Unlabelled,
    /// If a feature index is repeated in a line, use its last value.
    LastWins,
}

/// The message texts and the treatment of one kind of fault.
pub struct FaultEntry {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Name of the fault in reports and manifests.
    pub name: &'static str,
    /// What was expected, to complete the message "found ..., expected ...".
    pub expected: &'static str,
    /// What the user can do about the fault.
    pub remedy: &'static str,
    /// Treatment under `--lenient`.
    pub repair: Repair,
}

const FIX_OR_LENIENT: &str = "correct the line, or pass --lenient to skip such lines";
const FIX_OR_MISSING: &str =
    "correct the value, write NULL if it is missing, or pass --lenient to treat it as missing";

/// All kinds of faults. To add a kind, add a variant of [`FaultKind`] and an entry here.
pub const FAULTS: [FaultEntry; 22] = [
    entry(
        FaultKind::LabelMalformed,
        "label-malformed",
        "a number as the label",
        FIX_OR_LENIENT,
        Repair::SkipLine,
    ),
    entry(
        FaultKind::LabelNotFinite,
        "label-not-finite",
        "a finite label",
        "write -1 for an unjudged document, or pass --lenient to skip such lines",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::LabelNegative,
        "label-negative",
        "a label of 0 or more, or -1 for an unjudged document",
        "shift the labels to start at 0, or pass --lenient to treat negative labels as unjudged",
        Repair::Unlabelled,
    ),
    entry(
        FaultKind::QueryMissing,
        "query-missing",
        "qid:ID after the label",
        "write lines as `label qid:ID index:value ...`, or put the query sizes next to the file in FILE.query, as LightGBM does",
        Repair::SkipLine,
    ),
    entry(FaultKind::QueryEmpty, "query-empty", "a query id after `qid:`", FIX_OR_LENIENT, Repair::SkipLine),
    entry(FaultKind::ColonMissing, "colon-missing", "index:value", FIX_OR_LENIENT, Repair::SkipLine),
    entry(
        FaultKind::IndexMalformed,
        "index-malformed",
        "a whole number as the feature index",
        FIX_OR_LENIENT,
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexZero,
        "index-zero",
        "a feature index of 1 or more",
        "pass --index-base 0 if the first feature of this file has index 0",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexTooLarge,
        "index-too-large",
        "an index of at most --max-features",
        "raise --max-features, or complete the --names file, if there really are that many features",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexRepeated,
        "index-repeated",
        "each index at most once per line",
        "remove one of the two, or pass --lenient to use the last one",
        Repair::LastWins,
    ),
    entry(FaultKind::ValueEmpty, "value-empty", "a number after the colon", FIX_OR_MISSING, Repair::Missing),
    entry(FaultKind::ValueMalformed, "value-malformed", "a decimal number", FIX_OR_MISSING, Repair::Missing),
    entry(
        FaultKind::ValueTooLarge,
        "value-too-large",
        "a finite number that fits float32 (up to 3.4e38)",
        FIX_OR_MISSING,
        Repair::Missing,
    ),
    entry(FaultKind::ValueInfinite, "value-infinite", "a finite number", FIX_OR_MISSING, Repair::Missing),
    entry(
        FaultKind::WeightMalformed,
        "weight-malformed",
        "a finite number as the weight",
        FIX_OR_LENIENT,
        Repair::SkipLine,
    ),
    entry(
        FaultKind::PositionMalformed,
        "position-malformed",
        "a whole number as the position",
        FIX_OR_LENIENT,
        Repair::SkipLine,
    ),
    entry(
        FaultKind::NotText,
        "not-text",
        "text",
        "check that the file is text, plain or compressed with gzip, bzip2, xz or zstd, or Parquet; decompress other formats first",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::FieldCount,
        "field-count",
        "as many fields as in the header",
        "check the delimiter (--delimiter) and the quotes, or pass --lenient to skip such lines",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::QuoteOpen,
        "quote-open",
        "a closing quote",
        "close the quoted field, or double the quotes inside it",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::DecimalComma,
        "decimal-comma",
        "a decimal number without a comma",
        "pass --decimal-comma if 0,5 means 0.5 in this file; otherwise remove the thousands separators",
        Repair::Missing,
    ),
    entry(
        FaultKind::DecimalPoint,
        "decimal-point",
        "a number with a decimal comma, as in the rest of the file",
        "write all numbers of a file with the same decimal mark and without thousands separators",
        Repair::Missing,
    ),
    entry(
        FaultKind::NumberAmongWords,
        "number-among-words",
        "text, as in the previous lines",
        "pass --categorical COLUMN to treat all values of this column as categories; if it is numeric, correct its text values",
        Repair::Missing,
    ),
];

const fn entry(
    kind: FaultKind,
    name: &'static str,
    expected: &'static str,
    remedy: &'static str,
    repair: Repair,
) -> FaultEntry {
    FaultEntry { kind, name, expected, remedy, repair }
}

impl FaultKind {
    /// Returns the message texts and the treatment of this kind of fault.
    pub fn entry(self) -> &'static FaultEntry {
        &FAULTS[self as usize]
    }
}

/// A fault at a position in an input. It does not contain the name of the file, because decoders do not know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Line number in the input, counted from 1.
    pub line: u64,
    /// Column in bytes, counted from 1.
    pub column: u64,
    /// The faulty text, quoted and shortened for the message.
    pub found: String,
}

impl Fault {
    /// Converts the fault to a user error for the given file.
    pub fn in_file(self, file: &str) -> Error {
        let entry = self.kind.entry();
        Error::Input(Box::new(InputError {
            at: Position { file: file.to_owned(), line: self.line, column: self.column },
            problem: format!("found {}, expected {}", self.found, entry.expected),
            remedy: entry.remedy.to_owned(),
        }))
    }
}

/// Formats a token for messages: quoted, escaped and limited to 40 bytes.
pub(crate) fn quoted_token(token: &[u8]) -> String {
    const MAX_BYTES: usize = 40;
    let token = token.strip_suffix(b"\r").unwrap_or(token);
    if token.is_empty() {
        return "the end of the line".to_owned();
    }
    let head = &token[..token.len().min(MAX_BYTES)];
    let text = String::from_utf8_lossy(head);
    let ellipsis = if token.len() > MAX_BYTES { "..." } else { "" };
    format!("{:?}{ellipsis}", text)
}

/// The number of faults of each kind that were repaired or whose lines were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairCounts {
    counts: [u64; FAULTS.len()],
}

impl RepairCounts {
    /// Counts one fault.
    pub fn add(&mut self, kind: FaultKind) {
        self.counts[kind as usize] += 1;
    }

    /// Adds the counts from another part of the input.
    pub fn merge(&mut self, other: &RepairCounts) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Checks whether any line was skipped.
    pub(crate) fn skipped_lines(&self) -> bool {
        self.by_kind().any(|(entry, _)| entry.repair == Repair::SkipLine)
    }

    /// Returns the total number of faults of all kinds.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the kinds of faults that occurred, with their counts.
    pub(crate) fn by_kind(&self) -> impl Iterator<Item = (&'static FaultEntry, u64)> + '_ {
        FAULTS.iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_table_is_in_the_order_of_the_kinds() {
        for (position, entry) in FAULTS.iter().enumerate() {
            assert_eq!(entry.kind as usize, position, "{}", entry.name);
            assert!(!entry.expected.is_empty() && !entry.remedy.is_empty());
        }
    }

    #[test]
    fn long_or_binary_tokens_are_shortened_and_escaped() {
        assert_eq!(quoted_token(b"abc\r"), "\"abc\"");
        assert_eq!(quoted_token(b""), "the end of the line");
        assert_eq!(quoted_token(&[b'x'; 50]), format!("\"{}\"...", "x".repeat(40)));
        assert_eq!(quoted_token(b"\x00\x01"), "\"\\0\\u{1}\"");
    }
}
