//! Learning to rank with tree ensembles, trained as MapReduce over Parquet.
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
//! use planetree::evaluate::{Ranking, Request, Summary, evaluate};
//! use planetree::metric::{Convention, Metric};
//! use planetree::storage::{Access, Location};
//! use planetree::train::{Silent, TrainRequest, config, train};
//! use planetree::{ConvertRequest, write_predictions};
//!
//! # fn main() -> planetree::error::Result<()> {
//! # let room = tempfile::tempdir().unwrap();
//! # let path = |name: &str| room.path().join(name).to_str().unwrap().to_owned();
//! # let place = |name: &str| Location::parse(&path(name), Access::default());
//! # let text: String = (0..400).map(|row| format!("{} qid:{} 1:{} 2:{}\n", row % 3, row / 20, row % 3, row % 7)).collect();
//! # std::fs::write(path("train.txt"), text).unwrap();
//! let data = ConvertRequest::new([path("train.txt").as_str()], &path("train")).run()?;
//! let parameters = config::load(Some("lambdamart"), None, &["num_trees=10".to_owned()])?;
//! let outcome = train(&TrainRequest::new(data.location().clone(), parameters), &mut Silent)?;
//! outcome.model.write(&place("model.parquet")?)?;
//!
//! write_predictions(&place("model.parquet")?, &data, &place("predictions.parquet")?)?;
//! let metrics = vec![Metric::Ndcg(Some(10))];
//! let ranking = Ranking::Predictions(place("predictions.parquet")?);
//! let results = evaluate(&ranking, &Request::new(metrics.clone(), Convention::default()))?;
//! let summary = Summary::of(&results, &metrics, 0);
//! assert!(summary.metrics[0].mean > Some(0.9));
//! # Ok(())
//! # }
//! ```
//!
//! [`Ranker`] scores one query in memory. An objective of your own goes into
//! [`TrainRequest::objective`](train::TrainRequest::objective), a metric into
//! [`Metric::custom`](metric::Metric::custom); the repository's `examples/` show both.
//!
//! Terms, in the order of the flow:
//!
//! - a *row group* holds whole queries; a *part* is one Parquet file of a dataset; the *manifest* lists the parts and
//!   the checksum of every row group;
//! - a *partition* is a row group in training; a *bin* is a range of neighbouring values of a feature, a *code* its
//!   number; a *histogram* has one cell of sums per bin;
//! - a *candidate* is a possible cut of a node, a *split* the chosen one; a node's *cover* is the weight of its rows;
//! - a *round* grows one tree;
//! - a *ranking* is documents of queries with scores, a *judgment* a label from another source; a *convention* is the
//!   rules by which a ranking is evaluated.

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
