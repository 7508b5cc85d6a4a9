//! Reciprocal rank of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "reciprocal_rank",
    usage: USAGE,
    help: "one over the rank of the first relevant document",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "reciprocal_rank(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "reciprocal_rank",
    aliases: &[],
    pooled: Some("reciprocal_rank_pooled"),
    usage: USAGE,
    depth: Depth::Optional,
    metric: Metric::Mrr,
};
