//! Computes ranking metrics: one value per query and metric, and means over queries that can be merged in any order.
//!
//! ```text
//! metrics, convention ──► Judge ◄── labels, scores of a query
//!                           │  rank once, break ties, scan from the top
//!                           ▼
//!              one value per metric, or none ──► means, which merge in any order
//! ```
//!
//! Vocabulary:
//!
//! - a *convention* is the set of rules on which tools differ, and a *preset* is a named convention;
//! - a *gain* is the value of a label, and a *discount* is the factor by which a gain is multiplied at a rank;
//! - *graded* metrics use gains, *binary* metrics use relevance, and *pairwise* metrics use the order of two
//!   documents;
//! - *ties* are documents with equal scores, and a *span* is the range of ranks that they share;
//! - an *empty* query has no relevant documents;
//! - a *pooled* metric has one value for the documents of all queries together.

#![warn(unreachable_pub)]

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
mod pool;
mod precision;
mod prepared;
mod query;
mod r_precision;
mod random_order;
mod ranked;
mod ranking;
mod recall;
mod rmse;
mod success;
mod swap;
mod value;

pub use convention::{
    AreaScope, Convention, ConventionPreset, Empty, ErrGrade, Ideal, MapNormaliser, PartialArea, Short,
    Threshold, Ties, Width,
};
pub use custom::CustomMetric;
pub use discount::Discount;
pub use err::satisfies;
pub use expression::Expression;
pub use gain::{Gain, MOST_GAIN};
pub use judge::Judge;
pub use mean::Mean;
pub use name::help_table;
pub use pool::Pool;
pub use prepared::{Prepared, RankBuffers, evaluate};
pub use query::{QueryRows, Unfit};

/// A metric, with its depth if it has one. The depth `None` stands for the default depth of the convention, which is
/// usually the whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Root mean squared error over rows.
    Rmse,
    /// Normalised discounted cumulative gain.
    Ndcg(Option<u32>),
    /// Discounted cumulative gain.
    Dcg(Option<u32>),
    /// Expected reciprocal rank.
    Err(Option<u32>),
    /// Average precision.
    Map(Option<u32>),
    /// Reciprocal rank of the first relevant document.
    Mrr(Option<u32>),
    /// Precision: the fraction of the top documents that are relevant.
    Precision(Option<u32>),
    /// Recall: the fraction of the relevant documents that are among the top documents.
    Recall(Option<u32>),
    /// R-precision: the precision at the number of relevant documents.
    RPrecision,
    /// Success: whether at least one of the top documents is relevant.
    Success(Option<u32>),
    /// Area under the ROC curve.
    Auc,
    /// Partial area under the ROC curve between two false-positive rates, in percent.
    PartialAuc(u32, u32),
    /// Area under the ROC curve of all documents of all queries.
    AucPooled,
    /// Partial area under the ROC curve of all documents of all queries.
    PartialAucPooled(u32, u32),
    /// Kendall's tau-b between scores and labels.
    KendallTau,
    /// Number of inverted pairs.
    Inversions,
    /// A metric that is defined by a function.
    Custom(CustomMetric),
}

impl Metric {
    /// Creates a metric that is defined by the function `value`. `name` is its name in logs and tables. The function
    /// receives the labels and scores of one query in input order, and returns `None` to exclude the query from the
    /// mean. It lives as long as the program.
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

    /// Whether the metric adds up gains.
    pub(crate) fn adds_gains(&self) -> bool {
        matches!(self, Metric::Ndcg(_) | Metric::Dcg(_))
    }

    /// Whether higher values are better.
    pub fn higher_is_better(&self) -> bool {
        match self {
            Metric::Custom(custom) => custom.higher_is_better,
            metric => !matches!(metric, Metric::Rmse | Metric::Inversions),
        }
    }

    /// Whether `value` is better than `best`.
    pub fn is_better(&self, value: f64, best: f64) -> bool {
        if self.higher_is_better() { value > best } else { value < best }
    }
}

/// Replaces a missing label (NaN) by 0.
#[inline]
fn known(label: f32) -> f32 {
    if label.is_nan() { 0.0 } else { label }
}

#[cfg(test)]
mod tests;
