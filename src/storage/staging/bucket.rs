//! A staged prefix in an object store. Every file is a multipart upload that is completed only at
//! the end, so that listings show nothing before; then the marker is created, on condition that
//! there is none. The marker carries this run's id in its metadata: when the answer to the
//! creation is lost and its repetition says "exists already", the id tells whose it is.

use super::{refuse_existing, run_id};
use crate::error::{Error, Result};
use crate::storage::border;
use crate::storage::location::{Location, Remote};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload,
};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use tempfile::SpooledTempFile;
use tokio::task::JoinHandle;

const PART_BYTES: usize = 8 << 20;
const RUN_ID: &str = "planetree-run";

/// See [`super::Staging`].
pub struct BucketStaging {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    shown: Location,
    marker: &'static str,
    overwrite: bool,
    run_id: String,
    files: Vec<Upload>,
}

/// One file, on its way or there.
struct Upload {
    name: String,
    path: Path,
    bytes: u64,
    state: State,
}

enum State {
    Running(JoinHandle<object_store::Result<Box<dyn MultipartUpload>>>),
    Uploaded(Box<dyn MultipartUpload>),
    Visible,
    Gone,
}

impl BucketStaging {
    pub(super) fn begin(
        remote: &Remote,
        shown: &Location,
        marker: &'static str,
        overwrite: bool,
    ) -> Result<Self> {
        let staging = BucketStaging {
            store: remote.store.clone(),
            prefix: remote.path.clone(),
            shown: shown.clone(),
            marker,
            overwrite,
            run_id: run_id(),
            files: Vec::new(),
        };
        if shown.is_http() {
            return Err(Error::place(
                shown,
                "http(s) URLs can be read but not written",
                "write to a local path or to s3://, gs:// or az://",
            ));
        }
        // Asks for a listing, so that a missing bucket or a refused key shows before the work.
        let listing = border::persist(|| staging.store.list_with_delimiter(Some(&staging.prefix)));
        let listed =
            border::wait_or_interrupt(listing)?.map_err(|error| shown.store_error("list", &error))?;
        let marker_path = staging.prefix.clone().join(marker);
        let is_there = |path: &Path| listed.objects.iter().any(|meta| meta.location == *path);
        if is_there(&marker_path) && !overwrite {
            return Err(refuse_existing(shown));
        }
        Ok(staging)
    }

    pub(super) fn keep(&mut self, mut spool: SpooledTempFile, name: &str) -> Result<()> {
        // One upload at a time beside the one being written keeps memory bounded.
        self.settle()?;
        let local = |error: std::io::Error| Error::io("temporary file", "read", &error);
        let bytes = spool.seek(SeekFrom::End(0)).map_err(local)?;
        spool.rewind().map_err(local)?;
        let path = self.prefix.clone().join(name);
        let (store, upload_path) = (self.store.clone(), path.clone());
        let task = border::start(async move { upload(&*store, &upload_path, spool).await });
        self.files.push(Upload { name: name.to_owned(), path, bytes, state: State::Running(task) });
        Ok(())
    }

    /// Waits for the uploads under way.
    fn settle(&mut self) -> Result<()> {
        for file in &mut self.files {
            if let State::Running(task) = &mut file.state {
                let outcome = border::wait_or_interrupt(task)?;
                file.state = State::Gone;
                match outcome {
                    Ok(Ok(upload)) => file.state = State::Uploaded(upload),
                    Ok(Err(error)) => return Err(self.shown.store_error("write", &error)),
                    Err(_) => {
                        return Err(Error::place(
                            &self.shown,
                            "an upload ended early",
                            "run the command again",
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes one uploaded file visible.
    fn complete(&mut self, place: usize) -> Result<()> {
        let file = &mut self.files[place];
        if let State::Uploaded(upload) = &mut file.state {
            border::wait(complete(&*self.store, upload, &file.path, file.bytes))
                .map_err(|error| self.shown.store_error("write", &error))?;
            file.state = State::Visible;
        }
        Ok(())
    }

    pub(super) fn reopen(&mut self, name: &str) -> Result<File> {
        self.settle()?;
        let place = self.place_of(name);
        self.complete(place)?;
        let local = |error: std::io::Error| Error::io("temporary file", "write", &error);
        let mut file = tempfile::tempfile().map_err(local)?;
        let mut reader = self.shown.join(name).open()?;
        std::io::copy(&mut reader, &mut file).map_err(local)?;
        file.flush().map_err(local)?;
        file.rewind().map_err(local)?;
        Ok(file)
    }

    pub(super) fn discard(&mut self, name: &str) -> Result<()> {
        let place = self.place_of(name);
        let file = &mut self.files[place];
        border::wait(border::persist(|| self.store.delete(&file.path)))
            .map_err(|error| self.shown.store_error("remove a part of", &error))?;
        file.state = State::Gone;
        Ok(())
    }

    fn place_of(&self, name: &str) -> usize {
        self.files.iter().position(|file| file.name == name).expect("only names that were kept are asked for")
    }

    pub(super) fn commit(mut self, marker: &[u8], superseded: &[String]) -> Result<()> {
        self.settle()?;
        let marker_path = self.prefix.clone().join(self.marker);
        if !self.overwrite && border::wait(border::persist(|| self.store.head(&marker_path))).is_ok() {
            return Err(refuse_existing(&self.shown));
        }
        for place in 0..self.files.len() {
            self.complete(place)?;
        }
        self.put_marker(&marker_path, marker)?;
        let kept: Vec<String> = self.files.drain(..).map(|file| file.name).collect();
        for name in superseded.iter().filter(|name| !kept.contains(name)) {
            // What stays behind is in no manifest: untidy, but never read.
            let path = self.prefix.clone().join(name.as_str());
            let _ = border::wait(border::persist(|| self.store.delete(&path)));
        }
        Ok(())
    }

    fn put_marker(&mut self, path: &Path, marker: &[u8]) -> Result<()> {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(RUN_ID.into()), AttributeValue::from(self.run_id.clone()));
        let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let payload = PutPayload::from(Bytes::copy_from_slice(marker));
        let put = border::persist(|| self.store.put_opts(path, payload.clone(), options.clone()));
        match border::wait(put) {
            Ok(_) => Ok(()),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                match self.owner_of_marker(path)? {
                    Some(owner) if owner == self.run_id => Ok(()),
                    _ => {
                        self.forget_what_the_winner_uses(path);
                        Err(refuse_existing(&self.shown))
                    }
                }
            }
            Err(error) => Err(self.shown.store_error("write", &error)),
        }
    }

    /// The run whose marker is there.
    fn owner_of_marker(&self, path: &Path) -> Result<Option<String>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = border::wait(border::persist(|| self.store.get_opts(path, options.clone())))
            .map_err(|error| self.shown.store_error("read", &error))?;
        let key = Attribute::Metadata(RUN_ID.into());
        Ok(found.attributes.get(&key).map(|value| value.as_ref().to_owned()))
    }

    /// Of two runs with the same input, both have made the same objects: those that the winner's
    /// marker names must stay.
    fn forget_what_the_winner_uses(&mut self, path: &Path) {
        let winner = border::wait(border::persist(|| async { self.store.get(path).await?.bytes().await }));
        for file in &mut self.files {
            let used = match &winner {
                Ok(text) => memchr::memmem::find(text, file.name.as_bytes()).is_some(),
                Err(_) => true, // not known, so it stays
            };
            if used {
                file.state = State::Gone;
            }
        }
    }
}

impl Drop for BucketStaging {
    fn drop(&mut self) {
        for file in &mut self.files {
            // Best effort: an upload that cannot be aborted never becomes visible either.
            match &mut file.state {
                State::Running(task) => {
                    if let Ok(Ok(mut upload)) = border::wait(task) {
                        let _ = border::wait(upload.abort());
                    }
                }
                State::Uploaded(upload) => {
                    let _ = border::wait(upload.abort());
                }
                State::Visible => {
                    let _ = border::wait(border::persist(|| self.store.delete(&file.path)));
                }
                State::Gone => {}
            }
        }
    }
}

/// Makes an upload visible. The answer may be lost although the object is there; its name holds the
/// hash of its content, so an object of that name and size is the one we sent.
async fn complete(
    store: &dyn ObjectStore,
    upload: &mut Box<dyn MultipartUpload>,
    path: &Path,
    bytes: u64,
) -> object_store::Result<()> {
    const TRIES: u32 = 4;
    let mut tried = 0;
    loop {
        tried += 1;
        let Err(error) = upload.complete().await else { return Ok(()) };
        let there = border::persist(|| store.head(path)).await;
        if there.is_ok_and(|meta| meta.size == bytes) {
            return Ok(());
        }
        if tried == TRIES {
            return Err(error);
        }
    }
}

/// Sends a file's bytes without making it visible.
async fn upload(
    store: &dyn ObjectStore,
    path: &Path,
    mut spool: SpooledTempFile,
) -> object_store::Result<Box<dyn MultipartUpload>> {
    let mut upload = border::persist(|| store.put_multipart(path)).await?;
    let outcome = async {
        loop {
            let mut parts = Vec::new();
            while parts.len() < 4 {
                let part = next_part(&mut spool)?;
                if part.is_empty() {
                    break;
                }
                parts.push(upload.put_part(part.into()));
            }
            if parts.is_empty() {
                return Ok(());
            }
            futures::future::try_join_all(parts).await?;
        }
    };
    match outcome.await {
        Ok(()) => Ok(upload),
        Err(error) => {
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

fn next_part(spool: &mut SpooledTempFile) -> object_store::Result<Bytes> {
    let mut part = Vec::with_capacity(PART_BYTES);
    spool
        .take(PART_BYTES as u64)
        .read_to_end(&mut part)
        .map_err(|error| object_store::Error::Generic { store: "temporary file", source: Box::new(error) })?;
    Ok(part.into())
}
