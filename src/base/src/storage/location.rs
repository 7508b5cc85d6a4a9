//! Defines one type for the locations of files and directories, which are local paths or URLs of object stores and
//! web servers. Object stores have no directories. A *prefix*, which is the common beginning of object names up to a
//! slash, takes the place of a directory.

use super::border;
use super::remote_read::{RangeReader, StreamReader};
use crate::error::{Error, Result};
use crate::size::shown_size;
use bytes::Bytes;
use futures::StreamExt;
use object_store::multipart::MultipartStore;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum bytes of an object that is read whole.
const MAX_WHOLE: usize = 1 << 30;

/// The sources from which credentials for object stores may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Environment variables only.
    #[default]
    Explicit,
    /// Also the cloud's metadata service (`--instance-credentials`).
    InstanceCredentials,
}

/// The location of a file, directory, object or prefix, which need not exist.
#[derive(Clone)]
pub enum Location {
    /// A local path.
    Local(PathBuf),
    /// A path in an object store or on a web server.
    Remote(Remote),
}

/// A location in an object store or on a web server.
#[derive(Clone)]
pub struct Remote {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Handle for multipart uploads; `None` for web servers, which are read-only.
    pub(super) uploads: Option<Arc<dyn MultipartStore>>,
    pub(super) path: ObjectPath,
    /// The URL without secrets, for messages.
    shown: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => write!(f, "{}", path.display()),
            Location::Remote(remote) => f.write_str(&remote.shown),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Location {
    /// Parses a path or URL. Text without `://` is a local path.
    pub fn parse(text: &str, access: Access) -> Result<Self> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            None => Ok(Location::Local(PathBuf::from(text))),
            Some("file") => match url::Url::parse(text).ok().and_then(|url| url.to_file_path().ok()) {
                Some(path) => Ok(Location::Local(path)),
                None => Err(Error::usage(
                    format_args!("{text}: not a local file URL"),
                    "use file:///absolute/path, or the path itself",
                )),
            },
            Some(_) => Self::parse_remote(text, access),
        }
    }

    #[cfg(feature = "cloud")]
    fn parse_remote(text: &str, access: Access) -> Result<Self> {
        let url = url::Url::parse(text)
            .map_err(|error| Error::usage(format_args!("not a URL: {error}"), "check the spelling"))?;
        let opened = super::cloud::open(&url, access)?;
        let shown = super::redact::redacted_url(&url).trim_end_matches('/').to_owned();
        Ok(Location::Remote(Remote {
            store: opened.store,
            uploads: opened.uploads,
            path: opened.path,
            shown,
        }))
    }

    #[cfg(not(feature = "cloud"))]
    fn parse_remote(text: &str, _access: Access) -> Result<Self> {
        let scheme = text.split(':').next().unwrap_or_default();
        Err(Error::usage(
            format_args!("{scheme}: this build of planetree supports only local files"),
            "build planetree with `--features cloud`, or copy the data to a local path",
        ))
    }

    /// Returns a location in an in-memory object store, for tests.
    #[doc(hidden)]
    pub fn in_memory(store: &Arc<object_store::memory::InMemory>, path: &str) -> Location {
        Location::Remote(Remote {
            store: store.clone(),
            uploads: Some(store.clone()),
            path: ObjectPath::from(path),
            shown: format!("memory://bucket/{path}"),
        })
    }

    /// Returns the object store and the path within it, for use with other libraries; `None` for a local path.
    pub fn object(&self) -> Option<(&Arc<dyn ObjectStore>, &ObjectPath)> {
        match self {
            Location::Local(_) => None,
            Location::Remote(remote) => Some((&remote.store, &remote.path)),
        }
    }

    /// Returns the location of the file or directory `name` below this directory or prefix.
    pub fn join(&self, name: &str) -> Location {
        match self {
            Location::Local(path) => Location::Local(path.join(name)),
            Location::Remote(remote) => Location::Remote(Remote {
                path: name.split('/').fold(remote.path.clone(), |path, part| path.join(part)),
                shown: format!("{}/{name}", remote.shown),
                ..remote.clone()
            }),
        }
    }

    /// Returns the location whose name ends in `add` instead of `strip`. If the name does not end in `strip`, `add`
    /// is appended.
    pub fn with_suffix(&self, strip: &str, add: &str) -> Location {
        let renamed = |text: &str| format!("{}{add}", text.strip_suffix(strip).unwrap_or(text));
        match self {
            Location::Local(path) => Location::Local(PathBuf::from(renamed(&path.to_string_lossy()))),
            Location::Remote(remote) => Location::Remote(Remote {
                path: ObjectPath::from(renamed(remote.path.as_ref())),
                shown: renamed(&remote.shown),
                ..remote.clone()
            }),
        }
    }

    /// Returns the last component of the path, or an empty string if there is none.
    pub fn name(&self) -> String {
        match self {
            Location::Local(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Location::Remote(remote) => remote.path.filename().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the size of the file or object in bytes, or `None` if it does not exist.
    pub fn size(&self) -> Result<Option<u64>> {
        match self {
            Location::Local(path) => match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
                Ok(_) => Ok(None),
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(Error::io(self, "read", error)),
            },
            Location::Remote(remote) => Ok(self.head(remote)?.map(|meta| meta.size)),
        }
    }

    /// Removes the file or object. Does nothing if it does not exist.
    pub fn remove(&self) -> Result<()> {
        match self {
            Location::Local(path) => match std::fs::remove_file(path) {
                Err(error) if !is_absent(&error) => Err(Error::io(self, "remove", error)),
                _ => Ok(()),
            },
            Location::Remote(remote) => {
                match border::wait_or_interrupt(border::retry(|| remote.store.delete(&remote.path)))? {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(self.store_error("remove", &error)),
                }
            }
        }
    }

    pub(super) fn head(&self, remote: &Remote) -> Result<Option<ObjectMeta>> {
        match border::wait_or_interrupt(border::retry(|| remote.store.head(&remote.path)))? {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.store_error("read", &error)),
        }
    }

    /// Reads `length` bytes from the offset `start` on. Fails if the file is too short.
    pub fn read_range(&self, start: u64, length: u64) -> Result<Bytes> {
        self.read_version(start, length, None)
    }

    /// Reads a byte range. Fails if an object no longer has the given version.
    pub(super) fn read_version(&self, start: u64, length: u64, version: Option<String>) -> Result<Bytes> {
        let remote = match self {
            Location::Local(path) => {
                return read_local_range(path, start, length)
                    .map(Bytes::from)
                    .map_err(|error| Error::io(self, "read", error));
            }
            Location::Remote(remote) => remote,
        };
        let range = start..start + length;
        let options =
            GetOptions { if_match: version, ..GetOptions::default() }.with_range(Some(range.clone()));
        let request = || remote.store.get_opts(&remote.path, options.clone());
        let download = border::retry_download(request, GetResult::bytes);
        let ranged = self.answered(border::wait_or_interrupt(download)?)?;
        let bytes = match ranged {
            Some(bytes) => bytes,
            // The web server does not support range requests, so read up to the end of the range.
            None => {
                let mut whole = Vec::new();
                self.stream(remote)?
                    .take(range.end)
                    .read_to_end(&mut whole)
                    .map_err(|error| Error::io(self, "read", error))?;
                let end = (range.end as usize).min(whole.len());
                Bytes::from(whole).slice((range.start as usize).min(end)..end)
            }
        };
        if bytes.len() as u64 != length {
            return Err(self.changed());
        }
        Ok(bytes)
    }

    fn changed(&self) -> Error {
        Error::place(
            self,
            "the file changed while it was being read",
            "run the command again when no other process is writing to the file",
        )
    }

    /// Reads a whole file into memory. Returns `None` if it does not exist.
    pub fn read_all(&self) -> Result<Option<Bytes>> {
        match self {
            Location::Local(path) => match std::fs::read(path) {
                Ok(bytes) => Ok(Some(bytes.into())),
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(Error::io(self, "read", error)),
            },
            // A single request returns one consistent version, even if the object is being replaced.
            Location::Remote(remote) => {
                let request = || remote.store.get_opts(&remote.path, GetOptions::default());
                match border::wait_or_interrupt(border::retry_download(request, collected))? {
                    Ok(Some(bytes)) => Ok(Some(bytes)),
                    Ok(None) => Err(Error::place(
                        self,
                        format_args!(
                            "too large to be read whole: more than {}",
                            shown_size(MAX_WHOLE as u64)
                        ),
                        "check that this is the right object, or copy it to a local disk",
                    )),
                    Err(object_store::Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(self.store_error("read", &error)),
                }
            }
        }
    }

    /// Opens a file or object for reading from start to end.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        let remote = match self {
            Location::Local(path) => {
                let file = File::open(path).map_err(|error| Error::io(self, "open", error))?;
                return Ok(Box::new(file));
            }
            Location::Remote(remote) => remote,
        };
        let meta = self.head(remote)?.ok_or_else(|| self.absent())?;
        if meta.size > 0 && !self.knows_ranges(remote)? {
            return self.stream(remote);
        }
        Ok(Box::new(RangeReader::new(self.clone(), meta.size, meta.e_tag)?))
    }

    /// Checks whether the server supports range requests, which some web servers do not. The object must not be
    /// empty.
    pub(super) fn knows_ranges(&self, remote: &Remote) -> Result<bool> {
        Ok(!self.is_http() || self.ask(|| remote.store.get_range(&remote.path, 0..1))?.is_some())
    }

    /// Checks whether this location is on a web server, which supports neither listing nor writing.
    pub fn is_http(&self) -> bool {
        matches!(self, Location::Remote(remote) if remote.uploads.is_none())
    }

    pub(super) fn stream(&self, remote: &Remote) -> Result<Box<dyn Read + Send>> {
        let got = border::wait_or_interrupt(border::retry(|| remote.store.get(&remote.path)))?
            .map_err(|error| self.store_error("read", &error))?;
        Ok(Box::new(StreamReader {
            location: self.clone(),
            chunks: got.into_stream(),
            current: Bytes::new(),
        }))
    }

    /// Returns the sorted names of the files directly in this directory or below this prefix.
    pub fn list(&self) -> Result<Vec<String>> {
        Ok(self.contents()?.0)
    }

    /// Returns the sorted names of the files, and the sorted names of the directories, directly in this directory or
    /// below this prefix.
    pub fn contents(&self) -> Result<(Vec<String>, Vec<String>)> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        match self {
            Location::Local(path) => {
                let entries = std::fs::read_dir(path).map_err(|error| Error::io(self, "list", error))?;
                for entry in entries {
                    let entry = entry.map_err(|error| Error::io(self, "list", error))?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    match entry.path() {
                        path if path.is_file() => files.push(name),
                        path if path.is_dir() => folders.push(name),
                        _ => {}
                    }
                }
            }
            Location::Remote(remote) => {
                let listing = border::retry(|| remote.store.list_with_delimiter(Some(&remote.path)));
                let listed =
                    border::wait_or_interrupt(listing)?.map_err(|error| self.store_error("list", &error))?;
                // Cloud consoles represent a folder by an empty object with the folder's name, which is not a file.
                let objects = listed.objects.iter().filter(|meta| meta.location != remote.path);
                files.extend(objects.filter_map(|meta| meta.location.filename()).map(str::to_owned));
                let prefixes = listed.common_prefixes.iter();
                folders.extend(prefixes.filter_map(ObjectPath::filename).map(str::to_owned));
            }
        }
        files.sort();
        folders.sort();
        Ok((files, folders))
    }

    /// Returns whether both are the same place, however they are spelt.
    pub fn is_same_place(&self, other: &Self) -> bool {
        if let (Location::Local(one), Location::Local(other)) = (self, other)
            && let (Ok(one), Ok(other)) = (one.canonicalize(), other.canonicalize())
        {
            return one == other;
        }
        self.to_string() == other.to_string()
    }

    /// Returns the error for a file or object that does not exist.
    pub fn absent(&self) -> Error {
        match self {
            Location::Local(_) => Error::io(self, "open", rustix::io::Errno::NOENT.into()),
            Location::Remote(_) => {
                Error::place(self, "there is no such object or bucket", "check the spelling of the URL")
            }
        }
    }

    /// Converts an error of the object store. `doing` is the failed operation, such as "read".
    pub(super) fn store_error(&self, doing: &str, error: &object_store::Error) -> Error {
        #[cfg(feature = "cloud")]
        let (problem, remedy) = super::cloud::plain(error);
        #[cfg(not(feature = "cloud"))]
        let (problem, remedy) = (error.to_string(), "");
        Error::place(self, format_args!("cannot {doing}: {problem}"), remedy)
    }

    /// Sends a request to the store. Returns `None` if the store does not support the operation.
    fn ask<T, F, R>(&self, request: R) -> Result<Option<T>>
    where
        F: Future<Output = object_store::Result<T>>,
        R: FnMut() -> F,
    {
        self.answered(border::wait_or_interrupt(border::retry(request))?)
    }

    /// Returns an answer of the store. Returns `None` if the store does not support the operation.
    fn answered<T>(&self, answer: object_store::Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(output) => Ok(Some(output)),
            Err(object_store::Error::NotSupported { .. }) => Ok(None),
            Err(object_store::Error::Precondition { .. }) => Err(self.changed()),
            Err(error) => Err(self.store_error("read", &error)),
        }
    }
}

/// Receives a whole object. Returns `None` if it is too large, by what the server says or by what arrives. Memory grows
/// with what arrives, because a server may claim any length.
async fn collected(object: GetResult) -> object_store::Result<Option<Bytes>> {
    if object.meta.size > MAX_WHOLE as u64 {
        return Ok(None);
    }
    let mut chunks = object.into_stream();
    let mut whole = Vec::new();
    while let Some(chunk) = chunks.next().await {
        whole.extend_from_slice(&chunk?);
        if whole.len() > MAX_WHOLE {
            return Ok(None);
        }
    }
    Ok(Some(whole.into()))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read_local_range(path: &Path, start: u64, length: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; length];
    File::open(path)?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_file_urls_are_local() {
        let local = |text: &str| Location::parse(text, Access::Explicit).unwrap().to_string();
        assert_eq!(local("a/b.txt"), "a/b.txt");
        assert_eq!(local("file:///a/b.txt"), "/a/b.txt");
        assert_eq!(Location::parse("x", Access::Explicit).unwrap().join("y").to_string(), "x/y");
    }

    #[test]
    fn an_unknown_scheme_is_refused() {
        let error = Location::parse("ftp://host/x", Access::Explicit).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
