//! Evaluates metrics query by query, under a convention.

use super::convention::Convention;
use super::mean::Mean;
use super::ndcg::BestGains;
use super::query::{QueryRows, Unfit};
use super::ranked::{RankNeeds, Sorter};
use super::{Metric, rmse};
use planetree_base::error::Result;

/// Evaluates metrics for one query after another. Each query is sorted only once for all metrics.
#[derive(Debug)]
pub struct Judge {
    metrics: Vec<Metric>,
    convention: Convention,
    look: RankNeeds,
    /// Depth of the ideal order: `None` if no metric needs it, `Some(None)` for the whole list.
    best_depth: Option<Option<u32>>,
    counts_relevant: bool,
    /// Whether values are expectations over all orders of the documents.
    is_random: bool,
    sorter: Sorter,
    best: BestGains,
    values: Vec<Option<f64>>,
}

impl Judge {
    /// Creates an evaluator for these metrics.
    pub fn new(metrics: &[Metric], convention: &Convention) -> Self {
        let with_best = metrics.iter().filter(|metric| metric.needs_best(convention));
        let depths = with_best.filter_map(|metric| convention.depth(metric));
        Judge {
            metrics: metrics.to_vec(),
            look: RankNeeds::of(metrics, convention),
            best_depth: depths.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other))),
            counts_relevant: metrics.iter().any(|metric| metric.needs_relevant(convention)),
            is_random: false,
            convention: convention.clone(),
            sorter: Sorter::default(),
            best: BestGains::default(),
            values: Vec::with_capacity(metrics.len()),
        }
    }

    /// Creates an evaluator of random orders: values are expectations over all orders of the documents of a query. The
    /// scores must be equal. RMSE, which does not depend on the order, is not computed. Returns an error if the
    /// expectation of a metric has no closed form under the convention.
    pub fn of_random_order(metrics: &[Metric], convention: &Convention) -> Result<Self> {
        Ok(Judge { is_random: true, ..Judge::new(metrics, &convention.averaged(metrics)?) })
    }

    /// Returns the metrics, in the order of the values of [`Judge::query`].
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Returns the convention that the evaluation follows.
    pub fn convention(&self) -> &Convention {
        &self.convention
    }

    /// Evaluates all metrics for one query. A value is `None` if the query is excluded from the mean of that metric.
    pub fn query(&mut self, rows: &QueryRows<'_>) -> Result<&[Option<f64>], Unfit> {
        check(rows)?;
        let convention = &self.convention;
        let judged = convention.judged(rows);
        convention.check_labels(&self.metrics, rows.labels)?;
        if rows.judged.is_some() {
            let unfit = |unfit| Unfit { row: None, ..unfit };
            convention.check_labels(&self.metrics, judged).map_err(unfit)?;
        }
        if let Some(depth) = self.best_depth {
            self.best.find(judged, convention, depth);
        }
        let relevant = if self.counts_relevant { convention.count_relevant(judged) } else { 0 };
        let views = self.sorter.views(rows, &self.look, convention)?;
        self.values.clear();
        for metric in &self.metrics {
            let facts = metric.facts(convention, relevant, &self.best);
            let value = metric.value(&views, &facts, convention);
            self.values.push(match self.is_random {
                true => metric.expected(value, rows.labels, convention),
                false => value,
            });
        }
        Ok(&self.values)
    }

    /// Adds the values of the last query to `means`, which are in the order of the metrics. Excluded queries are
    /// skipped. RMSE is a mean over rows, so the squared error of each row is added instead of the value of the
    /// query. Pooled metrics collect the rows.
    pub fn add_to(&self, means: &mut [Mean], rows: &QueryRows<'_>, weight: f64) {
        for ((metric, value), mean) in self.metrics.iter().zip(&self.values).zip(means) {
            match (metric, value) {
                (metric, _) if metric.is_pooled() => mean.pool(rows, &self.convention, weight),
                (Metric::Rmse, _) if !self.is_random => rmse::squared_errors(rows.labels, rows.scores)
                    .for_each(|error| mean.add_weighted(error, weight)),
                (_, Some(value)) => mean.add_weighted(*value, weight),
                (_, None) => {}
            }
        }
    }

    /// Returns the ideal DCG of a query. Without a `depth`, the default depth of the convention applies.
    pub fn ideal_dcg(&mut self, rows: &QueryRows<'_>, depth: Option<u32>) -> f64 {
        let depth = depth.or(self.convention.depth);
        self.best.find(self.convention.judged(rows), &self.convention, depth);
        self.best.ideal(&self.convention, usize::MAX)
    }

    /// Whether a query has no relevant documents, in which case the convention sets its value.
    pub fn is_empty(&self, rows: &QueryRows<'_>) -> bool {
        self.convention.count_relevant(self.convention.judged(rows)) == 0
    }
}

/// Returns an error if the numbers of labels, scores and document ids differ.
fn check(rows: &QueryRows<'_>) -> Result<(), Unfit> {
    let documents = rows.documents.map_or(rows.labels.len(), <[&str]>::len);
    if rows.scores.len() == rows.labels.len() && documents == rows.labels.len() {
        return Ok(());
    }
    Err(Unfit {
        row: None,
        problem: format!(
            "the columns of the query differ in length: {} labels, {} scores, {documents} documents",
            rows.labels.len(),
            rows.scores.len()
        ),
        remedy: "pass one label, one score and one document id for every row".to_owned(),
    })
}
