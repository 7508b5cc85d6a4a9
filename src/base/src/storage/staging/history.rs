//! What a prefix of an object store holds beside the output that is there: files that its readers may
//! still need, and files of runs that did not get to their end.
//!
//! Before a run makes a file visible, it writes down the marker that will name it; before it replaces
//! a marker, it writes down the old one. Each is an object of its own, called by its content. So every
//! file is named somewhere, and one that is named only by markers written down longer ago than
//! [`GRACE`] belongs to nobody. Whoever has the turn removes it.

use super::turn::Turn;
use crate::storage::border::{retry, wait};
use crate::storage::digest_of;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use std::time::Duration;

/// How long the files of a replaced output stay for those who read them.
pub(super) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// The markers that were written down.
pub(super) struct History {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// The name of the marker that is in force.
    pub(super) marker: &'static str,
    pub(super) grace: Duration,
}

impl History {
    fn stem(&self) -> &str {
        self.marker.strip_suffix(".json").unwrap_or(self.marker)
    }

    /// The object that says whose turn it is.
    pub(super) fn turn_path(&self) -> Path {
        self.prefix.clone().join(format!("{}.lock", self.stem()))
    }

    fn path_of(&self, marker: &[u8]) -> Path {
        let digest = digest_of(marker).to_string();
        self.prefix.clone().join(format!("{}-{}.json", self.stem(), &digest[..16]))
    }

    /// Writes a marker down; what it names stays from now on for the time of grace.
    pub(super) fn note(&self, marker: &[u8]) -> object_store::Result<()> {
        let (path, marker) = (self.path_of(marker), Bytes::copy_from_slice(marker));
        wait(retry(|| self.store.put(&path, PutPayload::from(marker.clone())))).map(drop)
    }

    /// Whether a marker is written down.
    pub(super) fn has(&self, marker: &[u8]) -> object_store::Result<bool> {
        let path = self.path_of(marker);
        match wait(retry(|| self.store.head(&path))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Strikes a marker out. Best effort: one that stays is struck out after the time of grace.
    pub(super) fn forget(&self, marker: &[u8]) {
        let path = self.path_of(marker);
        let _ = wait(retry(|| self.store.delete(&path)));
    }

    /// Removes files that neither the marker in force names nor one that was written down, other than
    /// `but_for`.
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

    /// Removes what was replaced or given up longer ago than the time of grace, and its marker.
    pub(super) fn clean(&self, turn: &mut Turn) -> object_store::Result<()> {
        let listed = self.list()?;
        // The marker in force has just been written, so the latest time is the store's now.
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

    /// Whether an object is a marker that was written down: `_manifest-<16 digits>.json`.
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

    /// The marker in force and some that were written down.
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
