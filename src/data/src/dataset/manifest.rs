//! The manifest: which files a dataset consists of, what is in them, and the checksum of every
//! stretch of bytes, so that a reader notices damage whichever stretch it reads.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, HeldDirectory, Location, digest_of};
use serde::{Deserialize, Serialize};

/// The manifest's file name. It starts with an underscore, as engines expect of what is not data.
pub const MANIFEST: &str = "_manifest.json";
const FORMAT: u32 = 1;

/// What a dataset is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub planetree_dataset: u32,
    /// Program and version.
    pub writer: String,
    /// Where the rows came from.
    pub source: Source,
    /// Hash of the rows, however they are cut into files; datasets of earlier versions have none, and
    /// [`DatasetReader::fingerprint`](super::DatasetReader::fingerprint) reads them for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Digest>,
    /// Rows in all files.
    pub rows: u64,
    /// Queries in all files.
    pub queries: u64,
    /// Rows without a label.
    pub unlabelled: u64,
    /// Whether there is a `weight` column.
    pub weight: bool,
    /// Whether there is a `position` column.
    pub position: bool,
    /// The feature columns.
    pub features: Vec<String>,
    /// The words behind the codes of columns of categories, in the order of their codes from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Categories>,
    /// Faults that were repaired or left out, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RepairCount>,
    /// The files in the order of their rows.
    pub files: Vec<PartEntry>,
}

/// Where the rows came from: content, not names, so that equal input gives equal output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// `letor`, `csv` or `parquet`.
    pub format: String,
    /// Bytes of the inputs, unpacked.
    pub bytes: u64,
    /// Hash of the inputs' bytes, unpacked, end to end.
    pub fingerprint: Digest,
}

/// The words of one column of categories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Categories {
    /// The feature.
    pub feature: String,
    /// Word number 0, 1, 2, ...
    pub words: Vec<String>,
}

/// How often a fault was repaired or left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepairCount {
    /// The fault.
    pub kind: String,
    /// How often.
    pub count: u64,
}

/// One file of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartEntry {
    /// Name within the dataset's directory.
    pub name: String,
    /// Rows in it.
    pub rows: u64,
    /// Queries in it.
    pub queries: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Its row groups, from the file's first byte on.
    pub row_groups: Vec<GroupEntry>,
    /// Everything behind the last row group.
    pub footer: Stretch,
}

/// One row group of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupEntry {
    /// Rows in it.
    pub rows: u64,
    /// Queries in it.
    pub queries: u64,
    /// Where its bytes are.
    #[serde(flatten)]
    pub stretch: Stretch,
}

/// A stretch of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Their XXH3 hash.
    pub xxh3: Digest,
}

impl Manifest {
    /// A manifest of this version of the program.
    pub fn new(source: Source) -> Self {
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

    /// The manifest as a file: JSON, and the hash of that JSON on the last line.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers always serialise");
        let digest = digest_of(text.as_bytes());
        // The hash becomes the last key of the same object, so that the file stays plain JSON.
        text.truncate(text.len() - "\n}".len());
        text.push_str(&format!(",\n  \"xxh3\": \"{digest}\"\n}}\n"));
        text.into_bytes()
    }

    /// Reads the manifest of the dataset at `dataset`.
    pub fn read(dataset: &Location) -> Result<Self> {
        Self::hold(dataset).map(|(_, manifest)| manifest)
    }

    /// Reads the manifest and holds on to the directory, whose files it names.
    pub fn hold(dataset: &Location) -> Result<(HeldDirectory, Self)> {
        match HeldDirectory::open(dataset, MANIFEST)? {
            Some((directory, bytes)) => Ok((directory, Self::from_bytes(&bytes, &dataset.join(MANIFEST))?)),
            None => Err(Error::place(
                dataset,
                format_args!("not a planetree dataset: it has no {MANIFEST}"),
                "name a dataset that `planetree convert` wrote, or convert this first",
            )),
        }
    }

    /// Reads a manifest from its bytes; `location` is for messages.
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
                    format_args!("version {} of the dataset's form is not known", version.unwrap_or(0)),
                    "use the planetree that wrote it, or a newer one",
                ));
            }
        }
        let problem = |problem: std::fmt::Arguments<'_>| {
            Error::place(
                location,
                format_args!("not a dataset's manifest: {problem}"),
                "convert the data again",
            )
        };
        let manifest: Manifest =
            serde_json::from_str(&body).map_err(|error| problem(format_args!("{error}")))?;
        // The files of a dataset are in its directory, and nowhere else.
        let leads_away = |name: &str| name.contains(['/', '\\']) || name.starts_with('.');
        match manifest.files.iter().find(|file| leads_away(&file.name)) {
            Some(file) => Err(problem(format_args!("{:?} is no name of a file", file.name))),
            None => Ok(manifest),
        }
    }

    /// The rows of each row group, in the order of the rows.
    pub fn rows_of_groups(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().flat_map(|file| &file.row_groups).map(|group| group.rows)
    }

    /// What identifies the dataset's files to the byte: the hash of their hashes.
    pub fn files_digest(&self) -> Digest {
        let digests: String = self.files.iter().map(|file| format!("{}\n", file.digest())).collect();
        digest_of(digests.as_bytes())
    }
}

impl PartEntry {
    /// The file's content: the hash of its stretches' hashes.
    pub fn digest(&self) -> Digest {
        let stretches = self.row_groups.iter().map(|group| &group.stretch).chain([&self.footer]);
        let digests: String = stretches.map(|stretch| format!("{}\n", stretch.xxh3)).collect();
        digest_of(digests.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_byte_of_a_manifest_is_noticed() {
        let source = Source { format: "letor".into(), bytes: 12, fingerprint: digest_of(b"x") };
        let manifest = Manifest { features: vec!["f1".into()], rows: 3, ..Manifest::new(source) };
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
}
