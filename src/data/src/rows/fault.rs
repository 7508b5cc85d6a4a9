//! What can be wrong with a line, what is said about it, and what `--lenient` does instead.

use planetree_base::error::{Error, InputError, Position};

/// The kinds of fault, in the order of [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The line ends before a label.
    LabelMalformed,
    /// The label is `nan`, `NULL` or infinite.
    LabelNotFinite,
    /// A label below zero that is not -1.
    LabelNegative,
    /// No `qid:` where it belongs.
    QueryMissing,
    /// `qid:` with nothing behind it.
    QueryEmpty,
    /// A feature without a colon.
    ColonMissing,
    /// Not a whole number before the colon.
    IndexMalformed,
    /// Index 0 where indices count from 1.
    IndexZero,
    /// An index beyond `--max-features`.
    IndexTooLarge,
    /// The same index twice in a line.
    IndexRepeated,
    /// Nothing behind the colon.
    ValueEmpty,
    /// Not a number behind the colon.
    ValueMalformed,
    /// Beyond float32.
    ValueTooLarge,
    /// `inf`: taken as missing also without `--lenient`, but counted.
    ValueInfinite,
    /// A weight that is not a finite number.
    WeightMalformed,
    /// A position that is not a whole number.
    PositionMalformed,
    /// Bytes that are not text.
    NotText,
    /// A delimited row with too few or too many fields.
    FieldCount,
    /// A quoted field that never ends.
    QuoteOpen,
    /// A number with a comma where numbers have points.
    DecimalComma,
    /// A number with a point where numbers have commas.
    DecimalPoint,
    /// A number in a column that was taken for words.
    NumberAmongWords,
}

/// What `--lenient` does with a line that has the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// The line is left out.
    SkipLine,
    /// The value counts as missing.
    Missing,
    /// The label counts as unlabelled.
    Unlabelled,
    /// The last of the values is taken.
    LastWins,
}

/// One row of [`TABLE`].
pub struct FaultEntry {
    /// The fault.
    pub kind: FaultKind,
    /// Its name in the count of repaired lines.
    pub name: &'static str,
    /// What should have stood there.
    pub expected: &'static str,
    /// What the user can do.
    pub remedy: &'static str,
    /// What `--lenient` does.
    pub repair: Repair,
}

const FIX_OR_LENIENT: &str = "correct the line, or pass --lenient to leave such lines out";
const FIX_OR_MISSING: &str =
    "correct the value, write NULL if it is missing, or pass --lenient to take it as missing";

/// Every fault with its texts; adding a kind is one variant and one row.
pub const TABLE: [FaultEntry; 22] = [
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
        "write -1 for a document that nobody judged, or pass --lenient to leave such lines out",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::LabelNegative,
        "label-negative",
        "a label of 0 or more, or -1 for an unjudged document",
        "shift the labels to start at 0, or pass --lenient to take negative labels as unjudged",
        Repair::Unlabelled,
    ),
    entry(
        FaultKind::QueryMissing,
        "query-missing",
        "qid:ID after the label",
        "write lines as `label qid:ID index:value ...`, or put the sizes of the queries beside the file in FILE.query as LightGBM does",
        Repair::SkipLine,
    ),
    entry(FaultKind::QueryEmpty, "query-empty", "a query id behind `qid:`", FIX_OR_LENIENT, Repair::SkipLine),
    entry(FaultKind::ColonMissing, "colon-missing", "index:value", FIX_OR_LENIENT, Repair::SkipLine),
    entry(
        FaultKind::IndexMalformed,
        "index-malformed",
        "a whole number as the feature's index",
        FIX_OR_LENIENT,
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexZero,
        "index-zero",
        "feature indices from 1 on",
        "pass --index-base 0 if the first feature of this file has index 0",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexTooLarge,
        "index-too-large",
        "an index within --max-features",
        "raise --max-features, or complete the file of --names, if there really are that many features",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::IndexRepeated,
        "index-repeated",
        "every index once in a line",
        "remove one of the two, or pass --lenient to take the last one",
        Repair::LastWins,
    ),
    entry(FaultKind::ValueEmpty, "value-empty", "a number behind the colon", FIX_OR_MISSING, Repair::Missing),
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
        "check that this is a text file, gzip, bzip2, xz, zstd or Parquet; other packings must be unpacked first",
        Repair::SkipLine,
    ),
    entry(
        FaultKind::FieldCount,
        "field-count",
        "as many fields as the header has",
        "check the delimiter (--delimiter) and the quotes, or pass --lenient to leave such lines out",
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
        "a number with a decimal comma and no point, as in the rest of this file",
        "write all numbers of a file with the same decimal mark and without thousands separators",
        Repair::Missing,
    ),
    entry(
        FaultKind::NumberAmongWords,
        "number-among-words",
        "a word, as in the lines before",
        "pass --categorical COLUMN to take the numbers of this column as words, too; or correct its words, if it holds numbers",
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
    /// The fault's texts and repair.
    pub fn entry(self) -> &'static FaultEntry {
        &TABLE[self as usize]
    }
}

/// A fault found at a place of a chunk; the file is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// Line of the input, counted from 1.
    pub line: u64,
    /// Byte of the line, counted from 1.
    pub column: u64,
    /// What stands there, shortened.
    pub found: String,
}

impl Fault {
    /// The fault as the user hears it.
    pub fn in_file(self, file: &str) -> Error {
        let entry = self.kind.entry();
        Error::Input(Box::new(InputError {
            at: Position { file: file.to_owned(), line: self.line, column: self.column },
            problem: format!("found {}, expected {}", self.found, entry.expected),
            remedy: entry.remedy.to_owned(),
        }))
    }
}

/// A token as it appears in a message: quoted, escaped, at most 40 bytes of it.
pub fn shown(token: &[u8]) -> String {
    const MOST: usize = 40;
    let token = token.strip_suffix(b"\r").unwrap_or(token);
    if token.is_empty() {
        return "the end of the line".to_owned();
    }
    let head = &token[..token.len().min(MOST)];
    let text = String::from_utf8_lossy(head);
    let dots = if token.len() > MOST { "..." } else { "" };
    format!("{:?}{dots}", text)
}

/// How many lines were repaired or left out, by kind of fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repairs {
    counts: [u64; TABLE.len()],
}

impl Repairs {
    /// Counts one repaired or skipped line.
    pub fn add(&mut self, kind: FaultKind) {
        self.counts[kind as usize] += 1;
    }

    /// Adds the counts of another part of the input.
    pub fn merge(&mut self, other: &Repairs) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// Whether lines were left out.
    pub fn left_lines_out(&self) -> bool {
        self.by_kind().any(|(entry, _)| entry.repair == Repair::SkipLine)
    }

    /// All repairs together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The kinds that occurred, with their counts.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static FaultEntry, u64)> + '_ {
        TABLE.iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (place, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.kind as usize, place, "{}", entry.name);
            assert!(!entry.expected.is_empty() && !entry.remedy.is_empty());
        }
    }

    #[test]
    fn long_or_binary_tokens_are_shortened_and_escaped() {
        assert_eq!(shown(b"abc\r"), "\"abc\"");
        assert_eq!(shown(b""), "the end of the line");
        assert_eq!(shown(&[b'x'; 50]), format!("\"{}\"...", "x".repeat(40)));
        assert_eq!(shown(b"\x00\x01"), "\"\\0\\u{1}\"");
    }
}
