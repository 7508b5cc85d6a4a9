//! Writes a single output file atomically. If a file exists at the target, it is replaced in the same step.
//!
//! A local file is written next to the target under a hidden name, locked while in use, and renamed at the end. An
//! object is buffered and then uploaded in one request, or in a multipart upload that becomes visible when it is
//! completed.

use super::local::{make_directories, parent_of, remove_leftovers};
use super::upload::{PART_BYTES, upload};
use super::{refuse_http, run_id};
use crate::error::{Error, Result};
use crate::storage::border::{retry, start, wait, wait_or_interrupt};
use crate::storage::guard::{Guard, refuse_dash, refuse_hidden};
use crate::storage::location::{Location, Remote};
use crate::storage::{HashingWriter, interrupt};
use object_store::ObjectStoreExt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// An output file that is not visible yet. If it is dropped without [`FileOutput::commit`], it leaves nothing behind.
pub struct FileOutput {
    writer: BufWriter<FileSink>,
    shown: Location,
    /// Checks whether an existing file at the target may be replaced; `None` if any file may be replaced.
    guard: Option<Guard>,
}

enum FileSink {
    Local(LocalFile),
    Bucket { remote: Remote, spool: HashingWriter<SpooledTempFile> },
}

impl FileOutput {
    /// Prepares to write a file at a path that the user chose. Fails if the path is hidden, or if a file exists and
    /// the guard does not permit replacing it.
    pub fn guarded(target: &Location, guard: Guard) -> Result<Self> {
        refuse_dash(target)?;
        refuse_hidden(target)?;
        let output = FileOutput { guard: Some(guard), ..FileOutput::create(target)? };
        output.ask_guard()?;
        Ok(output)
    }

    fn ask_guard(&self) -> Result<()> {
        let Some(guard) = &self.guard else { return Ok(()) };
        // With a trailing slash in the path, an existing file would not be found.
        let target = match &self.shown {
            Location::Local(path) => Location::Local(path.components().collect()),
            remote => remote.clone(),
        };
        // An empty file may always be replaced.
        if target.size()?.is_some_and(|size| size > 0) { guard(&target) } else { Ok(()) }
    }

    /// Prepares to write a file under a name that only planetree uses. Creates missing parent directories. Fails
    /// early if the file cannot be written.
    pub fn create(target: &Location) -> Result<Self> {
        interrupt::be_orderly();
        let sink = match target {
            Location::Local(path) => FileSink::Local(LocalFile::create(path, target)?),
            Location::Remote(remote) => {
                check_bucket(remote, target)?;
                // Outputs up to 64 MiB are buffered in memory, larger ones in a temporary file.
                let spool = HashingWriter::new(SpooledTempFile::new(64 << 20));
                FileSink::Bucket { remote: remote.clone(), spool }
            }
        };
        Ok(FileOutput {
            writer: BufWriter::with_capacity(64 << 10, sink),
            shown: target.clone(),
            guard: None,
        })
    }

    /// Writes a small file in one call. This works even after an interrupt, so that the status of stopped work can be
    /// saved.
    pub fn put(target: &Location, content: &[u8]) -> Result<()> {
        match target {
            Location::Local(_) => {
                let mut output = FileOutput::create(target)?;
                output.write_all(content).map_err(|error| Error::io(target, "write", error))?;
                output.commit()
            }
            Location::Remote(remote) if remote.uploads.is_none() => Err(refuse_http(target)),
            Location::Remote(remote) => {
                let content = bytes::Bytes::copy_from_slice(content);
                let request = retry(|| remote.store.put(&remote.path, content.clone().into()));
                wait(request).map(drop).map_err(|error| target.store_error("write", &error))
            }
        }
    }

    /// Makes the file visible and replaces an existing file at the target.
    pub fn commit(self) -> Result<()> {
        self.ask_guard()?; // a file may have appeared at the target in the meantime
        let FileOutput { writer, shown, .. } = self;
        let sink = writer.into_inner().map_err(|error| Error::io(&shown, "write", error.into_error()))?;
        match sink {
            FileSink::Local(file) => file.commit(&shown),
            FileSink::Bucket { remote, spool } => put(&remote, spool, &shown),
        }
    }
}

impl Write for FileOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            FileSink::Local(local) => local.file.write(bytes),
            FileSink::Bucket { spool, .. } => spool.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // neither variant buffers writes
    }
}

struct LocalFile {
    target: PathBuf,
    /// Path of the temporary file.
    path: PathBuf,
    /// The temporary file, open and locked.
    file: File,
    /// Parent directories that were created for the target, innermost first. They are removed again if the run fails.
    made: Vec<PathBuf>,
    done: bool,
}

impl LocalFile {
    fn create(target: &Path, shown: &Location) -> Result<Self> {
        let failed = |error: io::Error| Error::io(shown, "create the output", error);
        let Some(name) = target.file_name() else { return Err(nameless(shown)) };
        let parent = parent_of(target);
        // With a trailing slash in the path, the rename would expect a directory, so rebuild the path without it.
        let target = parent.join(name);
        refuse_target(&target, shown)?;
        let made = make_directories(&parent).map_err(failed)?;
        let prefix = format!(".{}.planetree-", name.to_string_lossy());
        remove_leftovers(&parent, &prefix);
        match new_locked_file(&parent, &prefix) {
            Ok((path, file)) => Ok(LocalFile { target, path, file, made, done: false }),
            Err(error) => {
                remove_made(&made);
                Err(failed(error))
            }
        }
    }

    fn commit(mut self, shown: &Location) -> Result<()> {
        let failed = |error: io::Error| Error::io(shown, "write", error);
        self.file.sync_all().map_err(failed)?;
        refuse_target(&self.target, shown)?; // a link or directory may have appeared in the meantime
        fs::rename(&self.path, &self.target).map_err(failed)?;
        self.done = true;
        // Readers see the file after the rename even if syncing the parent directory fails.
        let _ = File::open(parent_of(&self.target)).and_then(|parent| parent.sync_all());
        Ok(())
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if !self.done {
            // Errors are ignored, because the next run removes leftovers.
            let _ = fs::remove_file(&self.path);
            remove_made(&self.made);
        }
    }
}

fn remove_made(made: &[PathBuf]) {
    for directory in made {
        let _ = fs::remove_dir(directory); // fails if the directory is not empty
    }
}

/// Fails if the target exists and is not a regular file, because the rename would destroy a link or a device.
fn refuse_target(target: &Path, shown: &Location) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(target) else { return Ok(()) };
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(Error::place(
            shown,
            "this is a directory, not a file",
            "give the path of a file, for example one in this directory",
        ))
    } else if metadata.is_symlink() {
        Err(Error::place(shown, "the output is a symbolic link", "give the path that the link points to"))
    } else {
        Err(Error::place(shown, "this is not a regular file", "give the path of a new or regular file"))
    }
}

/// Creates a file and locks it, so that other runs do not mistake it for a leftover.
fn new_locked_file(parent: &Path, prefix: &str) -> io::Result<(PathBuf, File)> {
    loop {
        let path = parent.join(format!("{prefix}{}", run_id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        // Some network file systems do not support locks. On those, leftovers are not removed either.
        let _ = file.lock();
        // Another run may have removed the file before it was locked. In that case, create another one.
        if path.exists() {
            return Ok((path, file));
        }
    }
}

fn nameless(shown: &Location) -> Error {
    Error::usage(
        format_args!("{shown}: the output path does not end in a name"),
        "give the path of a file to create, for example out/model.parquet",
    )
}

/// Fails early if the object cannot be written.
fn check_bucket(remote: &Remote, shown: &Location) -> Result<()> {
    if remote.uploads.is_none() {
        return Err(refuse_http(shown));
    }
    if remote.path.filename().is_none() {
        return Err(nameless(shown));
    }
    // List the prefix, because other requests do not distinguish a missing bucket from a missing object.
    let listing = retry(|| remote.store.list_with_delimiter(Some(&remote.path)));
    let listed = wait_or_interrupt(listing)?.map_err(|error| shown.store_error("list", &error))?;
    // Some stores include the object itself in the list of the objects below its name.
    if listed.objects.iter().any(|meta| meta.location != remote.path) || !listed.common_prefixes.is_empty() {
        return Err(Error::place(
            shown,
            "this is a directory, not a file: there are objects below it",
            "give the URL of an object, for example one below it",
        ));
    }
    Ok(())
}

fn put(remote: &Remote, mut spool: HashingWriter<SpooledTempFile>, shown: &Location) -> Result<()> {
    let local = |error: io::Error| Error::io("temporary file", "read", error);
    let (bytes, digest) = (spool.written(), spool.end_stretch());
    let mut spool = spool.into_inner();
    spool.seek(SeekFrom::Start(0)).map_err(local)?;
    let failed = |error: &object_store::Error| shown.store_error("write", error);
    if bytes <= PART_BYTES as u64 {
        let mut content = Vec::with_capacity(bytes as usize);
        spool.read_to_end(&mut content).map_err(local)?;
        let content = bytes::Bytes::from(content);
        let request = retry(|| remote.store.put(&remote.path, content.clone().into()));
        return wait(request).map(drop).map_err(|error| failed(&error));
    }
    let Some(uploads) = remote.uploads.clone() else { return Err(refuse_http(shown)) };
    let (sender, path) = (uploads.clone(), remote.path.clone());
    let mut task = start(async move { upload(&*sender, &path, spool).await });
    let sent = match wait_or_interrupt(&mut task) {
        Ok(outcome) => outcome,
        Err(interrupted) => {
            if let Ok(Ok(sent)) = wait(task) {
                let _ = wait(uploads.abort_multipart(&remote.path, &sent.id));
            }
            return Err(interrupted);
        }
    };
    let sent = match sent {
        Ok(sent) => sent.map_err(|error| failed(&error))?,
        Err(_) => return Err(Error::place(shown, "an upload was aborted", "run the command again")),
    };
    match wait(retry(|| uploads.complete_multipart(&remote.path, &sent.id, sent.parts.clone()))) {
        Ok(_) => Ok(()),
        // The object may have been written although the response was lost, so compare its content.
        Err(_) if content_digest(shown).is_ok_and(|there| there == digest) => Ok(()),
        Err(error) => {
            let _ = wait(uploads.abort_multipart(&remote.path, &sent.id));
            Err(failed(&error))
        }
    }
}

fn content_digest(location: &Location) -> Result<crate::storage::Digest> {
    let mut hasher = HashingWriter::new(io::sink());
    io::copy(&mut location.open()?, &mut hasher).map_err(|error| Error::io(location, "read", error))?;
    Ok(hasher.end_stretch())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use std::sync::Arc;

    fn write(target: &Location, text: &[u8]) -> Result<()> {
        let mut output = FileOutput::create(target)?;
        output.write_all(text).unwrap();
        output.commit()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_whole_and_replaces_the_earlier_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/deep/model");
        let target = Location::Local(path.clone());
        for text in ["one", "two"] {
            write(&target, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(path.parent().unwrap()), ["model"]);
        }
        let with_slash = Location::Local(format!("{}/", path.display()).into());
        write(&with_slash, b"three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    }

    #[test]
    fn a_dropped_file_leaves_nothing_and_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let mut output = FileOutput::create(&Location::Local(root.path().join("new/deep/model"))).unwrap();
        output.write_all(&[7; 100_000]).unwrap();
        drop(output);
        assert_eq!(names(root.path()), Vec::<String>::new());
        let path = root.path().join("model");
        fs::write(&path, "old").unwrap();
        drop(FileOutput::create(&Location::Local(path.clone())).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn leftovers_of_the_dead_are_removed_and_of_the_living_kept() {
        let root = tempfile::tempdir().unwrap();
        let target = Location::Local(root.path().join("model"));
        fs::write(root.path().join(".model.planetree-dead"), "x").unwrap();
        let living = FileOutput::create(&target).unwrap();
        let second = FileOutput::create(&target).unwrap();
        assert_eq!(names(root.path()).len(), 2);
        second.commit().unwrap();
        living.commit().unwrap();
        assert_eq!(names(root.path()), ["model"]);
    }

    #[test]
    fn directories_links_and_devices_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let problem = |path: &Path| match FileOutput::create(&Location::Local(path.to_owned())) {
            Ok(_) => panic!("{} was taken", path.display()),
            Err(error) => error.to_string(),
        };
        assert!(problem(root.path()).ends_with("this is a directory, not a file"));
        let link = root.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        assert!(problem(&link).ends_with("the output is a symbolic link"));
        assert!(problem(Path::new("/dev/null")).ends_with("this is not a regular file"));
        assert!(problem(Path::new("..")).ends_with("the output path does not end in a name"));
        assert!(problem(&link.join("below")).contains("cannot create the output"));
    }

    #[test]
    fn a_guard_keeps_what_is_not_ours_locally_and_in_a_bucket() {
        let root = tempfile::tempdir().unwrap();
        let store = Arc::new(InMemory::new());
        let ours = || crate::storage::replaces(|head| head.has(b"ours"));
        for target in [Location::Local(root.path().join("file")), Location::in_memory(&store, "file")] {
            write(&target, b"theirs").unwrap();
            let error = FileOutput::guarded(&target, ours()).err().unwrap();
            assert!(
                error.to_string().ends_with("refusing to overwrite: not created by planetree, or damaged"),
                "{error}"
            );
            assert_eq!(target.read_all().unwrap().unwrap()[..], b"theirs"[..]);
            for text in ["", "ours, once", "ours, twice"] {
                target.remove().unwrap();
                write(&target, text.as_bytes()).unwrap();
                let mut output = FileOutput::guarded(&target, ours()).unwrap();
                output.write_all(b"ours").unwrap();
                output.commit().unwrap();
                assert_eq!(target.read_all().unwrap().unwrap()[..], b"ours"[..]);
            }
            // A foreign file that appears while the output is being written is kept, too.
            let mut output = FileOutput::guarded(&target, ours()).unwrap();
            output.write_all(b"late").unwrap();
            write(&target, b"theirs").unwrap();
            assert!(output.commit().is_err());
            assert_eq!(target.read_all().unwrap().unwrap()[..], b"theirs"[..]);
        }
        let with_slash = Location::Local(format!("{}/file/", root.path().display()).into());
        assert!(FileOutput::guarded(&with_slash, ours()).is_err());
        for hidden in [Location::Local(root.path().join(".file")), Location::in_memory(&store, ".git/file")] {
            assert!(FileOutput::guarded(&hidden, ours()).err().unwrap().to_string().contains("hidden"));
        }
        assert_eq!(names(root.path()), ["file"]);
    }

    #[test]
    fn objects_small_and_large_appear_whole() {
        let store = Arc::new(InMemory::new());
        let target = Location::in_memory(&store, "models/one");
        for bytes in [0, 5, PART_BYTES + 3] {
            let text = vec![42; bytes];
            let mut output = FileOutput::create(&target).unwrap();
            output.write_all(&text).unwrap();
            let before = target.size().unwrap();
            assert_ne!(before, Some(bytes as u64));
            output.commit().unwrap();
            assert!(target.read_all().unwrap().unwrap() == text);
        }
        let error = FileOutput::create(&Location::in_memory(&store, "models")).err().unwrap();
        assert!(error.to_string().contains("this is a directory"), "{error}");
    }
}
