//! Tests of the program as its users run it. One binary, so that it links once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod compare;
mod crash;
mod cv;
mod damage;
mod evaluate;
mod forest;
mod formats;
mod identity;
mod learning;
mod listwise;
mod long;
mod metric_tools;
mod outside;
mod real_data;
mod round_trip;
mod s3;
mod support;
mod train_crash;
mod train_faults;
mod train_identity;
mod train_long;
mod train_outputs;
mod train_ranking;
mod train_streaming;
mod train_truth;
mod train_union;
