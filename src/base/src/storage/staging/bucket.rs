//! Writes an output below a prefix of an object store, so that all its files become visible together. Every file is a
//! multipart upload that is completed only at the end, so that listings do not show the file earlier. Then the marker
//! object, which lists the files of the output, is written, on condition that the previous marker has not changed, or
//! that there still is no marker. The metadata of the marker contains the id of this run. If the response to the
//! write request is lost and the retry fails, the id shows whether this run wrote the marker.
//!
//! File names contain a hash of the content, so runs with the same input write the same objects, and a reader may
//! need an object long after its marker was replaced. Replaced files are therefore not removed at once, but at a
//! later commit, by the run that holds the *turn*, which is the right of one run at a time to publish (see `turn.rs`
//! and `history.rs`).

use super::history::{GRACE, History};
use super::turn::{Turn, read_version};
use super::upload::{Upload, upload};
use super::{refuse_existing, refuse_http, run_id};
use crate::error::{Error, Result};
use crate::storage::border::{retry, start, wait, wait_or_interrupt};
use crate::storage::location::{Location, Remote};
use bytes::Bytes;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, UpdateVersion,
};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;
use tempfile::SpooledTempFile;
use tokio::task::JoinHandle;

const RUN_ID: &str = "planetree-run";

/// An output prefix in an object store that is not visible yet; see [`super::Staging`].
pub struct BucketStaging {
    store: Arc<dyn ObjectStore>,
    uploads: Arc<dyn MultipartStore>,
    prefix: Path,
    shown: Location,
    marker: &'static str,
    overwrite: bool,
    run_id: String,
    files: Vec<StagedObject>,
    history: History,
}

/// One file of the output, and the state of its upload.
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
    /// The object is visible, but no longer part of the output.
    Unwanted,
    Gone,
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
            history: History {
                store: remote.store.clone(),
                prefix: remote.path.clone(),
                marker,
                grace: GRACE,
            },
        };
        // List the prefix first, so that a missing bucket or missing permission is reported before the work starts.
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
        // Waiting for the previous upload limits the memory to two files: one being uploaded and one being written.
        self.settle()?;
        let local = |error: std::io::Error| Error::io("temporary file", "read", error);
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

    /// Makes an uploaded file visible. If the response is lost, an existing object of the same name and size must be
    /// the uploaded file, because the name contains a hash of the content.
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
        // The file becomes visible before it is part of an output. Saving its name in the history allows a later run
        // to remove the file if this run is killed.
        let noted = self.history.note(name.as_bytes());
        noted.map_err(|error| self.shown.store_error("write", &error))?;
        self.complete(place)?;
        let local = |error: std::io::Error| Error::io("temporary file", "write", error);
        let mut file = tempfile::tempfile().map_err(local)?;
        let mut reader = self.shown.join(name).open()?;
        std::io::copy(&mut reader, &mut file).map_err(local)?;
        file.flush().map_err(local)?;
        file.rewind().map_err(local)?;
        Ok(file)
    }

    pub(super) fn discard(&mut self, name: &str) {
        let place = self.place_of(name);
        let file = &mut self.files[place];
        // The file is not removed yet, because the output of another run may contain it. Only the run that holds the
        // turn can check this.
        if matches!(file.state, UploadState::Visible) {
            file.state = UploadState::Unwanted;
        }
    }

    fn place_of(&self, name: &str) -> usize {
        self.files.iter().position(|file| file.name == name).expect("only names that were kept are looked up")
    }

    pub(super) fn commit(mut self, marker: &[u8]) -> Result<()> {
        self.settle()?;
        let marker_path = self.marker_path();
        if !self.overwrite && wait(retry(|| self.store.head(&marker_path))).is_ok() {
            return Err(refuse_existing(&self.shown));
        }
        let mut turn = self.take_turn(None)?;
        let mut notes = Notes::default();
        let published = self.publish(&mut turn, marker, &mut notes);
        // Errors while cleaning up are ignored: leftover files are not listed in any manifest, and keeping too many
        // files is better than losing one.
        match &published {
            Ok(()) => {
                if notes.old.is_some() {
                    tracing::warn!(
                        "{}: the files of the replaced output are kept for a day, because other processes may be reading \
                         them; until then, patterns such as *.parquet match them, too",
                        self.shown
                    );
                }
                // The output is visible now, so none of its files may be removed.
                self.files.retain(|file| matches!(file.state, UploadState::Unwanted));
                self.tidy(&mut turn, Some(marker));
                if turn.hold() {
                    let _ = self.history.clean(&mut turn);
                }
            }
            Err(_) if notes.ours => {
                self.tidy(&mut turn, Some(marker));
                self.unnote(&mut turn, notes.old);
            }
            // An earlier output had the same files, and readers may still need them, so they stay for the grace
            // period.
            Err(_) if notes.earlier => self.files.retain(|file| !matches!(file.state, UploadState::Visible)),
            Err(_) => {}
        }
        published
    }

    fn take_turn(&self, patience: Option<Duration>) -> Result<Turn> {
        Turn::take(&self.store, self.history.turn_path(), &self.run_id, &self.shown, patience)
    }

    /// Makes the files visible and replaces the current marker, if any, with the new one.
    fn publish(&mut self, turn: &mut Turn, marker: &[u8], notes: &mut Notes) -> Result<()> {
        /// Maximum number of attempts. An attempt fails if another run replaces the marker first, which can happen
        /// only if this run does not hold the turn.
        const TRIES: usize = 20;
        let shown = self.shown.clone();
        let failed = |error: object_store::Error| shown.store_error("write", &error);
        for _ in 0..TRIES {
            let old = read_version(&self.store, &self.marker_path()).map_err(failed)?;
            if old.is_some() && !self.overwrite {
                return Err(refuse_existing(&self.shown));
            }
            if !notes.ours && !notes.earlier {
                notes.earlier = self.history.has(marker).map_err(failed)?;
                notes.ours = !notes.earlier;
            }
            self.history.note(marker).map_err(failed)?;
            let (old, version) = old.unzip();
            notes.old = old.filter(|old| old[..] != *marker);
            if let Some(old) = &notes.old {
                self.history.note(old).map_err(failed)?;
            }
            for place in 0..self.files.len() {
                turn.hold();
                self.complete(place)?;
            }
            if self.put_marker(marker, version)? {
                return Ok(());
            }
        }
        Err(Error::place(
            &self.shown,
            "other runs keep replacing this output",
            "run the command again when the other runs have ended",
        ))
    }

    /// Cleans up after publishing failed: removes the saved copy of the old marker, provided that the old marker is
    /// still the current one.
    fn unnote(&self, turn: &mut Turn, old: Option<Bytes>) {
        if let Some(old) = old
            && turn.hold()
            && matches!(read_version(&self.store, &self.marker_path()), Ok(Some((there, _))) if there == old)
        {
            self.history.forget(&old);
        }
    }

    /// Writes the marker on condition that the current marker still has the version `old`, or that there is none if
    /// `old` is `None`. Returns false if the condition is not met.
    fn put_marker(&self, marker: &[u8], old: Option<UpdateVersion>) -> Result<bool> {
        let path = self.marker_path();
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(RUN_ID.into()), AttributeValue::from(self.run_id.clone()));
        let mode = old.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let payload = PutPayload::from(Bytes::copy_from_slice(marker));
        let put = |options: PutOptions| {
            wait(retry(|| self.store.put_opts(&path, payload.clone(), options.clone())))
        };
        let outcome = match put(options.clone()) {
            // The store does not support conditional requests, so the last writer wins.
            Err(object_store::Error::NotImplemented { .. }) => {
                put(PutOptions { mode: PutMode::Overwrite, ..options })
            }
            outcome => outcome,
        };
        match outcome {
            Ok(_) => Ok(true),
            Err(error) => match self.owner_of_marker(&path) {
                Ok(owner) if owner.as_ref() == Some(&self.run_id) => Ok(true),
                _ if is_taken(&error) => Ok(false),
                _ => Err(self.shown.store_error("write", &error)),
            },
        }
    }

    /// Returns the id of the run that wrote the current marker, if the metadata contains one.
    fn owner_of_marker(&self, path: &Path) -> object_store::Result<Option<String>> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = wait(retry(|| self.store.get_opts(path, options.clone())))?;
        let key = Attribute::Metadata(RUN_ID.into());
        Ok(found.attributes.get(&key).map(|value| value.as_ref().to_owned()))
    }

    /// Removes the files that this run made visible, except those that the current marker or a saved copy of a marker
    /// lists. The saved copy of the marker `noted` does not count and is removed, too.
    fn tidy(&mut self, turn: &mut Turn, noted: Option<&[u8]>) {
        let is_visible =
            |file: &StagedObject| matches!(file.state, UploadState::Visible | UploadState::Unwanted);
        let visible = self.files.iter().filter(|file| is_visible(file));
        let names: Vec<String> = visible.map(|file| file.name.clone()).collect();
        for file in self.files.iter().filter(|file| matches!(file.state, UploadState::Unwanted)) {
            self.history.forget(file.name.as_bytes());
        }
        if !turn.hold() || (!names.is_empty() && self.history.remove_unnamed(&names, noted).is_err()) {
            return;
        }
        if let Some(noted) = noted {
            self.history.forget(noted);
        }
        self.files.retain(|file| !is_visible(file));
    }
}

/// The copies of markers that a run saved before it published its output.
#[derive(Default)]
struct Notes {
    /// Whether this run saved a copy of its own marker, and no copy of an equal marker existed before.
    ours: bool,
    /// Whether an earlier run had already saved a copy of an equal marker.
    earlier: bool,
    /// The marker that this run replaces, if it differs from the marker of this run.
    old: Option<Bytes>,
}

fn is_taken(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. })
}

impl Drop for BucketStaging {
    fn drop(&mut self) {
        let mut is_visible = false;
        for file in &mut self.files {
            // Errors are ignored, because an upload that was not completed never becomes visible.
            let upload = match std::mem::replace(&mut file.state, UploadState::Gone) {
                UploadState::Running(task) => wait(task).ok().and_then(Result::ok),
                UploadState::Uploaded(upload) => Some(upload),
                UploadState::Gone => None,
                visible => {
                    file.state = visible;
                    is_visible = true;
                    None
                }
            };
            if let Some(upload) = upload {
                let _ = wait(self.uploads.abort_multipart(&file.path, &upload.id));
            }
        }
        // Files that were reopened to add columns became visible before the commit and must be removed.
        if is_visible && let Ok(mut turn) = self.take_turn(Some(Duration::from_secs(5))) {
            self.tidy(&mut turn, None);
        }
    }
}

#[cfg(test)]
mod tests;
