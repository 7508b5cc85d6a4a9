//! Tests of the program as its users run it. One binary, so that it links once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod augment;
mod bad_input;
mod baselines;
mod blend;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_attacks;
#[cfg(feature = "cluster")]
mod cluster_jobs;
#[cfg(feature = "cluster")]
mod cluster_parts;
mod column_options;
mod compare;
mod cost;
mod crash;
mod cv;
mod damage;
mod direct_tables;
mod evaluate;
mod exchange;
mod fingerprint;
mod forest;
mod formats;
mod habits;
mod identity;
mod impute;
mod label_map;
mod leakage;
mod limits;
mod linear;
mod listwise;
mod long;
mod metric_tools;
mod missing_values;
mod mistakes;
mod monotone;
mod nets;
#[cfg(feature = "cluster")]
mod new_learner;
mod normalised_trees;
mod outputs;
mod outside;
mod pages;
mod parity;
mod parity_table;
mod partitioned_tables;
mod parts;
mod pipeline;
mod pipeline_crash;
mod pipeline_papers;
mod pipeline_shipped;
mod plan_references;
mod rankers;
mod real_data;
mod replace;
mod report;
mod report_why;
mod round_trip;
mod s3;
mod select;
mod softmax;
mod sql;
mod sql_rules;
mod start_scores;
mod support;
mod terminal;
mod three_way;
mod torture;
mod train_crash;
mod train_faults;
mod train_identity;
mod train_long;
mod train_outputs;
mod train_papers;
mod train_plans;
mod train_ranking;
mod train_streaming;
mod train_truth;
mod train_union;
mod words;
