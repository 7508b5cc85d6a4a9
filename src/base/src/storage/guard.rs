//! Protects existing files. An output may replace only an earlier output of the same kind, which is recognised by its
//! content. Outputs with hidden names are refused.

use super::location::Location;
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A function that checks whether an existing, non-empty file may be replaced. It fails if the file must be kept.
pub type Guard = Arc<dyn Fn(&Location) -> Result<()> + Send + Sync>;

/// Number of bytes at the start of a file that are read to recognise its kind.
const HEAD_BYTES: u64 = 64 << 10;

/// The decompressed beginning of a file.
pub struct Head {
    /// The bytes up to the end of the last complete line, or all bytes that were read if they contain no line end.
    pub bytes: Vec<u8>,
    /// Whether `bytes` is the whole content of the file.
    pub is_whole: bool,
}

impl Head {
    /// Returns the lines, or `None` if the bytes are not valid UTF-8.
    pub fn lines(&self) -> Option<std::str::Lines<'_>> {
        std::str::from_utf8(&self.bytes).ok().map(str::lines)
    }

    /// Checks whether the beginning of the file contains the given byte sequence.
    pub fn has(&self, bytes: &[u8]) -> bool {
        memchr::memmem::find(&self.bytes, bytes).is_some()
    }

    fn read(location: &Location) -> Result<Self> {
        let mut bytes = Vec::new();
        let outcome =
            decompressed(location.open()?).and_then(|head| head.take(HEAD_BYTES).read_to_end(&mut bytes));
        if outcome.is_err() {
            return Err(foreign(location)); // planetree does not write files that cannot be decompressed
        }
        let is_whole = (bytes.len() as u64) < HEAD_BYTES;
        if !is_whole && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(end + 1);
        }
        Ok(Head { bytes, is_whole })
    }
}

fn decompressed(mut file: Box<dyn Read + Send>) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic)?;
    let whole = BufReader::new(Cursor::new(magic.clone()).chain(file));
    Ok(match &magic[..] {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    })
}

/// Creates a guard that permits replacing files for which `is_ours` returns true.
pub fn replaces(is_ours: impl Fn(&Head) -> bool + Send + Sync + 'static) -> Guard {
    Arc::new(move |location| if is_ours(&Head::read(location)?) { Ok(()) } else { Err(foreign(location)) })
}

/// Reads the beginning of a file, for guards that inspect it.
pub fn head_of(location: &Location) -> Result<Head> {
    Head::read(location)
}

/// Returns the error for an output path at which there is a file that planetree did not write, or that is damaged.
pub fn foreign(location: &Location) -> Error {
    Error::place(
        location,
        "refusing to overwrite: not created by planetree, or damaged",
        "choose another name, or remove the file first",
    )
}

/// Fails if an output would be hidden. Files and directories whose names start with a dot usually hold the
/// configuration of programs, not results.
pub fn refuse_hidden(location: &Location) -> Result<()> {
    let is_hidden = match location {
        Location::Local(path) => is_hidden(path) || is_hidden(&resolved(path)),
        Location::Remote(remote) => remote.path.parts().any(|part| part.as_ref().starts_with('.')),
    };
    if !is_hidden {
        return Ok(());
    }
    Err(Error::place(
        location,
        "refusing to write a hidden file, or into a hidden directory",
        "choose a path in which no name starts with a dot",
    ))
}

/// Rejects the output `-`, which would be a file of that name. Outputs are files or directories, not the standard
/// output.
pub fn refuse_dash(location: &Location) -> Result<()> {
    match location {
        Location::Local(path) if path.as_os_str() == "-" => Err(Error::usage(
            "the output is a file, so it cannot be the standard output (-)",
            "name a file, such as output.parquet; planetree predict --scores - prints scores",
        )),
        _ => Ok(()),
    }
}

/// Directories that never hold results, even as parents in an absolute path.
const NEVER: [&str; 6] = [".git", ".hg", ".svn", ".ssh", ".gnupg", ".aws"];

/// Returns the absolute path of an output, with symbolic links in the path of its directory resolved.
fn resolved(path: &Path) -> PathBuf {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match parent.canonicalize() {
        Ok(parent) => parent.join(path.file_name().unwrap_or_default()),
        Err(_) => path.to_owned(), // the directory does not exist yet
    }
}

/// Checks whether a path refers to a hidden file or directory. The parent directories of an absolute path count only
/// if they are in [`NEVER`], because users may well keep results below `/home/me/.cache`.
fn is_hidden(path: &Path) -> bool {
    let is_dotted = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let mut names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    match path.is_absolute() {
        true => {
            path.file_name().is_some_and(is_dotted)
                || names.any(|name| NEVER.iter().any(|never| name == *never))
        }
        false => names.any(is_dotted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_those_that_the_user_gave() {
        let hidden = |path: &str| is_hidden(Path::new(path));
        for path in
            [".bashrc", "./.bashrc", "a/.b", ".git/hooks/pre-commit", "../.ssh/config", "/home/me/.bashrc"]
        {
            assert!(hidden(path), "{path}");
        }
        for path in ["a", "./a", "../a", "a.b/c.", "/home/me/.cache/work/a", "/tmp/.tmpA1/a", "a..b"] {
            assert!(!hidden(path), "{path}");
        }
    }

    #[test]
    fn a_head_is_decompressed_and_ends_with_a_line() {
        use std::io::Write;
        let room = tempfile::tempdir().unwrap();
        let place = |name: &str| room.path().join(name);
        let text = "0.25\n".repeat(100_000);
        std::fs::write(place("plain"), &text).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(
            std::fs::File::create(place("gz")).unwrap(),
            flate2::Compression::fast(),
        );
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap();
        std::fs::write(place("zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
        for name in ["plain", "gz", "zst"] {
            let head = Head::read(&Location::Local(place(name))).unwrap();
            assert!(!head.is_whole, "{name}");
            assert!(head.lines().unwrap().all(|line| line == "0.25"), "{name}");
            assert!(head.bytes.len() > 60_000, "{name}");
        }
        std::fs::write(place("broken"), b"\x1f\x8bxx").unwrap();
        let error = head_of(&Location::Local(place("broken"))).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.ends_with("not created by planetree, or damaged")));
    }
}
