//! Precision of the first documents of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "precision_at",
    usage: USAGE,
    help: "share of relevant documents among the first k",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "precision_at(label, score, k [, convention [, doc_id]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "precision_at",
    aliases: &[],
    pooled: Some("precision_at_pooled"),
    usage: USAGE,
    depth: Depth::Needed,
    metric: Metric::Precision,
};
