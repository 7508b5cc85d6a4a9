//! Decodes inputs into rows. One thread reads and decompresses the inputs and splits them into chunks. Each chunk is
//! a `DecodeTask` that any thread can run. The caller restores the order of the chunks.

mod batches;
mod chunk;
pub mod decode;
mod decompress;
mod encoding;
mod feature_choice;
mod format;
mod guess;
mod input;
mod input_error;
pub(crate) mod number;
mod open;
mod parquet_input;
mod parquet_pages;
mod reader;
mod roles;
mod side;
mod text_slices;

pub use decode::batch::is_number;
pub use decompress::decompress;
pub use encoding::{has_only_carriage_returns, only_carriage_returns, refuse_other_encodings};
pub(crate) use feature_choice::TextFeatures;
pub use format::InputFormat;
pub use input::{Input, expand};
pub use open::sibling_description;
pub(crate) use reader::{DecodeTask, IngestTotals};
pub use reader::{Ingest, IngestOptions};
pub use roles::{RoleOptions, check_feature_names};
pub(crate) use side::{SideFiles, SideReader};
