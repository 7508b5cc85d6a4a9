//! A stretch of a local file as memory.

use bytes::Bytes;
use memmap2::MmapOptions;
use std::fs::File;
use std::io;

/// Maps a stretch of a file; it stays mapped as long as the bytes or parts of them are held.
///
/// The file must not shrink meanwhile: the system ends a process that reads what is gone. We map only
/// files that we wrote under a name of their own and never change in place.
#[expect(unsafe_code, reason = "mapping is unsafe because others could change the file; see above")]
pub fn map_stretch(file: &File, offset: u64, length: usize) -> io::Result<Bytes> {
    // SAFETY: the file is ours, complete, checked, and replaced only by renaming another over it.
    let map = unsafe { MmapOptions::new().offset(offset).len(length).map(file)? };
    Ok(Bytes::from_owner(map))
}
