//! Learning to rank with boosted trees, random forests, linear models and neural nets on Parquet data.
//!
//! ```text
//! text, CSV, Parquet ──convert──► dataset (Parquet, whole queries per row group and file)
//!                                    │ train: bins, histograms, splits, trees
//!                                    ▼
//!                                 model (Parquet, one row per node) ──predict──► predictions (Parquet)
//!                                                                                  │ evaluate
//!                                                    metrics (one row per query) ◄─┘
//! ```
//!
//! Convert, train, predict and evaluate:
//!
//! ```
//! use planetree::evaluate::{EvaluateRequest, EvaluationSummary, Ranking, evaluate};
//! use planetree::metric::{Convention, Metric};
//! use planetree::storage::{Access, Location};
//! use planetree::train::{Silent, TrainRequest, config, train};
//! use planetree::{ConvertRequest, write_predictions};
//!
//! # fn main() -> planetree::error::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
//! # let location = |name: &str| Location::parse(&path(name), Access::default());
//! # let text: String = (0..400).map(|row| format!("{} qid:{} 1:{} 2:{}\n", row % 3, row / 20, row % 3, row % 7)).collect();
//! # std::fs::write(path("train.txt"), text).unwrap();
//! let data = ConvertRequest::new([path("train.txt").as_str()], &path("train")).run()?;
//! let plan = config::load(Some("lambdamart"), None, &["num_trees=10".to_owned()])?;
//! let outcome = train(&TrainRequest::new(data.location().clone(), plan), &mut Silent)?;
//! outcome.model.write(&location("model.parquet")?)?;
//!
//! write_predictions(&location("model.parquet")?, &data, &location("predictions.parquet")?)?;
//! let metrics = vec![Metric::Ndcg(Some(10))];
//! let ranking = Ranking::Predictions(location("predictions.parquet")?);
//! let results = evaluate(&ranking, &EvaluateRequest::new(metrics.clone(), Convention::default()))?;
//! let summary = EvaluationSummary::of(&results, &metrics, 0);
//! assert!(summary.metrics[0].mean > Some(0.9));
//! # Ok(())
//! # }
//! ```
//!
//! [`Ranker`] scores one query in memory. Custom objectives are passed to
//! [`TrainRequest::objective`](train::TrainRequest::objective), custom metrics to
//! [`Metric::custom`](metric::Metric::custom); the repository's `examples/` show both.
//!
//! Terms, in the order of the data flow:
//!
//! - a *row group* contains whole queries; a *part* of a dataset is one Parquet file; the *manifest* lists the parts
//!   and the checksum of every row group;
//! - a *partition* is a row group during training; a *bin* is a range of values of a feature, and a *code* is the number
//!   of a bin; a *histogram* has one cell of sums per bin;
//! - a *candidate* is a possible split of a node, a *split* the selected one; the *cover* of a node is the total weight
//!   of its rows;
//! - a *round* grows one tree;
//! - a *model* is a weighted sum; a *part* of a model is one of its terms, such as an ensemble of trees; its values may be
//!   *normalised* over the documents of a query;
//! - a *ranking* is a set of queries with scored documents; a *judgment* is a label from another source; a *convention*
//!   is a set of rules for computing metrics.

mod convert_request;
mod predict_request;
mod ranker;

pub use convert_request::ConvertRequest;
pub use planetree_base::{error, progress, random, storage};
pub use planetree_data::{convert, dataset, describe, ingest, rows, sample, source, table};
pub use planetree_judge::{compare, evaluate};
pub use planetree_metric as metric;
pub use planetree_model::{exchange, explain, model, predict};
pub use planetree_train as train;
pub use predict_request::write_predictions;
pub use ranker::Ranker;
