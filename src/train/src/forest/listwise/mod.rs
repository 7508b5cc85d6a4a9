//! Trees whose cuts are chosen by the ranking of whole queries (RF-list of Ibrahim & Carman).
//!
//! Vocabulary: a *list* is a query with all its documents; a *tie* is the documents of a list that
//! share a score because their leaves do; a *worth* is a share of expected NDCG as a whole number; a
//! *slot* is where a score falls among a list's ties; a *step* is what changes in a list's
//! worth from one cut to the next.

mod candidates;
mod grow;
mod grower;
mod lists;
mod measure;
mod order;
mod rest;
mod scan;
mod strength;
mod sums;

pub use grower::{BYTES_PER_ROW, grower};
pub use measure::Yardstick;
pub use strength::{SplitOrder, strength};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
