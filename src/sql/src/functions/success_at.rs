//! Defines the SQL function `success_at`: whether one of the first k documents of a query is relevant.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "success_at",
    usage: USAGE,
    help: "1 if one of the first k documents is relevant, otherwise 0",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "success_at(label, score, k [, convention [, doc_id]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "success_at",
    aliases: &[],
    pooled: Some("success_at_pooled"),
    usage: USAGE,
    depth: DepthArgument::Required,
    metric: |argument| Metric::Success(argument.depth()),
};
