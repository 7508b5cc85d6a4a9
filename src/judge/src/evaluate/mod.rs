//! Evaluates rankings: computes one value per query and metric, and summarises the values.
//!
//! ```text
//! predictions, scores, runs ──► rows ──(sorted, if a query's rows are scattered)──► queries ─metrics─► results
//! separate labels, qrels ─────────┘                                                                      │
//!                                                             metrics table, summary, segments ◄─────────┘
//! ```

mod baseline;
mod curve;
mod documents;
mod drive;
mod job;
mod judgments;
mod lines;
mod load;
mod mapped_labels;
mod overlap;
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
mod unreadable;
mod worker;

pub use baseline::Baseline;
pub use curve::{CURVE, CurvePoint};
pub use job::{JudgeRows, JudgedGroups};
pub use judgments::Judgments;
pub use load::{LoadedPredictions, load_predictions};
pub use overlap::Overlap;
pub use remote::{EvaluationInput, RemoteEvaluator};
pub use results::{QueryResult, Results};
pub use segments::SegmentJoin;
pub use summary::{EvaluationSummary, MetricSummary, PERCENTILES, SegmentSummary, mean_of};
pub use table::{CONVENTION, METRICS, MetricsLayout, MetricsTable, POOLED, RowOrigin, default_metrics};

use crate::plan::{BATCH_ROWS, BatchIterator, Engine, OpenReader, SORT_ROWS};
use arrow::array::RecordBatch;
use drive::EvaluationDriver;
use planetree_base::error::{Error, Result};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_metric::{Convention, Metric};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

pub use predictions::Predictions;
pub use worker::EvaluationSettings;
pub use worker::PartialEvaluation;

/// Metrics that are computed by default. The first metric determines which queries are listed as the worst.
pub const DEFAULT_METRICS: &str = "ndcg@10,ndcg@1,ndcg@3,ndcg@5,err,map";

/// Default memory limit for sorting, in bytes.
pub const DEFAULT_MEMORY: u64 = 512 << 20;
/// Minimum memory limit of the program in bytes.
pub const MIN_MEMORY: u64 = 96 << 20;

/// Bytes to read and evaluate rows whose size is not known in advance.
const TASK_BYTES: u64 = 16 << 20;

/// A ranking to evaluate.
#[derive(Debug, Clone)]
pub enum Ranking {
    /// Predictions in a table written by planetree, in another Parquet file, or in a text file with the same columns.
    Predictions(Location),
    /// A text file with one score for each row of a dataset.
    Scores {
        /// Location of the scores.
        scores: Location,
        /// Location of the dataset.
        data: Location,
    },
    /// A TREC run file.
    Run(Location),
    /// A ranking of a dataset that needs no model.
    Baseline {
        /// Location of the dataset.
        data: Location,
        /// How the rows are ranked.
        baseline: Baseline,
    },
}

impl Ranking {
    /// Returns the location of the file with the scores, or of the dataset that a baseline ranks.
    pub fn location(&self) -> &Location {
        match self {
            Ranking::Predictions(location) | Ranking::Run(location) => location,
            Ranking::Scores { scores, .. } => scores,
            Ranking::Baseline { data, .. } => data,
        }
    }

    /// Whether values are expectations over all orders of documents.
    fn is_expectation(&self) -> bool {
        matches!(self, Ranking::Baseline { baseline: Baseline::Expectation, .. })
    }
}

impl fmt::Display for Ranking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ranking::Baseline { data, baseline } => write!(formatter, "{baseline} of {data}"),
            _ => self.location().fmt(formatter),
        }
    }
}

/// Which metrics to compute for a ranking, and how.
#[derive(Debug, Clone)]
pub struct EvaluateRequest {
    /// Metrics to compute.
    pub metrics: Vec<Metric>,
    /// Convention, which is the set of rules by which all metrics are computed.
    pub convention: Convention,
    /// Map of labels to others, which are evaluated; `None` if labels are used as they are.
    pub label_map: Option<LabelMap>,
    /// Source of the labels; `None` if the ranking itself has labels.
    pub judgments: Option<Judgments>,
    /// Whether queries with judgments but without ranked documents count as queries with an empty ranking. Otherwise
    /// they are ignored.
    pub complete: bool,
    /// Column of the ranking by which queries are grouped into segments, if requested.
    pub by: Option<String>,
    /// Whether to compute DCG and ideal DCG in addition to the metrics.
    pub gains: bool,
    /// Location and tag of the TREC run to which the ranking is written, if requested.
    pub run: Option<(Location, String)>,
    /// Number of threads; 0 for all cores.
    pub threads: usize,
    /// Memory limit for sorting, in bytes.
    pub memory_limit: u64,
    /// Progress meter. It counts every row when it is read. If rows must be sorted, it counts every row again when it
    /// is evaluated.
    pub meter: SharedMeter,
    /// Evaluates row groups of predictions in other processes; `None` to evaluate them in this process.
    pub remote: Option<Arc<dyn RemoteEvaluator>>,
}

impl EvaluateRequest {
    /// Creates a request with defaults for all other options.
    pub fn new(metrics: Vec<Metric>, convention: Convention) -> Self {
        EvaluateRequest {
            metrics,
            convention,
            label_map: None,
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

/// Evaluates every query of a ranking. Results are in input order, whatever the number of threads.
pub fn evaluate(ranking: &Ranking, request: &EvaluateRequest) -> Result<Results> {
    let threads = match request.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let engine = Engine::new(threads, request.memory_limit)?;
    let settings = EvaluationSettings {
        metrics: request.metrics.clone(),
        convention: request.convention.clone(),
        judgments: request.judgments.clone(),
        complete: request.complete,
        gains: request.gains,
        segments: request.by.is_some(),
        tag: request.run.as_ref().map(|(_, tag)| tag.clone()),
        input: ranking.location().to_string(),
        random_order: ranking.is_expectation(),
        has_labels_of_data: matches!(ranking, Ranking::Scores { .. } | Ranking::Baseline { .. }),
    };
    let run = request.run.as_ref().map(|(location, _)| location);
    let tasks = Cell::new(engine.tasks(TASK_BYTES));
    let judge = |readers: Vec<OpenReader>, rows: Option<u64>, sorted: bool| -> Result<Option<Results>> {
        let readers = readers.into_iter().map(|reader| {
            let reader = metered(reader, request.meter.clone());
            match &request.label_map {
                Some(map) => mapped_labels::mapped(reader, map.clone(), ranking.location().to_string()),
                None => reader,
            }
        });
        let readers = readers.collect();
        let mut plan = engine.scan(rows::schema(), readers)?;
        // Sorted rows are counted twice: when they are read and when they are evaluated.
        request.meter.begin(rows.map(|rows| rows * if sorted { 2 } else { 1 }));
        let mut meter = unwatched();
        if sorted {
            plan = engine.sort(plan, &["query_id", "row"])?;
            meter = request.meter.clone();
        }
        let tasks = tasks.get();
        let drive = EvaluationDriver { engine: &engine, settings: &settings, run, sorted, tasks, meter };
        let results = drive.judge(&plan)?;
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
            let contiguous = match judged {
                None => judge(vec![reader.clone()], None, false)?,
                Some(_) => None,
            };
            match contiguous {
                None => judge([reader].into_iter().chain(judged).collect(), None, true)?,
                done => done,
            }
        }
        (Ranking::Predictions(location), judged, None) => {
            let predictions = Predictions::open(location, by)?;
            seen_in_training = predictions.seen_in_training;
            let batch_rows = match engine.has_room(predictions.reader_bytes(BATCH_ROWS)) {
                true => BATCH_ROWS,
                false => SORT_ROWS,
            };
            let bytes = predictions.reader_bytes(batch_rows);
            if request.remote.is_none() {
                engine.require(bytes)?;
            }
            tasks.set(engine.tasks(bytes));
            let sort = |judged: Option<OpenReader>| {
                let readers = predictions.shared_readers(tasks.get()).into_iter().chain(judged).collect();
                judge(readers, Some(predictions.rows()), true)
            };
            match judged {
                Some(judged) => sort(Some(judged))?,
                None => {
                    let contiguous = match &request.remote {
                        None => {
                            let readers = predictions.readers(batch_rows);
                            judge(readers, Some(predictions.rows()), false)?
                        }
                        Some(remote) => {
                            request.meter.begin(Some(predictions.rows()));
                            let meter = request.meter.clone();
                            let drive = EvaluationDriver {
                                engine: &engine,
                                settings: &settings,
                                run,
                                sorted: false,
                                tasks: tasks.get(),
                                meter,
                            };
                            drive.judge_by(
                                &**remote,
                                &EvaluationInput { predictions: &predictions, settings: &settings, by },
                            )?
                        }
                    };
                    match contiguous {
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
        (Ranking::Baseline { data, baseline }, None, _) => {
            if ranking.is_expectation() && request.run.is_some() {
                return Err(Error::usage(
                    "--write-run: the expectation over all orders is not a ranking",
                    "omit --write-run",
                ));
            }
            let (readers, rows) = baseline::readers(data, baseline, &request.metrics, by)?;
            judge(readers, Some(rows), false)?
        }
        (Ranking::Scores { .. } | Ranking::Baseline { .. }, Some(_), _) => {
            return Err(Error::usage(
                "--labels and --qrels cannot be combined with --data: the labels come from the dataset",
                "omit --labels and --qrels",
            ));
        }
        (Ranking::Run(location), None, _) => {
            return Err(Error::usage(
                format_args!("{location}: a TREC run has no labels"),
                "pass --qrels FILE or --labels DATASET",
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
            "no query has judgments",
            "check that ranking and judgments use the same query ids",
        )),
        Some(_) => Err(Error::place(ranking.location(), "no rows", "choose a file that contains rows")),
        None => Err(Error::place(
            ranking.location(),
            "the rows of a query are not contiguous",
            "convert the predictions to Parquet, which can be sorted",
        )),
    }
}

/// Wraps a reader so that the meter counts its rows.
fn metered(reader: OpenReader, meter: SharedMeter) -> OpenReader {
    Arc::new(move || {
        let meter = meter.clone();
        let count =
            move |batch: Result<RecordBatch>| batch.inspect(|batch| meter.advance(batch.num_rows() as u64));
        Ok(Box::new(reader()?.map(count)) as BatchIterator)
    })
}

#[cfg(test)]
mod tests;
