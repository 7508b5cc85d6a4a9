//! How good a ranking is: one query's value, and means over queries that add up in any order.
//!
//! ```text
//! metrics, convention ──► judge ◄── labels, scores of a query
//!                           │  rank once, settle ties, look from the top
//!                           ▼
//!                    a value a metric, or none ──► means, which merge in any order
//! ```
//!
//! Vocabulary:
//!
//! - a *convention* is all rules that tools disagree on; a *preset* is a named one;
//! - a *gain* is what a label is worth, a *discount* what is left of it at a rank; *graded* metrics look at
//!   gains, *binary* ones at which documents are relevant, *pairs* at which of two is scored higher;
//! - *ties* are documents of equal scores, a *span* of ranks that they share;
//! - an *empty* query has nothing relevant.

mod auc;
mod convention;
mod custom;
mod dcg;
mod discount;
mod err;
mod expression;
mod gain;
mod inversions;
mod judge;
mod kendall;
mod map;
mod mean;
mod mrr;
mod name;
mod ndcg;
mod precision;
mod prepared;
mod query;
mod ranked;
mod ranking;
mod recall;
mod rmse;
mod swap;
mod value;

pub use convention::{
    Convention, ConventionPreset, Empty, ErrGrade, Ideal, MapNormaliser, Short, Switch, Threshold, Ties,
    Width, switches,
};
pub use custom::CustomMetric;
pub use discount::Discount;
pub use err::satisfies;
pub use expression::Expression;
pub use gain::Gain;
pub use judge::Judge;
pub use mean::Mean;
pub use name::help_table;
pub use prepared::{Prepared, evaluate};
pub use query::{QueryRows, Unfit};
pub use ranking::Scratch;

/// A metric by name and depth; `None` for the whole list, or the depth that the convention says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Root of the mean squared error, over rows.
    Rmse,
    /// Discounted cumulative gain over that of the best order.
    Ndcg(Option<u32>),
    /// Discounted cumulative gain.
    Dcg(Option<u32>),
    /// Expected reciprocal rank.
    Err(Option<u32>),
    /// Average precision.
    Map(Option<u32>),
    /// One over the rank of the first relevant document.
    Mrr(Option<u32>),
    /// The share of relevant documents among the first.
    Precision(Option<u32>),
    /// The share of the relevant documents that are among the first.
    Recall(Option<u32>),
    /// Area under the ROC curve.
    Auc,
    /// The part of this area between two false-positive rates, in percent.
    PartialAuc(u32, u32),
    /// Kendall's tau-b between scores and labels.
    KendallTau,
    /// Pairs of documents in the wrong order.
    Inversions,
    /// One that another crate defines.
    Custom(CustomMetric),
}

impl Metric {
    /// A metric of the caller's own: its name in logs and tables, whether higher values are better, and the value of one
    /// query, `None` if the query does not count. The function sees labels and scores in the order of the input, and is
    /// kept for the lifetime of the program.
    ///
    /// ```
    /// use planetree_metric::{Metric, QueryRows};
    ///
    /// let size = Metric::custom("documents", true, |rows: &QueryRows<'_>| Some(rows.labels.len() as f64));
    /// assert_eq!(size.to_string(), "documents");
    /// ```
    pub fn custom(
        name: &str,
        higher_is_better: bool,
        value: impl Fn(&QueryRows<'_>) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        Metric::Custom(CustomMetric::new(name, higher_is_better, value))
    }

    /// Whether more is better.
    pub fn higher_is_better(&self) -> bool {
        match self {
            Metric::Custom(custom) => custom.higher_is_better,
            metric => !matches!(metric, Metric::Rmse | Metric::Inversions),
        }
    }

    /// Whether `value` beats `best`.
    pub fn is_better(&self, value: f64, best: f64) -> bool {
        if self.higher_is_better() { value > best } else { value < best }
    }
}

/// A document without a label counts as one of label 0.
#[inline]
fn known(label: f32) -> f32 {
    if label.is_nan() { 0.0 } else { label }
}

#[cfg(test)]
mod tests;
