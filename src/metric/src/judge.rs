//! Evaluates rankings query by query, under a convention.

use super::convention::Convention;
use super::mean::Mean;
use super::ndcg::BestGains;
use super::query::{QueryRows, Unfit};
use super::ranked::{RankNeeds, Sorter};
use super::{Metric, rmse};

/// Evaluates metrics of one query after the other. One sort serves all metrics.
#[derive(Debug)]
pub struct Judge {
    metrics: Vec<Metric>,
    convention: Convention,
    look: RankNeeds,
    /// Depth of the ideal order, if needed.
    best_depth: Option<Option<u32>>,
    counts_relevant: bool,
    sorter: Sorter,
    best: BestGains,
    values: Vec<Option<f64>>,
}

impl Judge {
    /// A judge for these metrics.
    pub fn new(metrics: &[Metric], convention: &Convention) -> Self {
        let with_best = metrics.iter().filter(|metric| metric.needs_best(convention));
        let depths = with_best.filter_map(|metric| convention.depth(metric));
        Judge {
            metrics: metrics.to_vec(),
            look: RankNeeds::of(metrics, convention),
            best_depth: depths.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other))),
            counts_relevant: metrics.iter().any(|metric| metric.needs_relevant(convention)),
            convention: convention.clone(),
            sorter: Sorter::default(),
            best: BestGains::default(),
            values: Vec::with_capacity(metrics.len()),
        }
    }

    /// Its metrics.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Its convention.
    pub fn convention(&self) -> &Convention {
        &self.convention
    }

    /// The value of every metric; `None` if the query is excluded.
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
            self.values.push(metric.value(&views, &facts, convention));
        }
        Ok(&self.values)
    }

    /// Adds the values of the last query to means in the order of the metrics. Excluded queries are skipped. RMSE is over
    /// rows, so it takes those of the query.
    pub fn add_to(&self, means: &mut [Mean], rows: &QueryRows<'_>, weight: f64) {
        for ((metric, value), mean) in self.metrics.iter().zip(&self.values).zip(means) {
            match (metric, value) {
                (Metric::Rmse, _) => rmse::squared_errors(rows.labels, rows.scores)
                    .for_each(|error| mean.add_weighted(error, weight)),
                (_, Some(value)) => mean.add_weighted(*value, weight),
                (_, None) => {}
            }
        }
    }

    /// Ideal DCG of a query.
    pub fn ideal_dcg(&mut self, rows: &QueryRows<'_>, depth: Option<u32>) -> f64 {
        let depth = depth.or(self.convention.depth);
        self.best.find(self.convention.judged(rows), &self.convention, depth);
        self.best.ideal(&self.convention, usize::MAX)
    }

    /// Whether a query has no relevant documents, so that the convention sets its value.
    pub fn is_empty(&self, rows: &QueryRows<'_>) -> bool {
        self.convention.count_relevant(self.convention.judged(rows)) == 0
    }
}

/// Rejects columns of different lengths.
fn check(rows: &QueryRows<'_>) -> Result<(), Unfit> {
    let documents = rows.documents.map_or(rows.labels.len(), <[&str]>::len);
    if rows.scores.len() == rows.labels.len() && documents == rows.labels.len() {
        return Ok(());
    }
    Err(Unfit {
        row: None,
        problem: format!(
            "{} labels, {} scores and {documents} documents do not belong together",
            rows.labels.len(),
            rows.scores.len()
        ),
        remedy: "give one of each for every row".to_owned(),
    })
}
