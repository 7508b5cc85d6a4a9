//! Average precision of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "average_precision",
    usage: USAGE,
    help: "mean precision at the relevant documents; ap() for short",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "average_precision(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "average_precision",
    aliases: &["ap"],
    pooled: Some("average_precision_pooled"),
    usage: USAGE,
    depth: Depth::Optional,
    metric: Metric::Map,
};
