//! Ranking metrics: values per query, and means over queries that merge in any order.
//!
//! ```text
//! metrics, convention ──► judge ◄── labels, scores of a query
//!                           │  rank once, break ties, scan from the top
//!                           ▼
//!              one value per metric, or none ──► means, which merge in any order
//! ```
//!
//! Vocabulary:
//!
//! - a *convention* is the set of rules on which tools differ; a *preset* is a named convention;
//! - a *gain* is the value of a label, a *discount* its factor at a rank; *graded* metrics use gains, *binary* metrics
//!   relevance, *pairwise* metrics the order of two documents;
//! - *ties* are documents with equal scores, a *span* the ranks they share;
//! - an *empty* query has no relevant documents.

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
pub use gain::{Gain, MOST_GAIN};
pub use judge::Judge;
pub use mean::Mean;
pub use name::help_table;
pub use prepared::{Prepared, evaluate};
pub use query::{QueryRows, Unfit};
pub use ranking::Scratch;

/// A metric with its depth; `None` for the whole list, or the default depth of the convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Root mean squared error, over rows.
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
    /// Precision: fraction of the top documents that are relevant.
    Precision(Option<u32>),
    /// Recall: fraction of the relevant documents that are in the top.
    Recall(Option<u32>),
    /// Area under the ROC curve.
    Auc,
    /// Partial area under the ROC curve between two false-positive rates, in percent.
    PartialAuc(u32, u32),
    /// Kendall's tau-b between scores and labels.
    KendallTau,
    /// Number of inverted pairs.
    Inversions,
    /// A custom metric.
    Custom(CustomMetric),
}

impl Metric {
    /// A custom metric: its name in logs and tables, whether higher values are better, and the value of one query, `None`
    /// to exclude the query. The function receives labels and scores in input order, and lives as long as the program.
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

    /// Whether it adds up what labels are worth.
    pub fn adds_gains(&self) -> bool {
        matches!(self, Metric::Ndcg(_) | Metric::Dcg(_))
    }

    /// Whether more is better.
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

/// A missing label counts as 0.
#[inline]
fn known(label: f32) -> f32 {
    if label.is_nan() { 0.0 } else { label }
}

#[cfg(test)]
mod tests;
