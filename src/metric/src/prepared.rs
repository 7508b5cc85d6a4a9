//! Prepares a metric for repeated evaluation on the rows of one partition (a contiguous range of a dataset's
//! queries): everything that depends only on labels is computed once.

use super::convention::{Convention, Ties, Width};
use super::mean::Mean;
use super::ndcg::BestGains;
use super::query::QueryRows;
use super::ranked::{RankNeeds, Ranked, Sorter, Spans, Views};
use super::value::Facts;
use super::{Metric, rmse};
use planetree_base::error::{Error, Result};
use std::sync::Arc;

/// A metric with precomputed label statistics for the queries of one partition.
#[derive(Debug, Clone)]
pub struct Prepared {
    metric: Metric,
    convention: Arc<Convention>,
    /// Label statistics of every query, in query order.
    facts: Vec<Facts>,
}

impl Metric {
    /// Precomputes everything that does not change from one training round to the next, under the default convention.
    /// Query `q` consists of the rows from `query_bounds[q]` up to, but not including, `query_bounds[q + 1]`.
    pub fn prepare(&self, labels: &[f32], query_bounds: &[u32]) -> Result<Prepared> {
        self.prepare_under(&Convention::standard(), labels, query_bounds)
    }

    /// Does the same as [`Metric::prepare`] under another convention. Returns an error if the convention breaks ties
    /// by document id, which training does not know, or if a label has no gain or a gain that is too large.
    pub fn prepare_under(
        &self,
        convention: &Arc<Convention>,
        labels: &[f32],
        query_bounds: &[u32],
    ) -> Result<Prepared> {
        if convention.needs_documents() {
            return Err(Error::usage(
                format_args!(
                    "convention {convention}: ties=docid is not supported: training has no document ids"
                ),
                "choose another rule for ties, such as ties=input, or evaluate the predictions after training",
            ));
        }
        convention.check_labels(&[*self], labels).map_err(|unfit| {
            Error::usage(format_args!("convention {convention}: {}", unfit.problem), unfit.remedy)
        })?;
        Ok(self.prepare_for(Arc::clone(convention), labels, query_bounds))
    }

    fn prepare_for(&self, convention: Arc<Convention>, labels: &[f32], query_bounds: &[u32]) -> Prepared {
        let mut best = BestGains::default();
        let facts_of = |rows: std::ops::Range<usize>| {
            let labels = &labels[rows];
            if self.needs_best(&convention) {
                best.find(labels, &convention, convention.depth(self).flatten());
            }
            let relevant =
                if self.needs_relevant(&convention) { convention.count_relevant(labels) } else { 0 };
            self.facts(&convention, relevant, &best)
        };
        let facts = queries(query_bounds).map(facts_of).collect();
        Prepared { metric: *self, facts, convention }
    }
}

/// Buffers for ranking one query after another.
#[derive(Debug, Default)]
pub struct RankBuffers {
    sorter: Sorter,
}

impl Prepared {
    /// Returns the metric that was prepared.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Evaluates one query of the partition. Returns `None` if the query is excluded from the mean.
    pub fn of_query(
        &self,
        query: usize,
        labels: &[f32],
        scores: &[f64],
        buffers: &mut RankBuffers,
    ) -> Option<f64> {
        let rows = QueryRows { labels, scores, documents: None, judged: None };
        let needs = RankNeeds::of([&self.metric], &self.convention);
        // Only ties by document id could fail here, and those were rejected when the metric was prepared.
        let views = buffers.sorter.views(&rows, &needs, &self.convention).ok()?;
        self.metric.value(&views, &self.facts[query], &self.convention)
    }

    /// Returns whether the order of the documents determines the metric, with the mean over all orders of tied documents.
    /// Then [`Prepared::of_order`] may be used.
    pub fn is_of_order(&self) -> bool {
        let ties = match self.metric {
            Metric::Ndcg(_) | Metric::Dcg(_) | Metric::Err(_) => self.convention.ties,
            Metric::Map(_)
            | Metric::Mrr(_)
            | Metric::Precision(_)
            | Metric::RPrecision
            | Metric::Recall(_) => self.convention.binary_ties,
            _ => return false,
        };
        ties == Ties::Average && self.convention.scores == Width::Float64
    }

    /// Evaluates one query of the partition, given its labels in ranked order and the end index of each run of documents
    /// with equal scores. Returns `None` if the query is excluded from the mean.
    pub fn of_order(&self, query: usize, labels: &[f32], ends: &[u32]) -> Option<f64> {
        let ranked = Ranked { labels, ties: Spans::Averaged(ends), documents: labels.len() };
        let rows = QueryRows { labels, scores: &[], documents: None, judged: None };
        let views = Views { graded: ranked, binary: ranked, by_score: (&[], &[]), rows };
        self.metric.value(&views, &self.facts[query], &self.convention)
    }
}

/// Evaluates the metrics over one partition. The means can be merged with the means of other partitions. `metrics`
/// must have been prepared with the same labels and bounds.
pub fn evaluate(metrics: &[Prepared], labels: &[f32], scores: &[f64], query_bounds: &[u32]) -> Vec<Mean> {
    let mut means: Vec<Mean> = metrics.iter().map(|prepared| Mean::new(prepared.metric)).collect();
    let mut rest = means.as_mut_slice();
    // Neighbouring metrics with the same convention share one sort of each query.
    for metrics in metrics.chunk_by(|one, other| Arc::ptr_eq(&one.convention, &other.convention)) {
        let (means, others) = rest.split_at_mut(metrics.len());
        evaluate_together(metrics, labels, scores, query_bounds, means);
        rest = others;
    }
    means
}

fn evaluate_together(
    metrics: &[Prepared],
    labels: &[f32],
    scores: &[f64],
    query_bounds: &[u32],
    means: &mut [Mean],
) {
    let mut by_query: Vec<(&Prepared, &mut Mean)> = Vec::new();
    for (prepared, mean) in metrics.iter().zip(means) {
        if prepared.metric == Metric::Rmse {
            rmse::squared_errors(labels, scores).for_each(|error| mean.add(error));
        } else if prepared.metric.is_pooled() {
            let rows = QueryRows { labels, scores, documents: None, judged: None };
            mean.pool(&rows, &prepared.convention, 1.0);
        } else {
            by_query.push((prepared, mean));
        }
    }
    let Some((first, _)) = by_query.first() else { return };
    let convention = Arc::clone(&first.convention);
    let look = RankNeeds::of(by_query.iter().map(|(prepared, _)| &prepared.metric), &convention);
    let mut sorter = Sorter::default();
    for (query, rows) in queries(query_bounds).enumerate() {
        let rows =
            QueryRows { labels: &labels[rows.clone()], scores: &scores[rows], documents: None, judged: None };
        // Only ties by document id could fail here, and those were rejected when the metrics were prepared.
        let Ok(views) = sorter.views(&rows, &look, &convention) else { continue };
        for (prepared, mean) in &mut by_query {
            if let Some(value) = prepared.metric.value(&views, &prepared.facts[query], &convention) {
                mean.add(value);
            }
        }
    }
}

/// Returns the range of rows of every query.
fn queries(bounds: &[u32]) -> impl Iterator<Item = std::ops::Range<usize>> {
    bounds.windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Judge;
    use proptest::prelude::*;

    const METRICS: [Metric; 18] = [
        Metric::Ndcg(Some(10)),
        Metric::Rmse,
        Metric::Ndcg(Some(3)),
        Metric::Err(None),
        Metric::Ndcg(None),
        Metric::Err(Some(5)),
        Metric::Dcg(Some(5)),
        Metric::Map(None),
        Metric::Mrr(Some(3)),
        Metric::Precision(Some(5)),
        Metric::Recall(Some(5)),
        Metric::PartialAuc(0, 30),
        Metric::AucPooled,
        Metric::PartialAucPooled(0, 30),
        Metric::Success(Some(2)),
        Metric::RPrecision,
        Metric::KendallTau,
        Metric::Inversions,
    ];

    fn evaluate_all(metrics: &[Metric], labels: &[f32], scores: &[f64], query_bounds: &[u32]) -> Vec<Mean> {
        let prepared: Vec<Prepared> =
            metrics.iter().map(|metric| metric.prepare(labels, query_bounds).unwrap()).collect();
        evaluate(&prepared, labels, scores, query_bounds)
    }

    /// Returns scores of which some are equal.
    fn score() -> impl Strategy<Value = f64> {
        prop_oneof![-1.0..1.0, (-2_i8..3).prop_map(|score| f64::from(score) / 2.0)]
    }

    proptest! {
        #[test]
        fn together_they_are_what_a_judge_says_of_query_after_query(
            queries in proptest::collection::vec(
                proptest::collection::vec(((0_u8..5).prop_map(f32::from), score()), 0..70), 0..8),
            conventions in proptest::collection::vec(0_usize..5, METRICS.len()),
        ) {
            let mut bounds = vec![0_u32];
            bounds.extend(queries.iter().scan(0, |end, query| { *end += query.len() as u32; Some(*end) }));
            let (labels, scores): (Vec<f32>, Vec<f64>) = queries.iter().flatten().copied().unzip();
            let known = ["planetree", "letor4", "empty=skip", "catboost", "ties=average"].map(|text| Arc::new(text.parse().unwrap()));
            let conventions: Vec<&Arc<Convention>> = conventions.iter().map(|number| &known[*number]).collect();
            let prepared: Vec<Prepared> = METRICS
                .iter()
                .zip(&conventions)
                .map(|(metric, convention)| metric.prepare_under(convention, &labels, &bounds).unwrap())
                .collect();
            let together = evaluate(&prepared, &labels, &scores, &bounds);
            let mut buffers = RankBuffers::default();
            for (one, mean) in prepared.iter().zip(&together).filter(|(one, _)| one.metric != Metric::Rmse && !one.metric.is_pooled()) {
                let (mut by_query, mut by_order) = (Mean::new(one.metric), Mean::new(one.metric));
                for (number, query) in queries.iter().enumerate() {
                    let (labels, scores): (Vec<f32>, Vec<f64>) = query.iter().copied().unzip();
                    let value = one.of_query(number, &labels, &scores, &mut buffers);
                    value.into_iter().for_each(|value| by_query.add(value));
                    let mut order: Vec<usize> = (0..labels.len()).collect();
                    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
                    let ranked: Vec<f32> = order.iter().map(|place| labels[*place]).collect();
                    let runs = order.chunk_by(|one, other| scores[*one] == scores[*other]);
                    let ends: Vec<u32> = runs.scan(0, |end, run| { *end += run.len() as u32; Some(*end) }).collect();
                    one.of_order(number, &ranked, &ends).into_iter().for_each(|value| by_order.add(value));
                }
                prop_assert_eq!(&by_query, mean);
                prop_assert!(!one.is_of_order() || &by_order == mean, "{}", one.metric);
            }
            for ((metric, convention), mean) in METRICS.iter().zip(conventions).zip(together) {
                let mut slow = vec![Mean::new(*metric)];
                let mut judge = Judge::new(&[*metric], convention);
                for query in &queries {
                    let (labels, scores): (Vec<f32>, Vec<f64>) = query.iter().copied().unzip();
                    let rows = QueryRows { labels: &labels, scores: &scores, documents: None, judged: None };
                    judge.query(&rows).unwrap();
                    judge.add_to(&mut slow, &rows, 1.0);
                }
                prop_assert_eq!(&mean, &slow[0], "{} {}", metric, convention);
            }
        }
    }

    #[test]
    fn partitions_merge_to_the_whole() {
        let labels: Vec<f32> = (0..600).map(|row| (row * 7 % 5) as f32).collect();
        let scores: Vec<f64> = (0..600).map(|row| f64::from(row * 31 % 101) / 7.0).collect();
        let bounds: Vec<u32> = (0..=20).map(|query| query * 30).collect();
        let whole = evaluate_all(&METRICS, &labels, &scores, &bounds);
        let mut merged: Vec<Mean> = METRICS.iter().map(|metric| Mean::new(*metric)).collect();
        for (from, to) in [(10, 20), (0, 3), (3, 10)] {
            let rows = from * 30..to * 30;
            let bounds: Vec<u32> = bounds[from..=to].iter().map(|bound| bound - bounds[from]).collect();
            let part = evaluate_all(&METRICS, &labels[rows.clone()], &scores[rows], &bounds);
            merged.iter_mut().zip(&part).for_each(|(mean, other)| mean.merge(other));
        }
        assert_eq!(whole, merged);
    }

    #[test]
    fn what_training_cannot_follow_is_refused() {
        let fault = |text: &str| {
            let convention = Arc::new(text.parse().unwrap());
            Metric::Ndcg(None).prepare_under(&convention, &[0.0, 3.0], &[0, 2]).unwrap_err().to_string()
        };
        assert_eq!(
            fault("trec"),
            "convention trec: ties=docid is not supported: training has no document ids"
        );
        assert_eq!(
            fault("gain=0:1:3"),
            "convention planetree,gain=0:1:3: gain=0:1:3 defines no gain for label 3"
        );
        assert_eq!(
            fault("gain=9^(12*l)"),
            "convention planetree,gain=9^(12*l): the gain of label 3 in gain=9^(12*l) is larger than 1e30"
        );
    }
}
