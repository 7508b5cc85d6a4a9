//! The input of metrics, and why it may be rejected.

use planetree_base::error::Error;
use std::fmt;

/// The rows of one query, in input order.
#[derive(Debug, Clone, Copy)]
pub struct QueryRows<'a> {
    /// Labels; NaN is missing and counts as 0, except for RMSE.
    pub labels: &'a [f32],
    /// Scores; NaN ranks last.
    pub scores: &'a [f64],
    /// Document ids, which may break ties.
    pub documents: Option<&'a [&'a str]>,
    /// The labels of all judged documents of the query, if not all of them are ranked.
    pub judged: Option<&'a [f32]>,
}

/// Why a query cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The offending row of the query, from 0.
    pub row: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Unfit {
    /// The error, with the location: a file, or a query of it.
    pub fn at(self, place: impl fmt::Display) -> Error {
        Error::place(place, self.problem, self.remedy)
    }
}
