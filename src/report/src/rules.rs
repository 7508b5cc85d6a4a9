//! Decides by which rules a report evaluates rankings: metrics, convention and label map.

use super::ReportRequest;
use super::run::RunContents;
use planetree_base::error::Result;
use planetree_base::threads::thread_pool;
use planetree_data::LabelMap;
use planetree_data::catalog::CatalogKind;
use planetree_data::table::{TableKind, TableReader};
use planetree_judge::evaluate::{CONVENTION, METRICS, default_metrics};
use planetree_metric::{Convention, Metric};

/// How rankings are evaluated.
pub(crate) struct EvaluationRules {
    /// The primary metric, by which systems are compared and queries are sorted.
    pub metric: Metric,
    /// The metrics that the summary shows. The primary metric comes first.
    pub metrics: Vec<Metric>,
    /// The convention, which is the set of rules by which all metrics are computed.
    pub convention: Convention,
    /// The map of labels to others, which metrics are computed from.
    pub label_map: Option<LabelMap>,
    /// Number of threads, or 0 for all cores.
    pub threads: usize,
}

impl EvaluationRules {
    /// Returns the metrics and the rules for computing them, as requested or as found in the metrics tables of the runs.
    pub(crate) fn of(runs: &[RunContents], request: &ReportRequest) -> Result<Self> {
        let mut metrics = vec![request.metric];
        metrics.extend(default_metrics()?);
        let (mut conventions, mut label_maps): (Vec<Convention>, Vec<Option<LabelMap>>) = Default::default();
        for entry in runs.iter().flat_map(|run| &run.entries) {
            if entry.kind != CatalogKind::Table(TableKind::Metrics) {
                continue;
            }
            let table = TableReader::open(&entry.location, TableKind::Metrics)?;
            metrics.extend(
                table
                    .metadata(METRICS)
                    .unwrap_or_default()
                    .split(',')
                    .filter_map(|name| name.parse::<Metric>().ok()),
            );
            if let Some(Ok(convention)) = table.metadata(CONVENTION).map(str::parse)
                && !conventions.contains(&convention)
            {
                conventions.push(convention);
            }
            let map = table.metadata(LabelMap::KEY).map(str::parse).transpose()?;
            if !label_maps.contains(&map) {
                label_maps.push(map);
            }
        }
        let mut known = Vec::new();
        for metric in metrics {
            if !known.contains(&metric) {
                known.push(metric);
            }
        }
        // If the metrics tables have different conventions, the default convention is used; the same for label maps.
        let convention = match (&request.convention, conventions.as_slice()) {
            (Some(asked), _) => asked.clone(),
            (None, [only]) => only.clone(),
            (None, _) => Convention::default(),
        };
        let label_map = match (&request.label_map, label_maps.as_slice()) {
            (Some(asked), _) => Some(asked.clone()),
            (None, [only]) => only.clone(),
            (None, _) => None,
        };
        let (metric, threads) = (request.metric, request.threads);
        Ok(EvaluationRules { metric, metrics: known, convention, label_map, threads })
    }

    /// Starts a thread pool.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool> {
        thread_pool(self.threads)
    }

    /// Names the convention, and the label map if there is one.
    pub(crate) fn rules(&self) -> String {
        match &self.label_map {
            None => self.convention.to_string(),
            Some(map) => format!("{} with the label map {map}", self.convention),
        }
    }
}
