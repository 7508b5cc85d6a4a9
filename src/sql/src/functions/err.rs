//! Expected reciprocal rank of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "err",
    usage: USAGE,
    help: "expected reciprocal rank at which a user is satisfied",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "err(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "err",
    aliases: &[],
    pooled: Some("err_pooled"),
    usage: USAGE,
    depth: Depth::Optional,
    metric: Metric::Err,
};
