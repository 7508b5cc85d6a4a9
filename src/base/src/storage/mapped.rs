//! Memory-mapped files.

use bytes::Bytes;
use memmap2::MmapOptions;
use std::fs::File;
use std::io;

/// Maps a byte range of a file; it stays mapped as long as the bytes or slices of them exist.
///
/// The file must not shrink meanwhile: reading a truncated part kills the process. We map only files
/// that we wrote under their own names and never change in place.
#[expect(unsafe_code, reason = "mapping is unsafe because others could change the file; see above")]
pub fn map_stretch(file: &File, offset: u64, length: usize) -> io::Result<Bytes> {
    // SAFETY: the file is ours, complete, checked, and replaced only by renaming another over it.
    let map = unsafe { MmapOptions::new().offset(offset).len(length).map(file)? };
    Ok(Bytes::from_owner(map))
}
