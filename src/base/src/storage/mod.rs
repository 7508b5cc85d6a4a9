//! Storage: local paths and object stores behind one [`Location`], and atomic outputs. Async code of
//! this crate is confined to this module.

pub mod border;
mod checksum;
#[cfg(feature = "cloud")]
mod cloud;
pub mod interrupt;
mod location;
mod lock;
mod mapped;
mod pinned;
mod remote_read;
mod staging;
mod tree;

pub use checksum::{Digest, HashingWriter, RunningDigest, digest_of};
pub use location::{Access, Location};
pub use lock::PlaceLock;
pub use mapped::map_stretch;
pub use pinned::PinnedFile;
pub use staging::{FileOutput, StagedFile, Staging};
pub use tree::StoredFile;
