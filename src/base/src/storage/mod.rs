//! Where should the data be stored? Local paths and object stores behind one [`Location`]; outputs
//! that appear whole or not at all. The only place of the crate that knows async.

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
