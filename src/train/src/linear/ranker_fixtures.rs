//! Problems and naive references for the tests of linear learners and nets.

use super::plan::{PlannedFeature, StandardPlan};
use super::ranker::RankingProblem;
use super::ranking::RankingTarget;
use super::rows::LinearRows;
use super::runner::LinearJobs;
use crate::config::{Parameters, load};
use crate::fixtures::{Document, FEATURES, dataset, normalised};
use planetree_data::source::LabelledData;
use planetree_metric::{Convention, Judge, Metric, QueryRows};
use planetree_model::model::FeatureNormalisation;
use std::path::Path;

/// Number of features with weights: all but the constant one.
pub(crate) const WEIGHTED: usize = FEATURES - 1;

/// Opens documents as a dataset with partitions of `partition_rows` rows.
pub(crate) fn source(room: &Path, documents: &[Document], partition_rows: usize) -> LabelledData {
    std::fs::create_dir_all(room).unwrap();
    let data = dataset(room, &format!("data-{partition_rows}"), documents, partition_rows);
    LabelledData::open(&data, None).unwrap()
}

/// Returns the problem of optimising a metric on the rows of a dataset. `is_streamed` reads the rows for every job.
pub(crate) fn problem<'a>(
    source: &'a LabelledData,
    metric: &str,
    convention: &str,
    is_streamed: bool,
) -> RankingProblem<'a> {
    let settings = load(Some("linear"), None, &[]).unwrap().first().clone();
    let metrics = settings.metrics.clone();
    let (jobs, queries) = jobs_on(source, settings, is_streamed);
    let target =
        RankingTarget { plan: plan(), metric: metric.to_owned(), convention: convention.to_owned(), queries };
    RankingProblem { target, jobs, metrics }
}

/// Returns jobs on the rows of a dataset, and the number of queries. `is_streamed` reads the rows for every job.
pub(crate) fn jobs_on<L: Send + Sync + 'static>(
    source: &LabelledData,
    settings: Parameters<L>,
    is_streamed: bool,
) -> (LinearJobs<'_>, u64) {
    let read = move |partitions: &[usize]| LinearRows::read(source, partitions, &settings, None);
    let rows = read(&(0..source.partitions()).collect::<Vec<_>>()).unwrap();
    let queries = rows.rows.iter().map(|rows| rows.queries().count() as u64).sum();
    let jobs = match is_streamed {
        true => LinearJobs::Streamed { source, read: Box::new(move |partition| read(&[partition])) },
        false => LinearJobs::Memory { source, rows },
    };
    (jobs, queries)
}

/// Returns a plan that normalises features by query and does not standardise them.
pub(crate) fn plan() -> StandardPlan {
    StandardPlan {
        normalisation: FeatureNormalisation::Query,
        features: (0..WEIGHTED as u32).map(|feature| PlannedFeature::new(feature, Some(0.0))).collect(),
        weight: 1.0,
        label: 4.0,
        offset: 0.0,
        all_features: FEATURES as u32,
    }
}

/// Evaluates documents query by query, with plain loops.
pub(crate) struct NaiveQueries {
    /// The documents of each query: labels and normalised features.
    queries: Vec<Vec<(f32, [f64; FEATURES])>>,
    metric: Metric,
    convention: Convention,
}

impl NaiveQueries {
    /// Groups documents by query.
    pub(crate) fn new(documents: &[Document], metric: &str, convention: &str) -> Self {
        let mut queries = vec![Vec::new(); documents.last().map_or(0, |last| last.query + 1)];
        for (document, features) in documents.iter().zip(normalised(documents, "query")) {
            queries[document.query].push((document.label as f32, features));
        }
        NaiveQueries { queries, metric: metric.parse().unwrap(), convention: convention.parse().unwrap() }
    }

    /// Returns the metric of each query, or `None` if it does not count.
    pub(crate) fn values(&self, weights: &[f64]) -> Vec<Option<f64>> {
        let of_query = |query: &Vec<(f32, [f64; FEATURES])>| {
            let labels: Vec<f32> = query.iter().map(|(label, _)| *label).collect();
            let score = |(_, features): &(f32, [f64; FEATURES])| -> f64 {
                weights.iter().zip(features).map(|(weight, value)| weight * value).sum()
            };
            let scores: Vec<f64> = query.iter().map(score).collect();
            let rows = QueryRows { labels: &labels, scores: &scores, documents: None, judged: None };
            Judge::new(&[self.metric], &self.convention).query(&rows).unwrap()[0]
        };
        self.queries.iter().map(of_query).collect()
    }

    /// Returns the mean of the metric over the queries that count.
    pub(crate) fn mean(&self, weights: &[f64]) -> f64 {
        let values: Vec<f64> = self.values(weights).into_iter().flatten().collect();
        values.iter().sum::<f64>() / values.len() as f64
    }
}
