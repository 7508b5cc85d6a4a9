//! Recall of the first documents of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "recall_at",
    usage: USAGE,
    help: "share of the relevant documents that are among the first k",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "recall_at(label, score, k [, convention [, doc_id]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "recall_at",
    aliases: &[],
    pooled: Some("recall_at_pooled"),
    usage: USAGE,
    depth: Depth::Needed,
    metric: Metric::Recall,
};
