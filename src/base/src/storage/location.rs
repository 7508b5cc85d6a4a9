//! Locations: local paths and URLs behind one type.

use super::border;
use super::remote_read::{RangeReader, StreamReader};
use crate::error::{Error, Result};
use bytes::Bytes;
use object_store::multipart::MultipartStore;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Permitted sources of credentials for object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Environment variables only.
    #[default]
    Explicit,
    /// Also the cloud's metadata service (`--instance-credentials`).
    InstanceCredentials,
}

/// A file, directory, object or prefix.
#[derive(Clone)]
pub enum Location {
    /// A local path.
    Local(PathBuf),
    /// A path in an object store.
    Remote(Remote),
}

/// A location in an object store.
#[derive(Clone)]
pub struct Remote {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Handle for multipart uploads; `None` for web servers.
    pub(super) uploads: Option<Arc<dyn MultipartStore>>,
    pub(super) path: ObjectPath,
    /// The URL without secrets; it ends where `path` ends.
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
    /// Parses a path argument. A single letter before the colon is a drive, not a scheme.
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
            format_args!("{scheme}: built without support for object stores"),
            "build planetree with the feature `cloud`, or copy the data to a local path",
        ))
    }

    /// For tests: a location in an in-memory object store.
    #[doc(hidden)]
    pub fn in_memory(store: &Arc<object_store::memory::InMemory>, path: &str) -> Location {
        Location::Remote(Remote {
            store: store.clone(),
            uploads: Some(store.clone()),
            path: ObjectPath::from(path),
            shown: format!("memory://bucket/{path}"),
        })
    }

    /// The store and the path within it, for third-party readers.
    pub fn object(&self) -> Option<(&Arc<dyn ObjectStore>, &ObjectPath)> {
        match self {
            Location::Local(_) => None,
            Location::Remote(remote) => Some((&remote.store, &remote.path)),
        }
    }

    /// The location of a name below this one.
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

    /// The location of a side file: the suffix `strip`, if present, replaced by `add`.
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

    /// The last component of the path.
    pub fn name(&self) -> String {
        match self {
            Location::Local(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Location::Remote(remote) => remote.path.filename().unwrap_or_default().to_owned(),
        }
    }

    /// Size of the file or object in bytes; `None` if there is none.
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

    /// Removes the file or object, if it exists.
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

    /// Reads a byte range; a shorter file is an error.
    pub fn read_range(&self, start: u64, length: u64) -> Result<Bytes> {
        self.read_version(start, length, None)
    }

    /// Reads a byte range of one version of an object; another version is an error.
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
        let ranged = self.ask(|| {
            let (store, path, options) = (&remote.store, &remote.path, options.clone());
            async move { store.get_opts(path, options).await?.bytes().await }
        })?;
        let bytes = match ranged {
            Some(bytes) => bytes,
            // A web server without range requests: read everything and keep the range.
            None => {
                let mut whole = Vec::new();
                self.stream(remote)?
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
            "it was changed while it was read",
            "run the command again when no other process writes to it",
        )
    }

    /// Reads a whole small file; `None` if there is none.
    pub fn read_all(&self) -> Result<Option<Bytes>> {
        match self {
            Location::Local(path) => match std::fs::read(path) {
                Ok(bytes) => Ok(Some(bytes.into())),
                Err(error) if is_absent(&error) => Ok(None),
                Err(error) => Err(Error::io(self, "read", error)),
            },
            // One request, so that it is one version even if it is being replaced.
            Location::Remote(remote) => {
                let whole = border::retry(|| async { remote.store.get(&remote.path).await?.bytes().await });
                match border::wait_or_interrupt(whole)? {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(object_store::Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(self.store_error("read", &error)),
                }
            }
        }
    }

    /// Opens a file for reading from its start.
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
            return self.stream(remote); // in one stream
        }
        Ok(Box::new(RangeReader::new(self.clone(), meta.size, meta.e_tag)))
    }

    /// Whether the server supports range requests; some web servers do not. The object must not be empty.
    pub(super) fn knows_ranges(&self, remote: &Remote) -> Result<bool> {
        Ok(!self.is_http() || self.ask(|| remote.store.get_range(&remote.path, 0..1))?.is_some())
    }

    /// Whether this is a web server, which supports neither listing nor writing.
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

    /// Names of the files directly in this directory or below this prefix, sorted.
    pub fn list(&self) -> Result<Vec<String>> {
        Ok(self.contents()?.0)
    }

    /// Names of the files and of the directories directly in this directory or below this prefix, sorted.
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
                // Cloud consoles mark a folder with an empty object of the same name.
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

    /// The error for a missing file or object.
    pub fn absent(&self) -> Error {
        match self {
            Location::Local(_) => Error::io(self, "open", rustix::io::Errno::NOENT.into()),
            Location::Remote(_) => {
                Error::place(self, "there is no such object or bucket", "check the spelling of the URL")
            }
        }
    }

    /// Converts a store's error.
    pub(super) fn store_error(&self, doing: &str, error: &object_store::Error) -> Error {
        #[cfg(feature = "cloud")]
        let (problem, remedy) = super::cloud::plain(error);
        #[cfg(not(feature = "cloud"))]
        let (problem, remedy) = (error.to_string(), "");
        Error::place(self, format_args!("cannot {doing}: {problem}"), remedy)
    }

    /// Sends a request to the store; `None` if it does not support the operation.
    fn ask<T, F, R>(&self, request: R) -> Result<Option<T>>
    where
        F: Future<Output = object_store::Result<T>>,
        R: FnMut() -> F,
    {
        match border::wait_or_interrupt(border::retry(request))? {
            Ok(output) => Ok(Some(output)),
            Err(object_store::Error::NotSupported { .. }) => Ok(None),
            Err(object_store::Error::Precondition { .. }) => Err(self.changed()),
            Err(error) => Err(self.store_error("read", &error)),
        }
    }
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
