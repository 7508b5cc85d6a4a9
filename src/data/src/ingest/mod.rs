//! Inputs to rows. One thread reads, unpacks and cuts; what it hands on ([`Work`]) is decoded on
//! all cores, in any order, and put back in order by whoever asked.

mod cut;
pub mod decode;
mod format;
mod guess;
mod input;
pub mod number;
mod open;
mod reader;
mod roles;
mod side;
mod table;
mod unpack;

pub use format::Format;
pub use input::{Input, expand};
pub use open::description_beside;
pub use reader::{Ingest, IngestOptions, Totals, Work};
pub use roles::{RoleOptions, check_feature_names};
pub use side::{SideFiles, SideReader};
pub use unpack::unpack;
