//! Maps files into memory.

use bytes::Bytes;
use memmap2::MmapOptions;
use std::fs::File;
use std::io;

/// Maps a byte range of a file into memory. The range stays mapped as long as the returned bytes, or slices of these
/// bytes, exist.
///
/// The file must not shrink while it is mapped, because reading a truncated part kills the process. Only files that
/// planetree wrote are mapped. These files are never changed in place.
#[expect(unsafe_code, reason = "mapping is unsafe because others could change the file; see above")]
pub fn map_stretch(file: &File, offset: u64, length: usize) -> io::Result<Bytes> {
    // SAFETY: planetree wrote the complete file, verified it, and replaces it only by renaming another file over it.
    let map = unsafe { MmapOptions::new().offset(offset).len(length).map(file)? };
    Ok(Bytes::from_owner(map))
}
