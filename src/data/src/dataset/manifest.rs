//! Reads and writes the manifest of a dataset. The manifest lists the files with their row groups and the checksums
//! of all byte ranges, so that damage is detected in any range that is read.

use crate::table::{TableKind, TableReader};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, HeldDirectory, Location, digest_of};
use serde::{Deserialize, Serialize};

/// File name of the manifest. Query engines ignore files whose names start with an underscore.
pub const MANIFEST: &str = "_manifest.json";
const FORMAT: u32 = 1;
/// Maximum number of rows of a row group. Row groups have few more than 65,536 rows, unless a query is larger.
const MAX_GROUP_ROWS: u64 = 1 << 28;

/// The manifest of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest format.
    pub planetree_dataset: u32,
    /// Name and version of the program that wrote the dataset.
    pub writer: String,
    /// The inputs that the rows come from.
    pub source: ManifestSource,
    /// Hash of the rows, which does not depend on how they are divided into files. `None` if an earlier version of
    /// planetree wrote the dataset. [`DatasetReader::fingerprint`](super::DatasetReader::fingerprint) then computes
    /// it from the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// Number of rows in all files.
    pub rows: u64,
    /// Number of queries in all files.
    pub queries: u64,
    /// Number of rows without a label.
    pub unlabelled: u64,
    /// Whether there is a `weight` column.
    pub weight: bool,
    /// Whether there is a `position` column.
    pub position: bool,
    /// Names of the feature columns.
    pub features: Vec<String>,
    /// The categories of each categorical feature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Categories>,
    /// Numbers of faults that were repaired or whose lines were skipped, by kind of fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RepairCount>,
    /// The Parquet files, in row order.
    pub files: Vec<PartEntry>,
}

/// The inputs that the rows come from. They are identified by their content, not by file names, so that equal inputs
/// give equal datasets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestSource {
    /// Format of the inputs: `letor`, `csv` or `parquet`.
    pub format: String,
    /// Total size of the decompressed inputs in bytes.
    pub bytes: u64,
    /// Hash of the concatenated, decompressed inputs.
    pub fingerprint: Digest,
}

/// The categories of one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Categories {
    /// Name of the feature.
    pub feature: String,
    /// The categories in the order of their codes, which are 0, 1, 2, ...
    pub words: Vec<String>,
}

/// Number of faults of one kind that were repaired or whose lines were skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairCount {
    /// Name of the kind of fault.
    pub kind: String,
    /// Number of occurrences.
    pub count: u64,
}

/// One file of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartEntry {
    /// Name within the dataset's directory.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of queries.
    pub queries: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// The row groups, in order. The first one starts at the first byte of the file.
    pub row_groups: Vec<RowGroupEntry>,
    /// The byte range after the last row group, which contains the footer.
    pub footer: ChecksummedRange,
}

/// One row group of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowGroupEntry {
    /// Number of rows.
    pub rows: u64,
    /// Number of queries.
    pub queries: u64,
    /// The byte range of the row group.
    #[serde(flatten)]
    pub range: ChecksummedRange,
}

/// A byte range of a file, with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksummedRange {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// XXH3 hash of the bytes.
    pub xxh3: Digest,
}

impl Manifest {
    /// Creates a manifest without rows and files, which names this version of planetree as the writer.
    pub fn new(source: ManifestSource) -> Self {
        Manifest {
            planetree_dataset: FORMAT,
            writer: concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned(),
            source,
            fingerprint: None,
            rows: 0,
            queries: 0,
            unlabelled: 0,
            weight: false,
            position: false,
            features: Vec::new(),
            categories: Vec::new(),
            repairs: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Serialises the manifest as JSON. The last key contains the hash of everything before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers always serialise");
        let digest = digest_of(text.as_bytes());
        // The hash is added as the last key of the same object, so that the file remains valid JSON.
        text.truncate(text.len() - "\n}".len());
        text.push_str(&format!(",\n  \"xxh3\": \"{digest}\"\n}}\n"));
        text.into_bytes()
    }

    /// Reads the manifest of the dataset at `dataset`.
    pub fn read(dataset: &Location) -> Result<Self> {
        Self::open(dataset).map(|(_, manifest)| manifest)
    }

    /// Reads the manifest of the dataset at `dataset`, and keeps the directory open for reading the dataset's files.
    pub fn open(dataset: &Location) -> Result<(HeldDirectory, Self)> {
        match HeldDirectory::open(dataset, MANIFEST)? {
            Some((directory, bytes)) => Ok((directory, Self::from_bytes(&bytes, &dataset.join(MANIFEST))?)),
            None => Err(not_a_dataset(dataset)?),
        }
    }

    /// Parses a manifest and verifies its checksum. `location` is the file of the manifest, for messages.
    pub fn from_bytes(bytes: &[u8], location: &Location) -> Result<Self> {
        let damaged = || {
            Error::place(
                location,
                "damaged: its content does not match its checksum",
                "restore the file from a copy, or convert the data again",
            )
        };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (body, tail) = text.rsplit_once(",\n  \"xxh3\": \"").ok_or_else(damaged)?;
        let body = format!("{body}\n}}");
        if tail != format!("{}\"\n}}\n", digest_of(body.as_bytes())) {
            return Err(damaged());
        }
        let version: serde_json::Value = serde_json::from_str(&body).map_err(|_| damaged())?;
        match version["planetree_dataset"].as_u64() {
            Some(version) if version == u64::from(FORMAT) => {}
            version => {
                return Err(Error::place(
                    location,
                    format_args!("unsupported dataset version {}", version.unwrap_or(0)),
                    "use the version of planetree that wrote it, or a newer one",
                ));
            }
        }
        let problem = |problem: std::fmt::Arguments<'_>| {
            Error::place(location, format_args!("invalid manifest: {problem}"), "convert the data again")
        };
        let manifest: Manifest =
            serde_json::from_str(&body).map_err(|error| problem(format_args!("{error}")))?;
        // Names that lead out of the dataset's directory are rejected.
        let is_elsewhere = |name: &str| name.contains(['/', '\\']) || name.starts_with('.');
        if let Some(file) = manifest.files.iter().find(|file| is_elsewhere(&file.name)) {
            return Err(problem(format_args!("invalid file name {:?}", file.name)));
        }
        match manifest.contradiction() {
            Some(contradiction) => Err(problem(format_args!("{contradiction}"))),
            None => Ok(manifest),
        }
    }

    /// Returns the first contradiction among the numbers of the manifest, or `None` if they agree. A checksum that fits
    /// proves only that the file is as it was written, not that planetree wrote it.
    fn contradiction(&self) -> Option<String> {
        for file in &self.files {
            let mut end = 0;
            for range in file.row_groups.iter().map(|group| &group.range).chain([&file.footer]) {
                let next = range.offset.checked_add(range.bytes);
                match next.filter(|next| range.offset >= end && *next <= file.bytes) {
                    Some(next) => end = next,
                    None => return Some(format!("the byte ranges of {} overlap or exceed it", file.name)),
                }
            }
            if file.row_groups.iter().any(|group| group.rows > MAX_GROUP_ROWS) {
                return Some(format!("a row group of {} has more than {MAX_GROUP_ROWS} rows", file.name));
            }
            let groups = || file.row_groups.iter();
            if sum(groups().map(|group| group.rows)) != Some(file.rows)
                || sum(groups().map(|group| group.queries)) != Some(file.queries)
            {
                return Some(format!(
                    "the row groups of {} do not add up to its rows and queries",
                    file.name
                ));
            }
        }
        let adds_up = sum(self.files.iter().map(|file| file.rows)) == Some(self.rows)
            && sum(self.files.iter().map(|file| file.queries)) == Some(self.queries);
        if !adds_up {
            return Some("the files do not add up to the rows and queries of the dataset".to_owned());
        }
        (self.queries > self.rows || self.unlabelled > self.rows)
            .then(|| "there are more queries or unlabelled rows than rows".to_owned())
    }

    /// Returns the number of rows of each row group, in row order.
    pub fn rows_of_groups(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().flat_map(|file| &file.row_groups).map(|group| group.rows)
    }

    /// Returns a hash that identifies the bytes of all files. It is the hash of the files' hashes.
    pub fn files_digest(&self) -> Digest {
        let digests: String = self.files.iter().map(|file| format!("{}\n", file.digest())).collect();
        digest_of(digests.as_bytes())
    }
}

/// Adds numbers; `None` if the sum is too large.
fn sum(mut numbers: impl Iterator<Item = u64>) -> Option<u64> {
    numbers.try_fold(0, u64::checked_add)
}

impl PartEntry {
    /// Returns a hash of the file's content. It is the hash of the checksums of its byte ranges.
    pub fn digest(&self) -> Digest {
        let ranges = self.row_groups.iter().map(|group| &group.range).chain([&self.footer]);
        let digests: String = ranges.map(|range| format!("{}\n", range.xxh3)).collect();
        digest_of(digests.as_bytes())
    }
}

/// Returns the error for a location without a manifest.
fn not_a_dataset(location: &Location) -> Result<Error> {
    if location.size()?.is_some()
        && let Some(kind) = TableReader::kind_of(location)?
    {
        let remedy = match kind {
            TableKind::Predictions => {
                "pass the dataset that was scored; planetree evaluate and compare read predictions"
            }
            _ => "pass a dataset, which `planetree convert` writes",
        };
        return Ok(Error::place(location, format_args!("{}, not a planetree dataset", kind.noun()), remedy));
    }
    let problem = match location {
        Location::Local(path) if !path.exists() => "no such file or directory".to_owned(),
        _ if location.size()?.is_some() => "a file, not a planetree dataset".to_owned(),
        _ => format!("not a planetree dataset: no {MANIFEST}"),
    };
    let remedy = match problem.as_str() {
        "no such file or directory" => "check the spelling of the path",
        _ => "use a dataset written by `planetree convert`, or convert the data first",
    };
    Ok(Error::place(location, problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_of_a_manifest_is_detected() {
        let source = ManifestSource { format: "letor".into(), bytes: 12, fingerprint: digest_of(b"x") };
        let manifest = Manifest { features: vec!["f1".into()], ..Manifest::new(source) };
        let location = Location::Local("m".into());
        let bytes = manifest.to_bytes();
        assert_eq!(Manifest::from_bytes(&bytes, &location).unwrap(), manifest);
        assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                assert!(Manifest::from_bytes(&damaged, &location).is_err(), "byte {place} bit {bit}");
            }
        }
        for length in 0..bytes.len() {
            assert!(Manifest::from_bytes(&bytes[..length], &location).is_err());
        }
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        let xxh3 = digest_of(b"x");
        let range = |offset, bytes| ChecksummedRange { offset, bytes, xxh3 };
        let group = |offset| RowGroupEntry { rows: 5, queries: 2, range: range(offset, 40) };
        let file = PartEntry {
            name: "a.parquet".into(),
            rows: 10,
            queries: 4,
            bytes: 100,
            row_groups: vec![group(0), group(40)],
            footer: range(80, 20),
        };
        let source = ManifestSource { format: "letor".into(), bytes: 12, fingerprint: xxh3 };
        let good = Manifest { rows: 10, queries: 4, files: vec![file], ..Manifest::new(source) };
        let location = Location::Local("m".into());
        assert!(Manifest::from_bytes(&good.to_bytes(), &location).is_ok());
        let changes: [fn(&mut Manifest); 9] = [
            |manifest| manifest.rows = 1 << 32,
            |manifest| manifest.queries = 11,
            |manifest| manifest.unlabelled = 11,
            |manifest| manifest.files[0].rows = u64::MAX,
            |manifest| manifest.files[0].row_groups[0].rows = u64::MAX - 3,
            |manifest| manifest.files[0].row_groups[1].range.offset = u64::MAX,
            |manifest| manifest.files[0].row_groups[1].range.bytes = 61,
            |manifest| manifest.files[0].footer.offset = 79,
            |manifest| {
                (manifest.rows, manifest.files[0].rows) = (1 << 32, 1 << 32);
                manifest.files[0].row_groups[1].rows = (1 << 32) - 5;
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = good.clone();
            change(&mut changed);
            let error = Manifest::from_bytes(&changed.to_bytes(), &location).expect_err(&number.to_string());
            assert!(error.to_string().contains("invalid manifest: "), "{number}: {error}");
        }
    }
}
