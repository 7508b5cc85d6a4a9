//! Writes outputs atomically. All files of an output are first staged, that is, written to a place where readers do
//! not see them. One final step, which is a rename or the conditional write of one object, makes all files visible
//! together. An output of several files contains a *marker*, which is a file that lists the others.

mod bucket;
mod file;
mod history;
mod local;
mod turn;
mod upload;

pub use file::FileOutput;

use super::interrupt;
use super::location::Location;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use tempfile::SpooledTempFile;

/// An output directory or prefix that is not visible yet. If it is dropped without [`Staging::commit`], it leaves
/// nothing behind.
pub enum Staging {
    /// A local directory next to the target, which is renamed at the end.
    Local(local::LocalStaging),
    /// Uploads to an object store, which are completed at the end.
    Bucket(bucket::BucketStaging),
}

/// A file of a staged output while it is being written.
pub enum StagedFile {
    /// A file in the staging directory.
    Local {
        /// The open file.
        file: File,
        /// Path of the file until it gets its final name.
        path: PathBuf,
    },
    /// A file that will be uploaded. It is held in memory while it is small, and otherwise in a temporary file.
    Spool(SpooledTempFile),
}

impl Staging {
    /// Prepares to write the output `target`, which is complete once it contains the file `marker`. Fails if the
    /// target exists, unless `overwrite` is set and planetree wrote the existing target.
    pub fn begin(target: &Location, marker: &'static str, overwrite: bool) -> Result<Self> {
        interrupt::be_orderly();
        Ok(match target {
            Location::Local(path) => {
                Staging::Local(local::LocalStaging::begin(path, target, marker, overwrite)?)
            }
            Location::Remote(remote) => {
                Staging::Bucket(bucket::BucketStaging::begin(remote, target, marker, overwrite)?)
            }
        })
    }

    /// Starts a new file. It gets its name later, from [`Staging::keep`].
    pub fn create(&mut self) -> Result<StagedFile> {
        match self {
            Staging::Local(local) => local.create(),
            // Files up to 64 MiB are buffered in memory, larger ones in a temporary file.
            Staging::Bucket(_) => Ok(StagedFile::Spool(SpooledTempFile::new(64 << 20))),
        }
    }

    /// Finishes a file and gives it its final name.
    pub fn keep(&mut self, file: StagedFile, name: &str) -> Result<()> {
        match (self, file) {
            (Staging::Local(local), StagedFile::Local { file, path }) => local.keep(file, &path, name),
            (Staging::Bucket(bucket), StagedFile::Spool(spool)) => bucket.keep(spool, name),
            _ => unreachable!("a staged file goes back to the staging that made it"),
        }
    }

    /// Reopens a finished file for reading.
    pub fn reopen(&mut self, name: &str) -> Result<File> {
        match self {
            Staging::Local(local) => local.reopen(name),
            Staging::Bucket(bucket) => bucket.reopen(name),
        }
    }

    /// Removes a finished file from the output.
    pub fn discard(&mut self, name: &str) -> Result<()> {
        match self {
            Staging::Local(local) => local.discard(name),
            Staging::Bucket(bucket) => {
                bucket.discard(name);
                Ok(())
            }
        }
    }

    /// Makes all files visible. The marker becomes visible last; its content `marker` must list all files of the
    /// output.
    pub fn commit(self, marker: &[u8]) -> Result<()> {
        match self {
            Staging::Local(local) => local.commit(marker),
            Staging::Bucket(bucket) => bucket.commit(marker),
        }
    }
}

impl StagedFile {
    /// Ends writing, removes the file from the output, and opens its content for reading.
    pub fn into_readable(self) -> io::Result<File> {
        match self {
            StagedFile::Local { path, .. } => {
                let file = File::open(&path)?;
                std::fs::remove_file(path)?;
                Ok(file)
            }
            StagedFile::Spool(spool) => spool.into_file(),
        }
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            StagedFile::Local { file, .. } => file.write(bytes),
            StagedFile::Spool(spool) => spool.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // neither variant buffers writes
    }
}

fn refuse_existing(target: &Location) -> Error {
    Error::place(
        target,
        "output already exists",
        "choose another --output, or pass --overwrite to replace it",
    )
}

fn refuse_foreign(target: &Location, marker: &str) -> Error {
    Error::place(
        target,
        format_args!("refusing to overwrite: not created by planetree (no {marker})"),
        "choose another --output; --overwrite only replaces outputs of planetree",
    )
}

fn refuse_http(target: &Location) -> Error {
    Error::place(
        target,
        "http(s) URLs can be read but not written",
        "write to a local path or to s3://, gs:// or az://",
    )
}

/// Returns a new random id of 16 hexadecimal digits.
pub(super) fn run_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    if let Ok(time) = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        hasher.write_u128(time.as_nanos());
    }
    format!("{:016x}", hasher.finish())
}
