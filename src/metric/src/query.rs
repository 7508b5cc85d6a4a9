//! One query as metrics see it, and why it may be refused.

use planetree_base::error::Error;
use std::fmt;

/// The rows of one query, in the order of the input.
#[derive(Debug, Clone, Copy)]
pub struct QueryRows<'a> {
    /// Labels; one that is no number is missing and counts as 0, but not for the RMSE.
    pub labels: &'a [f32],
    /// Scores; one that is no number comes last.
    pub scores: &'a [f64],
    /// Document ids, by which ties may be settled.
    pub documents: Option<&'a [&'a str]>,
    /// The labels of all documents of the query that were judged, when not all of them are ranked.
    pub judged: Option<&'a [f32]>,
}

/// Why a query cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The row of the query, counted from 0, that is at fault.
    pub row: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Unfit {
    /// The error, at a place that the caller knows: a file, or a query of it.
    pub fn at(self, place: impl fmt::Display) -> Error {
        Error::place(place, self.problem, self.remedy)
    }
}
