//! planetree trains learning-to-rank tree ensembles as MapReduce over Parquet.
//!
//! ```text
//! text, CSV, Parquet ──convert──► dataset (Parquet, whole queries per row group and file)
//!                                    │
//!                                    ├──describe──► what is in it, what to look at
//!                                    │
//!                                    ▼ bins: summaries of partitions add up, cuts follow
//!                                 codes, in memory or mapped
//!                                    │
//!          ┌── one level of a tree ──┤ map: rows are added into histograms of whole numbers
//!          └────────────────────────►│ reduce: add, cut, move rows to the children
//!                                    │
//!                                    ▼ boost: trees add up
//!                                 model (Parquet, a row per node) ──predict──► predictions (Parquet)
//!                                                                              │
//!                                    metrics (Parquet, a row per query) ◄──evaluate
//!                                    │
//!                                    └──compare──► is it better, or was it luck?
//! ```
//!
//! Vocabulary, in the order of the flow:
//!
//! - an *input* is a file, object or stream as the user named it; a *chunk* is some whole lines of it;
//! - a *block* is the rows of one chunk, features turned into columns; an *entry* is one value that
//!   is present; a *run* is a stretch of rows of one query;
//! - a *row group* is whole queries, ready to be encoded; a *part* is one Parquet file of a dataset;
//! - the *manifest* names the parts and the checksum of every stretch of their bytes;
//! - a *staging* is an output that nobody sees yet;
//! - a *partition* is a row group as the trainer sees it; a *bin* is a stretch of neighbouring values
//!   of a feature, a *code* its number; a *group* is some features that the inner loop treats together;
//! - a *target* is what a row wants of the next tree, its gradient in whole numbers; a *cell* is the sum
//!   over some rows of a node, a *histogram* the cells of all bins;
//! - a *candidate* is a place where a node may be cut, a *split* the one that was chosen; a node's
//!   *cover* is the weight of the rows in it;
//! - a *round* grows one tree; a *table* is one Parquet file of ours: model, predictions, rounds,
//!   metrics, differences, folds, trials, steps;
//! - a *ranking* is documents of queries with scores, a *judgment* the label of one that comes from elsewhere;
//!   a *convention* is the rules by which a ranking is judged; a *system* is whatever made one, its values side by side
//!   with those of others, query by query;
//! - a *session* of SQL is the tables, functions, threads and memory that statements share;
//! - a *fold* trains on most parts of the data and is tested on one; a *trial* is a choice of parameters;
//! - a *pipeline* is steps that are commands of this program, with what each reads and writes.
//!
//! The folders follow the flow: [`sample`] → [`ingest`] → [`convert`] → [`dataset`] → [`describe`], then
//! [`config`] → [`train`] → [`bins`] → [`objective`] → [`tree`] → `boost` or `forest` with [`metric`] → [`model`] →
//! [`predict`], [`explain`] → [`evaluate`] → [`compare`], all of it many times in [`cv`], step by step in [`pipeline`],
//! on several machines by `cluster`, to look at in [`report`] and `sql`, to and from other programs by [`exchange`], on top of [`catalog`], [`plan`],
//! [`table`] and [`storage`], below [`cli`].

pub use planetree_base::{error, progress, random, storage};
pub use planetree_data::{convert, dataset, describe, ingest, rows, sample, source, table};
pub use planetree_judge::{compare, evaluate};
pub use planetree_metric as metric;
pub use planetree_model::{exchange, explain, model, predict};
pub use planetree_train as train;
