//! What an output may replace: an earlier output of the same kind, recognised by its content, and nothing else.
//! Hidden files are not written at all.

use super::location::Location;
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// An error if a file that is there must stay. Asked of files that have any content.
pub type Guard = Arc<dyn Fn(&Location) -> Result<()> + Send + Sync>;

/// Bytes that a file is recognised by.
const HEAD_BYTES: u64 = 64 << 10;

/// The beginning of a file, decompressed.
pub struct Head {
    /// Whole lines, unless the first is longer than all that was read.
    pub bytes: Vec<u8>,
    /// Whether this is all of the file.
    pub is_whole: bool,
}

impl Head {
    /// The lines as text; `None` where it is none.
    pub fn lines(&self) -> Option<std::str::Lines<'_>> {
        std::str::from_utf8(&self.bytes).ok().map(str::lines)
    }

    /// Whether it has these bytes somewhere.
    pub fn has(&self, bytes: &[u8]) -> bool {
        memchr::memmem::find(&self.bytes, bytes).is_some()
    }

    fn read(location: &Location) -> Result<Self> {
        let mut bytes = Vec::new();
        let outcome =
            decompressed(location.open()?).and_then(|head| head.take(HEAD_BYTES).read_to_end(&mut bytes));
        if outcome.is_err() {
            return Err(foreign(location)); // what cannot be decompressed is not an output of ours
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

/// A guard that lets go what looks like ours.
pub fn replaces(is_ours: impl Fn(&Head) -> bool + Send + Sync + 'static) -> Guard {
    Arc::new(move |location| if is_ours(&Head::read(location)?) { Ok(()) } else { Err(foreign(location)) })
}

/// The beginning of a file that a guard looks at.
pub fn head_of(location: &Location) -> Result<Head> {
    Head::read(location)
}

/// The error of a file that planetree did not write.
pub fn foreign(location: &Location) -> Error {
    Error::place(
        location,
        "refusing to overwrite: not created by planetree",
        "choose another name, or remove the file first",
    )
}

/// An error if an output would be hidden: a file or directory whose name begins with a dot configures programs, and
/// does not hold results.
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
        "choose a path that is not hidden",
    ))
}

/// Directories that never hold results, wherever they are.
const NEVER: [&str; 6] = [".git", ".hg", ".svn", ".ssh", ".gnupg", ".aws"];

/// The absolute path of an output, with links in its directory followed.
fn resolved(path: &Path) -> PathBuf {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match parent.canonicalize() {
        Ok(parent) => parent.join(path.file_name().unwrap_or_default()),
        Err(_) => path.to_owned(), // its directory is not there yet
    }
}

/// Whether a path names something hidden. Of the directories of an absolute path only [`NEVER`] counts: `/home/me/.cache`
/// may well be where results are kept.
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
        assert!(error.is_some_and(|error| error.ends_with("not created by planetree")));
    }
}
