//! Normalised discounted cumulative gain of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "ndcg",
    usage: USAGE,
    help: "discounted gain over that of the best order",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "ndcg(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "ndcg",
    aliases: &[],
    pooled: Some("ndcg_pooled"),
    usage: USAGE,
    depth: Depth::Optional,
    metric: Metric::Ndcg,
};
