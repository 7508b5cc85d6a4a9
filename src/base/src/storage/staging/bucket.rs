//! Staging for a prefix in an object store. Each file is a multipart upload that is completed only
//! at the end, so listings show nothing before; then the marker is created on condition that there
//! is none. The marker's metadata hold this run's id: when the response to the creation is lost and
//! the retry reports "already exists", the id tells which run created it.
//!
//! Files are named by their content, so runs with the same input write the same objects. A run
//! never removes an object that the current marker lists.

use super::{refuse_existing, refuse_http, run_id};
use crate::error::{Error, Result};
use crate::storage::border::{retry, start, wait, wait_or_interrupt};
use crate::storage::location::{Location, Remote};
use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, MultipartId, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload,
};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use tempfile::SpooledTempFile;
use tokio::task::JoinHandle;

/// Size of an upload part in bytes.
pub(super) const PART_BYTES: usize = 8 << 20;
const RUN_ID: &str = "planetree-run";

/// See [`super::Staging`].
pub struct BucketStaging {
    store: Arc<dyn ObjectStore>,
    uploads: Arc<dyn MultipartStore>,
    prefix: Path,
    shown: Location,
    marker: &'static str,
    overwrite: bool,
    run_id: String,
    files: Vec<StagedObject>,
}

/// One file of the output.
struct StagedObject {
    name: String,
    path: Path,
    bytes: u64,
    state: UploadState,
}

enum UploadState {
    Running(JoinHandle<object_store::Result<Upload>>),
    Uploaded(Upload),
    Visible,
    Gone,
}

/// An upload with all its parts received by the store.
pub(super) struct Upload {
    pub(super) id: MultipartId,
    pub(super) parts: Vec<PartId>,
}

impl BucketStaging {
    pub(super) fn begin(
        remote: &Remote,
        shown: &Location,
        marker: &'static str,
        overwrite: bool,
    ) -> Result<Self> {
        let Some(uploads) = remote.uploads.clone() else {
            return Err(refuse_http(shown));
        };
        let staging = BucketStaging {
            store: remote.store.clone(),
            uploads,
            prefix: remote.path.clone(),
            shown: shown.clone(),
            marker,
            overwrite,
            run_id: run_id(),
            files: Vec::new(),
        };
        // List first, so that a missing bucket or denied access fails before the work starts.
        let listing = retry(|| staging.store.list_with_delimiter(Some(&staging.prefix)));
        let listed = wait_or_interrupt(listing)?.map_err(|error| shown.store_error("list", &error))?;
        let marker_path = staging.marker_path();
        if !overwrite && listed.objects.iter().any(|meta| meta.location == marker_path) {
            return Err(refuse_existing(shown));
        }
        Ok(staging)
    }

    fn marker_path(&self) -> Path {
        self.prefix.clone().join(self.marker)
    }

    pub(super) fn keep(&mut self, mut spool: SpooledTempFile, name: &str) -> Result<()> {
        // One upload at a time besides the file being written bounds memory.
        self.settle()?;
        let local = |error: std::io::Error| Error::io("temporary file", "read", &error);
        let bytes = spool.seek(SeekFrom::End(0)).map_err(local)?;
        spool.rewind().map_err(local)?;
        let path = self.prefix.clone().join(name);
        let (uploads, upload_path) = (self.uploads.clone(), path.clone());
        let task = start(async move { upload(&*uploads, &upload_path, spool).await });
        self.files.push(StagedObject {
            name: name.to_owned(),
            path,
            bytes,
            state: UploadState::Running(task),
        });
        Ok(())
    }

    /// Waits for uploads in progress.
    fn settle(&mut self) -> Result<()> {
        for file in &mut self.files {
            if let UploadState::Running(task) = &mut file.state {
                let outcome = wait_or_interrupt(task)?;
                file.state = UploadState::Gone;
                match outcome {
                    Ok(Ok(upload)) => file.state = UploadState::Uploaded(upload),
                    Ok(Err(error)) => return Err(self.shown.store_error("write", &error)),
                    Err(_) => {
                        return Err(Error::place(
                            &self.shown,
                            "an upload was aborted",
                            "run the command again",
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes an uploaded file visible. If the response is lost, an object of the same name and size
    /// is the one we sent, because the name contains the hash of the content.
    fn complete(&mut self, place: usize) -> Result<()> {
        let file = &mut self.files[place];
        let UploadState::Uploaded(upload) = &file.state else { return Ok(()) };
        let completed =
            wait(retry(|| self.uploads.complete_multipart(&file.path, &upload.id, upload.parts.clone())));
        if let Err(error) = completed
            && !wait(retry(|| self.store.head(&file.path))).is_ok_and(|meta| meta.size == file.bytes)
        {
            return Err(self.shown.store_error("write", &error));
        }
        file.state = UploadState::Visible;
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

    pub(super) fn discard(&mut self, name: &str) {
        let place = self.place_of(name);
        self.remove_unused(&[name.to_owned()]);
        self.files[place].state = UploadState::Gone;
    }

    fn place_of(&self, name: &str) -> usize {
        self.files.iter().position(|file| file.name == name).expect("only names that were kept are asked for")
    }

    pub(super) fn commit(mut self, marker: &[u8], superseded: &[String]) -> Result<()> {
        self.settle()?;
        let marker_path = self.marker_path();
        if !self.overwrite && wait(retry(|| self.store.head(&marker_path))).is_ok() {
            return Err(refuse_existing(&self.shown));
        }
        for place in 0..self.files.len() {
            self.complete(place)?;
        }
        self.put_marker(&marker_path, marker)?;
        // From here on the output is visible, so nothing of it may be removed.
        let files = std::mem::take(&mut self.files);
        self.remove_unused(superseded);
        for file in files.iter().filter(|file| matches!(file.state, UploadState::Visible)) {
            let there = wait(retry(|| self.store.head(&file.path)));
            if matches!(there, Err(object_store::Error::NotFound { .. })) {
                return Err(Error::place(
                    self.shown.join(&file.name),
                    "removed by another run that wrote to this location at the same time",
                    "run the command again with --overwrite, one run at a time",
                ));
            }
        }
        Ok(())
    }

    fn put_marker(&mut self, path: &Path, marker: &[u8]) -> Result<()> {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(RUN_ID.into()), AttributeValue::from(self.run_id.clone()));
        let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let payload = PutPayload::from(Bytes::copy_from_slice(marker));
        match wait(retry(|| self.store.put_opts(path, payload.clone(), options.clone()))) {
            Ok(_) => Ok(()),
            Err(error) => match self.owner_of_marker(path) {
                Ok(owner) if owner.as_ref() == Some(&self.run_id) => Ok(()),
                _ if is_taken(&error) => Err(refuse_existing(&self.shown)),
                _ => Err(self.shown.store_error("write", &error)),
            },
        }
    }

    /// The run that wrote the current marker.
    fn owner_of_marker(&self, path: &Path) -> object_store::Result<Option<String>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = wait(retry(|| self.store.get_opts(path, options.clone())))?;
        let key = Attribute::Metadata(RUN_ID.into());
        Ok(found.attributes.get(&key).map(|value| value.as_ref().to_owned()))
    }

    /// Removes objects that the current marker does not list. Best effort: leftovers are in no
    /// manifest and do no harm.
    fn remove_unused(&self, names: &[String]) {
        let marker_path = self.marker_path();
        let marker = match wait(retry(|| async { self.store.get(&marker_path).await?.bytes().await })) {
            Ok(marker) => marker,
            Err(object_store::Error::NotFound { .. }) => Bytes::new(),
            Err(_) => return, // its list of files is unknown
        };
        for name in names.iter().filter(|name| memchr::memmem::find(&marker, name.as_bytes()).is_none()) {
            let path = self.prefix.clone().join(name.as_str());
            let _ = wait(retry(|| self.store.delete(&path)));
        }
    }
}

fn is_taken(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. })
}

impl Drop for BucketStaging {
    fn drop(&mut self) {
        let mut visible = Vec::new();
        for file in std::mem::take(&mut self.files) {
            // Best effort: an upload that cannot be aborted never becomes visible.
            let upload = match file.state {
                UploadState::Running(task) => wait(task).ok().and_then(Result::ok),
                UploadState::Uploaded(upload) => Some(upload),
                UploadState::Visible => {
                    visible.push(file.name);
                    None
                }
                UploadState::Gone => None,
            };
            if let Some(upload) = upload {
                let _ = wait(self.uploads.abort_multipart(&file.path, &upload.id));
            }
        }
        if !visible.is_empty() {
            self.remove_unused(&visible);
        }
    }
}

/// Uploads a file without making it visible.
pub(super) async fn upload(
    uploads: &dyn MultipartStore,
    path: &Path,
    mut spool: SpooledTempFile,
) -> object_store::Result<Upload> {
    /// Number of concurrent parts.
    const AT_A_TIME: usize = 4;
    let id = retry(|| uploads.create_multipart(path)).await?;
    let outcome = async {
        let mut parts = Vec::new();
        loop {
            let mut wave = Vec::new();
            while wave.len() < AT_A_TIME {
                let part = next_part(&mut spool)?;
                if part.is_empty() {
                    break;
                }
                let (number, payload, id) = (parts.len() + wave.len(), PutPayload::from(part), &id);
                wave.push(retry(move || uploads.put_part(path, id, number, payload.clone())));
            }
            if wave.is_empty() {
                return Ok(parts);
            }
            parts.extend(futures::future::try_join_all(wave).await?);
        }
    };
    match outcome.await {
        Ok(parts) => Ok(Upload { id, parts }),
        Err(error) => {
            let _ = uploads.abort_multipart(path, &id).await;
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
