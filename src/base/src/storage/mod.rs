//! Reads from and atomically writes to local paths and object stores. Both are represented by the type [`Location`].
//! Only this module of the crate contains async code.

#[cfg(feature = "cloud")]
mod answer;
pub mod border;
mod checksum;
#[cfg(feature = "cloud")]
mod cloud;
mod format;
mod guard;
mod held;
pub mod interrupt;
mod location;
mod lock;
mod mapped;
mod open_files;
mod pinned;
mod redact;
#[cfg(feature = "cloud")]
mod refusal;
mod remote_read;
#[cfg(feature = "cloud")]
mod requests;
mod staging;
mod text_output;
mod tree;

pub use checksum::{Digest, HashingWriter, RunningDigest, digest_of};
pub use format::{
    Compression, FileFormat, MODEL_FORMATS, OutputFormats, REPORT_FORMATS, RUN_FORMATS, SCORES_FORMATS,
    STATS_FORMATS, TABLE_FORMATS, text_format,
};
pub use guard::{Guard, Head, foreign, head_of, refuse_dash, refuse_hidden, replaces};
pub use held::{FileVersion, HeldDirectory};
pub use location::{Access, Location};
pub use lock::PlaceLock;
pub use mapped::map_stretch;
pub use open_files::require_open_files;
pub use pinned::PinnedFile;
pub use redact::{redacted, redacted_message, redacted_url, without_urls};
pub use staging::{FileOutput, StagedFile, Staging};
pub use text_output::TextOutput;
pub use tree::StoredFile;
