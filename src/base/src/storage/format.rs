//! Determines the format and compression of a file from its name. The same table of file extensions applies to all
//! outputs. An extension that an output does not support is an error, so a file never has a different format than its
//! name says.

use super::location::Location;
use crate::error::{Error, Result};

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// One JSON value.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// A Markdown table.
    Markdown,
    /// Plain text.
    Text,
    /// A web page.
    Html,
}

/// The compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// The file is not compressed.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// All known extensions and their formats. If a format has several extensions, messages use the first one.
const EXTENSIONS: [(&str, FileFormat); 12] = [
    ("parquet", FileFormat::Parquet),
    ("pq", FileFormat::Parquet),
    ("csv", FileFormat::Csv),
    ("tsv", FileFormat::Tsv),
    ("tab", FileFormat::Tsv),
    ("json", FileFormat::Json),
    ("ndjson", FileFormat::Ndjson),
    ("jsonl", FileFormat::Ndjson),
    ("md", FileFormat::Markdown),
    ("txt", FileFormat::Text),
    ("html", FileFormat::Html),
    ("htm", FileFormat::Html),
];

/// Extensions of compressed text, which follow the extension of the format, as in `.csv.gz`.
const COMPRESSIONS: [(&str, Compression); 2] = [("gz", Compression::Gzip), ("zst", Compression::Zstd)];

impl FileFormat {
    fn of_extension(extension: &str) -> Option<Self> {
        EXTENSIONS.iter().find(|(known, _)| *known == extension).map(|(_, format)| *format)
    }

    fn extension(self) -> &'static str {
        EXTENSIONS.iter().find(|(_, format)| *format == self).map_or("", |(extension, _)| extension)
    }

    /// Checks whether files of this format may be compressed. Parquet has its own compression, and browsers do not
    /// open `.html.gz`.
    fn takes_compression(self) -> bool {
        !matches!(self, FileFormat::Parquet | FileFormat::Html)
    }
}

/// The parts of a file name that determine the format.
struct Named {
    extension: Option<String>,
    compression: Compression,
}

impl Named {
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let packed = COMPRESSIONS.iter().find_map(|(known, compression)| {
            Some((name.strip_suffix(known)?.strip_suffix('.')?.to_owned(), *compression))
        });
        let (name, compression) = packed.unwrap_or((name, Compression::None));
        let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, end)| end);
        // The ends of dates and versions, as in `run.2026-11-17` and `model.v1.2`, are not extensions.
        let is_word = |end: &&str| {
            end.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        Named { extension: extension.filter(is_word).map(str::to_owned), compression }
    }
}

/// The formats in which one kind of output can be written.
#[derive(Debug, Clone, Copy)]
pub struct OutputFormats {
    /// What is written, as it appears in messages such as "cannot write a model as .csv".
    pub what: &'static str,
    /// The supported formats. The first one is used if the file name has no extension.
    pub takes: &'static [FileFormat],
    /// Whether unknown extensions such as `.model` are permitted and treated like no extension.
    pub takes_unknown: bool,
    /// Whether the output can be compressed by adding `.gz` or `.zst` to its name.
    pub takes_compression: bool,
}

/// Formats of tables, such as predictions, metrics, differences and rounds.
pub const TABLE_FORMATS: OutputFormats = OutputFormats {
    what: "a table",
    takes: &[FileFormat::Parquet, FileFormat::Csv, FileFormat::Tsv, FileFormat::Json, FileFormat::Ndjson],
    takes_unknown: false,
    takes_compression: true,
};

/// Formats of models and of other outputs that are always Parquet, whatever their name.
pub const MODEL_FORMATS: OutputFormats = OutputFormats {
    what: "a model",
    takes: &[FileFormat::Parquet],
    takes_unknown: true,
    takes_compression: false,
};

/// Formats of score files, which have one score per line.
pub const SCORES_FORMATS: OutputFormats = OutputFormats {
    what: "scores",
    takes: &[FileFormat::Text],
    takes_unknown: true,
    takes_compression: true,
};

/// Formats of ranked lists in the run format of trec_eval.
pub const RUN_FORMATS: OutputFormats = OutputFormats { what: "a run", ..SCORES_FORMATS };

/// Formats of statistics about the time and memory that a command used.
pub const STATS_FORMATS: OutputFormats = OutputFormats {
    what: "stats",
    takes: &[FileFormat::Json],
    takes_unknown: false,
    takes_compression: true,
};

/// Formats of reports.
pub const REPORT_FORMATS: OutputFormats = OutputFormats {
    what: "a report",
    takes: &[FileFormat::Html],
    takes_unknown: false,
    takes_compression: false,
};

impl OutputFormats {
    /// Determines the format and compression of an output from its name. An extension that the output does not
    /// support is a usage error.
    pub fn of(&self, location: &Location) -> Result<(FileFormat, Compression)> {
        self.among(location, None)
    }

    /// Determines the format and compression of an output from its name and from the format that the user chose, if
    /// any. Fails if the two contradict each other.
    pub fn among(
        &self,
        location: &Location,
        chosen: Option<FileFormat>,
    ) -> Result<(FileFormat, Compression)> {
        let Named { extension, compression } = Named::of(&location.name());
        let known = extension.as_deref().and_then(FileFormat::of_extension);
        let format = match (chosen, known, &extension) {
            // The extension `.txt` agrees with every text format.
            (Some(chosen), Some(FileFormat::Text), _) if chosen != FileFormat::Parquet => chosen,
            (Some(chosen), Some(known), _) if chosen != known => {
                return Err(Error::usage(
                    format_args!(
                        "{location}: the extension is .{}, but the chosen format is {}",
                        known.extension(),
                        chosen.extension()
                    ),
                    "change the extension of the file, or do not pass a format",
                ));
            }
            (Some(chosen), ..) => chosen,
            (None, Some(known), _) if self.takes.contains(&known) => known,
            (None, None, None) => self.takes[0],
            (None, None, Some(_)) if self.takes_unknown => self.takes[0],
            (None, ..) => return Err(self.refused(location, &extension.unwrap_or_default())),
        };
        let compresses = self.takes_compression && format.takes_compression();
        match COMPRESSIONS.iter().find(|(_, known)| *known == compression) {
            Some((extension, _)) if !compresses => Err(self.refused(location, extension)),
            _ => Ok((format, compression)),
        }
    }

    fn refused(&self, location: &Location, extension: &str) -> Error {
        let mut known = self.takes.iter().map(|format| format!(".{}", format.extension()));
        let first = known.next().unwrap_or_default() + " (or no extension)";
        let mut known: Vec<String> = [first].into_iter().chain(known).collect();
        let last = known.pop().unwrap_or_default();
        let list = if known.is_empty() { last } else { format!("{} or {last}", known.join(", ")) };
        let compresses = self.takes_compression && self.takes.iter().any(|format| format.takes_compression());
        let compressed = if compresses { "; append .gz or .zst to compress text" } else { "" };
        Error::usage(
            format_args!("{location}: cannot write {} as .{extension}", self.what),
            format_args!("use {list}{compressed}"),
        )
    }
}

/// Determines the format of a text file to be read from its name. Returns `None` if the name is not that of a table
/// in a text format.
pub fn text_format(location: &Location) -> Option<FileFormat> {
    let named = Named::of(&location.name());
    let format = FileFormat::of_extension(named.extension.as_deref()?)?;
    let is_text = matches!(format, FileFormat::Csv | FileFormat::Tsv | FileFormat::Json | FileFormat::Ndjson);
    is_text.then_some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(formats: OutputFormats, name: &str) -> Result<(FileFormat, Compression)> {
        formats.of(&Location::Local(name.into()))
    }

    #[test]
    fn extensions_decide() {
        for (name, format, compression) in [
            ("p", FileFormat::Parquet, Compression::None),
            ("p.parquet", FileFormat::Parquet, Compression::None),
            ("dir.csv/p", FileFormat::Parquet, Compression::None),
            ("p.2026-11-17", FileFormat::Parquet, Compression::None),
            ("p.CSV", FileFormat::Csv, Compression::None),
            ("p.csv.gz", FileFormat::Csv, Compression::Gzip),
            ("p.tsv", FileFormat::Tsv, Compression::None),
            ("p.v2.json.zst", FileFormat::Json, Compression::Zstd),
            ("p.jsonl", FileFormat::Ndjson, Compression::None),
        ] {
            assert_eq!(of(TABLE_FORMATS, name).unwrap(), (format, compression), "{name}");
        }
        for name in ["p.xlsx", "p.pdf", "p.txt", "p.parquet.gz", "p.gz", "p.xlsx.gz"] {
            let error = of(TABLE_FORMATS, name).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{name}: {error}");
            let remedy = error.remedy().unwrap();
            assert_eq!(
                remedy,
                "use .parquet (or no extension), .csv, .tsv, .json or .ndjson; append .gz or .zst to compress text"
            );
        }
        let error = of(REPORT_FORMATS, "r.pdf").unwrap_err();
        assert_eq!(error.to_string(), "r.pdf: cannot write a report as .pdf");
        assert_eq!(error.remedy(), Some("use .html (or no extension)"));
    }

    #[test]
    fn names_of_models_and_scores_are_free_unless_they_lie() {
        for name in ["m", "m.model", "m.parquet", "m.parquet.checkpoint"] {
            assert_eq!(of(MODEL_FORMATS, name).unwrap().0, FileFormat::Parquet, "{name}");
        }
        assert_eq!(of(SCORES_FORMATS, "s.scores.gz").unwrap(), (FileFormat::Text, Compression::Gzip));
        assert!(of(MODEL_FORMATS, "m.csv").is_err() && of(MODEL_FORMATS, "m.gz").is_err());
        assert!(of(SCORES_FORMATS, "s.parquet").is_err() && of(SCORES_FORMATS, "s.csv").is_err());
    }

    #[test]
    fn a_chosen_format_and_an_extension_agree() {
        let of = |name: &str, chosen| TABLE_FORMATS.among(&Location::Local(name.into()), Some(chosen));
        assert_eq!(of("x.dat", FileFormat::Csv).unwrap().0, FileFormat::Csv);
        assert_eq!(of("x.txt", FileFormat::Csv).unwrap().0, FileFormat::Csv);
        assert_eq!(of("x", FileFormat::Ndjson).unwrap().0, FileFormat::Ndjson);
        assert_eq!(of("x.csv", FileFormat::Csv).unwrap().0, FileFormat::Csv);
        assert_eq!(of("x.csv", FileFormat::Parquet).unwrap_err().exit_code(), 2);
        assert!(of("x.txt", FileFormat::Parquet).is_err());
    }
}
