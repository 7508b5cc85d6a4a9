//! Evaluates the systems of a report. A system is one ranking of a run. Its metrics are computed from its
//! predictions. If a run has no predictions that can be evaluated, the metrics are read from the metrics tables of
//! the run.

use super::rules::EvaluationRules;
use super::run::RunContents;
use arrow::array::Array;
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::catalog::CatalogEntry;
use planetree_data::table::{TableKind, TableReader};
use planetree_judge::compare::{ComparedFile, QueryValue, ReadingRules, read_systems};
use planetree_judge::evaluate::{EvaluateRequest, EvaluationSummary, METRICS, Ranking, Results, evaluate};
use planetree_metric::Metric;
use std::collections::BTreeMap;

/// Maximum k of the NDCG@k curve.
pub(crate) const DEPTH: u32 = 20;

/// One ranking of a run.
pub(crate) struct ReportSystem {
    /// The display name.
    pub name: String,
    /// Index of the run.
    pub run: usize,
    /// Name of the table within the run.
    pub entry: String,
    /// The file of predictions. `None` if only metrics are available.
    pub predictions: Option<Location>,
    /// Metadata of the predictions, such as the model and the dataset that they come from.
    pub metadata: BTreeMap<String, String>,
    /// Number of documents.
    pub rows: u64,
    /// The metrics, or the reason why there are none.
    pub judged: Result<SystemMetrics, String>,
}

/// The metrics of one system.
pub(crate) struct SystemMetrics {
    /// The mean of each metric that the summary shows. `None` if the mean is not known.
    pub means: Vec<Option<f64>>,
    /// The value of the primary metric for each query, sorted by query id.
    pub queries: Vec<QueryValue>,
    /// NDCG@k for each k, as pairs of k and value.
    pub curve: Vec<(u32, f64)>,
    /// Number of queries without relevant documents.
    pub empty: usize,
}

/// Returns the systems of all runs, in order. `named` returns the display name of a table, given the index of the run
/// and the name of the table.
pub(crate) fn systems_of(
    runs: &[RunContents],
    judging: &EvaluationRules,
    named: &dyn Fn(usize, &str) -> String,
) -> Result<Vec<ReportSystem>> {
    let mut systems = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let mut found = Vec::new();
        for entry in run.tables(TableKind::Predictions) {
            found.push(of_predictions(entry, named(place, &entry.name), judging)?);
        }
        // The metrics tables of a run usually contain metrics of its predictions. To avoid showing these twice, the
        // tables are used only if none of the predictions could be evaluated. The baselines of a cross-validation have
        // no predictions.
        let has_values = found.iter().any(|system| system.judged.is_ok());
        for entry in run.tables(TableKind::Metrics) {
            if !has_values || entry.location.to_string().ends_with("/baselines.parquet") {
                found.extend(of_metrics(entry, &named(place, &entry.name), judging)?);
            }
        }
        systems.extend(found.into_iter().map(|system| ReportSystem { run: place, ..system }));
    }
    tell_apart(&mut systems);
    Ok(systems)
}

fn of_predictions(entry: &CatalogEntry, name: String, judging: &EvaluationRules) -> Result<ReportSystem> {
    let table = TableReader::open(&entry.location, TableKind::Predictions)?;
    let (rows, metadata) = (table.rows(), table.all_metadata().clone());
    let judged = match unlabelled(&table)? {
        _ if rows == 0 => Err("it has no rows".to_owned()),
        0 => match judged(&entry.location, judging) {
            Ok(judged) => Ok(judged),
            Err(error) => Err(said_of_content(error)?),
        },
        missing if missing == rows => Err("its documents have no labels".to_owned()),
        missing => Err(format!("{missing} of its {rows} documents have no label")),
    };
    let (predictions, entry) = (Some(entry.location.clone()), entry.name.clone());
    Ok(ReportSystem { name, run: 0, entry, predictions, metadata, rows, judged })
}

/// Returns the message of an error if the error is about the content of rows. Otherwise, returns the error itself.
fn said_of_content(error: Error) -> Result<String> {
    match &error {
        Error::Place { problem, .. }
            if !["cannot ", "damaged"].iter().any(|start| problem.starts_with(start)) =>
        {
            Ok(problem.clone())
        }
        _ => Err(error),
    }
}

/// Returns the number of rows without a label.
fn unlabelled(table: &TableReader) -> Result<u64> {
    let Ok(place) = table.schema().index_of("label") else { return Ok(table.rows()) };
    let mut missing = 0;
    for group in 0..table.file().groups() {
        for batch in table.file().group_batches(group, Some(&[place]), 1 << 16)? {
            missing += batch?.column(0).null_count() as u64;
        }
    }
    Ok(missing)
}

fn judged(location: &Location, judging: &EvaluationRules) -> Result<SystemMetrics> {
    let mut metrics = judging.metrics.clone();
    for depth in 1..=DEPTH {
        let metric = Metric::Ndcg(Some(depth));
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let request = EvaluateRequest {
        threads: judging.threads,
        label_map: judging.label_map.clone(),
        ..EvaluateRequest::new(metrics.clone(), judging.convention.clone())
    };
    let results = evaluate(&Ranking::Predictions(location.clone()), &request)?;
    let summary = EvaluationSummary::of(&results, &metrics, 0);
    let mean =
        |metric: &Metric| summary.metrics.iter().find(|one| one.metric == *metric).and_then(|one| one.mean);
    let depths = (1..=DEPTH).filter_map(|depth| Some((depth, mean(&Metric::Ndcg(Some(depth)))?)));
    Ok(SystemMetrics {
        means: judging.metrics.iter().map(mean).collect(),
        curve: depths.collect(),
        queries: values_of(&results),
        empty: summary.empty,
    })
}

/// Returns the value of the primary metric for each query, sorted by query id.
fn values_of(results: &Results) -> Vec<QueryValue> {
    let mut values: Vec<QueryValue> = (0..results.queries())
        .map(|query| QueryValue {
            query: results.name(query).to_owned(),
            value: results.value(query, 0).filter(|value| value.is_finite()),
            documents: Some((results.documents[query].into(), results.relevant[query].into())),
        })
        .collect();
    values.sort_by(|one, other| one.query.cmp(&other.query));
    values
}

/// Returns the systems of a metrics table, with those metrics that the table contains.
fn of_metrics(entry: &CatalogEntry, name: &str, judging: &EvaluationRules) -> Result<Vec<ReportSystem>> {
    let table = TableReader::open(&entry.location, TableKind::Metrics)?;
    let has = table.metadata(METRICS).unwrap_or_default();
    let has: Vec<Metric> = has.split(',').filter_map(|name| name.parse().ok()).collect();
    let sources = [ComparedFile::new(entry.location.clone())];
    let read = |metric: &Metric| {
        read_systems(&sources, &metric.to_string(), &ReadingRules::default(), judging.threads)
    };
    if !has.contains(&judging.metric) {
        let reason = format!("its table has no {}", judging.metric);
        return Ok(vec![without_values(name.to_owned(), table.rows(), reason)]);
    }
    let first = read(&judging.metric)?;
    if first.convention != judging.convention {
        let reason = format!("its values follow another convention, {}", first.convention);
        return Ok(vec![without_values(name.to_owned(), table.rows(), reason)]);
    }
    if first.label_map != judging.label_map {
        let map = first.label_map.map_or("none".to_owned(), |map| map.to_string());
        let reason = format!("its values follow another label map, {map}");
        return Ok(vec![without_values(name.to_owned(), table.rows(), reason)]);
    }
    let several = first.systems.len() > 1;
    let mut systems: Vec<ReportSystem> = first
        .systems
        .into_iter()
        .map(|system| {
            let empty =
                system.queries.iter().filter(|query| query.documents.is_some_and(|(_, some)| some == 0));
            let documents = system.queries.iter().filter_map(|query| Some(query.documents?.0));
            let name = if several { format!("{name}/{}", system.name) } else { name.to_owned() };
            ReportSystem {
                name,
                run: 0,
                entry: if several { format!("{}/{}", entry.name, system.name) } else { entry.name.clone() },
                predictions: None,
                metadata: BTreeMap::new(),
                rows: documents.sum(),
                judged: Ok(SystemMetrics {
                    means: Vec::new(),
                    curve: Vec::new(),
                    empty: empty.count(),
                    queries: system.queries,
                }),
            }
        })
        .collect();
    for metric in &judging.metrics {
        let values = if has.contains(metric) { read(metric)?.systems } else { Vec::new() };
        for (place, system) in systems.iter_mut().enumerate() {
            let values = values.get(place).map(|system| &system.queries[..]).unwrap_or_default();
            let counted: Vec<f64> = values.iter().filter_map(|query| query.value).collect();
            let mean = counted.iter().sum::<f64>() / counted.len() as f64;
            // RMSE is defined over rows, so the mean of the values of queries would be wrong.
            let mean = Some(mean).filter(|mean| mean.is_finite() && *metric != Metric::Rmse);
            if let Ok(judged) = &mut system.judged {
                judged.means.push(mean);
            }
        }
    }
    Ok(systems)
}

fn without_values(name: String, rows: u64, reason: String) -> ReportSystem {
    let entry = name.clone();
    ReportSystem {
        name,
        run: 0,
        entry,
        predictions: None,
        metadata: BTreeMap::new(),
        rows,
        judged: Err(reason),
    }
}

/// Appends a number to the names of systems that occur more than once.
fn tell_apart(systems: &mut [ReportSystem]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for system in systems {
        let times = seen.entry(system.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            system.name = format!("{} ({times})", system.name);
        }
    }
}
