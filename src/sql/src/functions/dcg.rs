//! Discounted cumulative gain of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function =
    Function { name: "dcg", usage: USAGE, help: "discounted gain", make: Make::Metric(&ENTRY) };

const USAGE: &str = "dcg(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "dcg",
    aliases: &[],
    pooled: Some("dcg_pooled"),
    usage: USAGE,
    depth: Depth::Optional,
    metric: Metric::Dcg,
};
