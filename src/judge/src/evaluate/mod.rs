//! How good are predictions? Rows of rankings become a value per query and metric, and these a summary.
//!
//! ```text
//! predictions, scores, runs ──► rows ──(sorted, if a query's rows are apart)──► queries ──judge──► results
//! labels of elsewhere, qrels ─────┘                                                                  │
//!                                                         metrics table, summary, segments ◄─────────┘
//! ```

mod curve;
mod documents;
mod drive;
mod judgments;
mod lines;
mod predictions;
mod remote;
mod results;
mod rows;
mod scores;
mod segments;
mod summary;
mod table;
mod text_predictions;
mod trec;
mod worker;

pub use curve::{CURVE, CurvePoint};
pub use judgments::Judgments;
pub use remote::{EvaluationJob, RemoteEvaluator};
pub use results::Results;
pub use segments::Join;
pub use summary::{MetricSummary, PERCENTILES, SegmentSummary, Summary, mean_of};
pub use table::{CONVENTION, Evaluated, METRICS, MetricsLayout, MetricsTable, default_metrics, per_query};

use crate::plan::{Batches, Engine, Open};
use arrow::array::RecordBatch;
use drive::Drive;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_base::storage::Location;
use planetree_metric::{Convention, Metric};
use std::sync::Arc;

pub use predictions::Predictions;
pub use remote::judge_groups;
pub use worker::Settings;
pub use worker::Stretch;

/// Metrics that are taken when none are named; the first decides which queries are the worst.
pub const DEFAULT_METRICS: &str = "ndcg@10,ndcg@1,ndcg@3,ndcg@5,err,map";

/// What sorting may take when nothing else is said.
pub const DEFAULT_MEMORY: u64 = 512 << 20;

/// Where a ranking is.
#[derive(Debug, Clone)]
pub enum Ranking {
    /// A table of predictions, a Parquet file of somebody else's, or text with the same columns.
    Predictions(Location),
    /// A text file of scores, and the dataset that they belong to.
    Scores {
        /// The scores.
        scores: Location,
        /// The dataset.
        data: Location,
    },
    /// A run of trec_eval.
    Run(Location),
}

impl Ranking {
    /// Where it is.
    pub fn location(&self) -> &Location {
        match self {
            Ranking::Predictions(location) | Ranking::Run(location) => location,
            Ranking::Scores { scores, .. } => scores,
        }
    }
}

/// What is to be found out about a ranking.
#[derive(Debug, Clone)]
pub struct Request {
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// By which rules.
    pub convention: Convention,
    /// Where labels come from, if not from the ranking itself.
    pub judgments: Option<Judgments>,
    /// Whether queries that have judgments but no ranked document count, with an empty ranking.
    pub complete: bool,
    /// A column of the ranking that queries are counted under.
    pub by: Option<String>,
    /// Whether DCG and its ideal are wanted.
    pub gains: bool,
    /// Where the ranking is to be written as a run, and under which tag.
    pub run: Option<(Location, String)>,
    /// Threads, 0 for as many as there are cores.
    pub threads: usize,
    /// Bytes that sorting may take.
    pub memory_limit: u64,
    /// Told how many rows are read; again, when they had to be sorted.
    pub meter: SharedMeter,
    /// Who judges row groups of predictions, if not this process.
    pub remote: Option<Arc<dyn RemoteEvaluator>>,
}

impl Request {
    /// Some metrics by some rules, and nothing else.
    pub fn new(metrics: Vec<Metric>, convention: Convention) -> Self {
        Request {
            metrics,
            convention,
            judgments: None,
            complete: false,
            by: None,
            gains: false,
            run: None,
            threads: 0,
            memory_limit: DEFAULT_MEMORY,
            meter: unwatched(),
            remote: None,
        }
    }
}

/// Judges every query of a ranking. The results are in the order of the input, whatever the threads.
pub fn evaluate(ranking: &Ranking, request: &Request) -> Result<Results> {
    let threads = match request.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let engine = Engine::new(threads, request.memory_limit)?;
    let settings = Settings {
        metrics: request.metrics.clone(),
        convention: request.convention.clone(),
        judgments: request.judgments.clone(),
        complete: request.complete,
        gains: request.gains,
        segments: request.by.is_some(),
        tag: request.run.as_ref().map(|(_, tag)| tag.clone()),
        input: ranking.location().to_string(),
    };
    let run = request.run.as_ref().map(|(location, _)| location);
    let judge = |readers: Vec<Open>, rows: Option<u64>, sorted: bool| -> Result<Option<Results>> {
        let readers = readers.into_iter().map(|reader| watched(reader, request.meter.clone())).collect();
        let mut plan = engine.scan(rows::schema(), readers)?;
        // Sorted rows come by twice: when they are read, and when they are judged.
        request.meter.begin(rows.map(|rows| rows * if sorted { 2 } else { 1 }));
        let mut meter = unwatched();
        if sorted {
            plan = engine.sort(plan, &["query_id", "row"])?;
            meter = request.meter.clone();
        }
        let results = Drive { engine: &engine, settings: &settings, run, sorted, meter }.judge(&plan)?;
        Ok(results.map(|results| if sorted { results.in_input_order() } else { results }))
    };
    let by = request.by.as_deref();
    if let Some(remote) = &request.remote {
        remote::check(&**remote, ranking, request)?;
    }
    let judged = request.judgments.as_ref().map(Judgments::reader);
    let mut seen_in_training = false;
    let text = match ranking {
        Ranking::Predictions(location) => text_predictions::format_of(location)?,
        _ => None,
    };
    let outcome = match (ranking, judged, text) {
        (Ranking::Predictions(location), judged, Some(format)) => {
            let reader = text_predictions::reader(location, format, by);
            let together = match judged {
                None => judge(vec![reader.clone()], None, false)?,
                Some(_) => None,
            };
            match together {
                None => judge([reader].into_iter().chain(judged).collect(), None, true)?,
                done => done,
            }
        }
        (Ranking::Predictions(location), judged, None) => {
            let predictions = Predictions::open(location, by)?;
            seen_in_training = predictions.seen_in_training;
            let sort = |judged: Option<Open>| {
                let readers = predictions.dealt_readers(threads).into_iter().chain(judged).collect();
                judge(readers, Some(predictions.rows()), true)
            };
            match judged {
                Some(judged) => sort(Some(judged))?,
                None => {
                    let together = match &request.remote {
                        None => judge(predictions.readers(), Some(predictions.rows()), false)?,
                        Some(remote) => {
                            request.meter.begin(Some(predictions.rows()));
                            let meter = request.meter.clone();
                            let drive =
                                Drive { engine: &engine, settings: &settings, run, sorted: false, meter };
                            drive.judge_by(
                                &**remote,
                                &EvaluationJob { predictions: &predictions, settings: &settings, by },
                            )?
                        }
                    };
                    match together {
                        None => sort(None)?,
                        done => done,
                    }
                }
            }
        }
        (Ranking::Scores { scores, data }, None, _) => {
            judge(vec![scores::reader(scores, data, by)], None, false)?
        }
        (Ranking::Run(location), Some(judged), _) => {
            judge(vec![trec::run_reader(location), judged], None, true)?
        }
        (Ranking::Scores { .. }, Some(_), _) => {
            return Err(Error::usage(
                "scores have the labels of their dataset",
                "leave --labels and --qrels out",
            ));
        }
        (Ranking::Run(location), None, _) => {
            return Err(Error::usage(
                format_args!("{location}: a run has no labels"),
                "name the judgments: --qrels FILE, or --labels DATASET",
            ));
        }
    };
    match outcome {
        Some(mut results) if results.queries() > 0 => {
            results.seen_in_training = seen_in_training;
            Ok(results)
        }
        Some(results) if results.unjudged + results.unranked > 0 => Err(Error::place(
            ranking.location(),
            "none of its queries has judgments",
            "check that ranking and judgments name queries the same way",
        )),
        Some(_) => Err(Error::place(ranking.location(), "there are no rows", "name a file that has some")),
        None => Err(Error::place(
            ranking.location(),
            "the rows of a query are not together",
            "name predictions in Parquet, which are sorted",
        )),
    }
}

/// A reader that tells a meter of its rows.
fn watched(reader: Open, meter: SharedMeter) -> Open {
    Arc::new(move || {
        let meter = meter.clone();
        let count =
            move |batch: Result<RecordBatch>| batch.inspect(|batch| meter.advance(batch.num_rows() as u64));
        Ok(Box::new(reader()?.map(count)) as Batches)
    })
}

#[cfg(test)]
mod tests;
