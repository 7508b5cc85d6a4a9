//! How good a ranking is: one query's value, and means over queries that add up in any order.

/// A metric by name and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Root of the mean squared error.
    Rmse,
    /// NDCG at a depth; `None` for the whole list.
    Ndcg(Option<u32>),
    /// Expected reciprocal rank at a depth; `None` for the whole list.
    Err(Option<u32>),
}
