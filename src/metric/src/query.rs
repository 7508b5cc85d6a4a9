//! Defines the input of metrics, and the error for input that cannot be evaluated.

use planetree_base::error::Error;
use std::fmt;

/// The rows of one query, in input order.
#[derive(Debug, Clone, Copy)]
pub struct QueryRows<'a> {
    /// Labels. NaN is a missing label, which counts as 0, except that RMSE ignores the row.
    pub labels: &'a [f32],
    /// Scores. NaN ranks last.
    pub scores: &'a [f64],
    /// Document ids, which are needed if the convention breaks ties by document id.
    pub documents: Option<&'a [&'a str]>,
    /// The labels of all judged documents of the query, including those that are not ranked; `None` if they are not
    /// known.
    pub judged: Option<&'a [f32]>,
}

/// Why a query cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Index of the offending row within the query; `None` if no single row is at fault.
    pub row: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Unfit {
    /// Converts the problem into an error at a location, such as a file or a query in a file.
    pub fn at(self, place: impl fmt::Display) -> Error {
        Error::place(place, self.problem, self.remedy)
    }
}
