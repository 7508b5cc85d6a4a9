//! Defines the SQL function `dcg`, the discounted cumulative gain of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "dcg",
    usage: USAGE,
    help: "discounted cumulative gain",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "dcg(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "dcg",
    aliases: &[],
    pooled: Some("dcg_pooled"),
    usage: USAGE,
    depth: DepthArgument::Optional,
    metric: |argument| Metric::Dcg(argument.depth()),
};
