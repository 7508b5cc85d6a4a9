//! Keeps track of the files below a prefix of an object store that do not belong to the current output: files of
//! replaced outputs, which readers may still need, and files of runs that failed.
//!
//! The marker of an output lists its files. Before a run makes a file visible, it saves a copy of the marker that
//! will list the file. Before it replaces a marker, it saves a copy of the old marker. Each copy is a separate object
//! whose name contains a hash of its content. Every visible file is therefore listed by the current marker or by a
//! copy. Files that are listed only by copies older than [`GRACE`] are no longer needed, and the run that holds the
//! turn (the right to publish, see `turn.rs`) removes them.

use super::turn::Turn;
use crate::storage::border::{retry, wait};
use crate::storage::digest_of;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use std::time::Duration;

/// Time for which the files of a replaced output are kept for processes that are still reading them.
pub(super) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// The saved copies of markers below one prefix.
pub(super) struct History {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// Name of the current marker.
    pub(super) marker: &'static str,
    pub(super) grace: Duration,
}

impl History {
    fn stem(&self) -> &str {
        self.marker.strip_suffix(".json").unwrap_or(self.marker)
    }

    /// Returns the path of the object that identifies the run that holds the turn.
    pub(super) fn turn_path(&self) -> Path {
        self.prefix.clone().join(format!("{}.lock", self.stem()))
    }

    fn path_of(&self, marker: &[u8]) -> Path {
        let digest = digest_of(marker).to_string();
        self.prefix.clone().join(format!("{}-{}.json", self.stem(), &digest[..16]))
    }

    /// Saves a copy of a marker. The files that the marker lists are kept for the grace period from now on.
    pub(super) fn note(&self, marker: &[u8]) -> object_store::Result<()> {
        let (path, marker) = (self.path_of(marker), Bytes::copy_from_slice(marker));
        wait(retry(|| self.store.put(&path, PutPayload::from(marker.clone())))).map(drop)
    }

    /// Checks whether there is a saved copy of a marker.
    pub(super) fn has(&self, marker: &[u8]) -> object_store::Result<bool> {
        let path = self.path_of(marker);
        match wait(retry(|| self.store.head(&path))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the saved copy of a marker. Errors are ignored, because a later run removes old copies anyway.
    pub(super) fn forget(&self, marker: &[u8]) {
        let path = self.path_of(marker);
        let _ = wait(retry(|| self.store.delete(&path)));
    }

    /// Removes those of the files `names` that are listed neither by the current marker nor by a saved copy. The
    /// saved copy of the marker `but_for` does not count.
    pub(super) fn remove_unnamed(
        &self,
        names: &[String],
        but_for: Option<&[u8]>,
    ) -> object_store::Result<()> {
        let but_for = but_for.map(|marker| self.path_of(marker));
        let listed = self.list()?;
        let notes =
            listed.iter().filter(|meta| self.is_note(meta) && Some(&meta.location) != but_for.as_ref());
        let named = self.texts(notes)?;
        for name in names.iter().filter(|name| !names_it(&named, name)) {
            let path = self.prefix.clone().join(name.as_str());
            wait(retry(|| self.store.delete(&path)))?;
        }
        Ok(())
    }

    /// Removes the files of outputs that were replaced or abandoned longer ago than the grace period, and the saved
    /// copies of their markers. Stops if another run has taken over the turn.
    pub(super) fn clean(&self, turn: &mut Turn) -> object_store::Result<()> {
        let listed = self.list()?;
        // The current marker has just been written, so the latest modification time is the store's current time.
        let Some(now) = listed.iter().map(|meta| meta.last_modified).max() else { return Ok(()) };
        let is_old =
            |meta: &&ObjectMeta| (now - meta.last_modified).to_std().is_ok_and(|age| age >= self.grace);
        let (old, young): (Vec<_>, Vec<_>) =
            listed.iter().filter(|meta| self.is_note(meta)).partition(is_old);
        if old.is_empty() {
            return Ok(());
        }
        let named = self.texts(young.into_iter())?;
        for note in old {
            let Some(text) = self.text(&note.location)? else { continue };
            let text = [text];
            for file in listed.iter().filter(|meta| !self.is_note(meta)) {
                let name = file.location.filename().unwrap_or_default();
                if name != self.marker && names_it(&text, name) && !names_it(&named, name) {
                    if !turn.hold() {
                        return Ok(());
                    }
                    wait(retry(|| self.store.delete(&file.location)))?;
                }
            }
            if !turn.hold() {
                return Ok(());
            }
            wait(retry(|| self.store.delete(&note.location)))?;
        }
        Ok(())
    }

    fn list(&self) -> object_store::Result<Vec<ObjectMeta>> {
        Ok(wait(retry(|| self.store.list_with_delimiter(Some(&self.prefix))))?.objects)
    }

    /// Checks whether an object is a saved copy of a marker, with a name such as `_manifest-0123456789abcdef.json`.
    fn is_note(&self, meta: &ObjectMeta) -> bool {
        let name = meta.location.filename().unwrap_or_default();
        let digest = name
            .strip_prefix(self.stem())
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(".json"));
        digest.is_some_and(|digest| {
            digest.len() == 16 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    }

    /// Reads the current marker and the given saved copies of markers.
    fn texts<'a>(&self, notes: impl Iterator<Item = &'a ObjectMeta>) -> object_store::Result<Vec<Bytes>> {
        let mut texts = Vec::new();
        texts.extend(self.text(&self.prefix.clone().join(self.marker))?);
        for note in notes {
            texts.extend(self.text(&note.location)?);
        }
        Ok(texts)
    }

    fn text(&self, path: &Path) -> object_store::Result<Option<Bytes>> {
        match wait(retry(|| async { self.store.get(path).await?.bytes().await })) {
            Ok(text) => Ok(Some(text)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn names_it(markers: &[Bytes], name: &str) -> bool {
    markers.iter().any(|marker| memchr::memmem::find(marker, name.as_bytes()).is_some())
}
