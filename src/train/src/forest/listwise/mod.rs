//! Grows listwise trees, whose splits are chosen by the ranking of whole queries. This is the method RF-list of
//! Ibrahim & Carman, "Comparing pointwise and listwise objective functions for random-forest-based learning-to-rank"
//! (2016).
//!
//! Vocabulary: a *list* is a query with all its documents; a *tie* consists of the documents of a list that have the
//! same score because they are in the same leaf or in leaves with equal scores; *worth* is expected NDCG, or the
//! expected value of another metric, in integer units, so the worth of a tie is its contribution to the NDCG of its list; a *slot* is the position of a score
//! among the ties of a list; a *cut* is a candidate split; a *step* is the change of a list's worth from one cut to
//! the next.

mod candidates;
mod grow;
mod grower;
mod list_measure;
mod list_scores;
mod lists;
mod measure;
mod node_queries;
mod order;
mod rest;
mod scan;
mod strength;
mod sums;

pub(crate) use grower::BYTES_PER_ROW;
pub(super) use grower::grower;
pub(crate) use measure::NdcgVariant;
pub(crate) use strength::SplitOrder;
pub(super) use strength::strength;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
