//! Uploads a file in parts, which the store does not show before the upload is completed.

use crate::storage::border::retry;
use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartId, PutPayload};
use std::io::Read;
use tempfile::SpooledTempFile;

/// Size of an upload part in bytes.
pub(super) const PART_BYTES: usize = 8 << 20;

/// A multipart upload of which the store has received all parts. It is not visible until it is completed.
pub(super) struct Upload {
    pub(super) id: MultipartId,
    pub(super) parts: Vec<PartId>,
}

/// Uploads a file without making it visible.
pub(super) async fn upload(
    uploads: &dyn MultipartStore,
    path: &Path,
    mut spool: SpooledTempFile,
) -> object_store::Result<Upload> {
    /// Maximum number of parts that are uploaded concurrently.
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
