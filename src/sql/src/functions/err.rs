//! Defines the SQL function `err`, the expected reciprocal rank of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "err",
    usage: USAGE,
    help: "expected reciprocal rank",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "err(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "err",
    aliases: &[],
    pooled: Some("err_pooled"),
    usage: USAGE,
    depth: DepthArgument::Optional,
    metric: |argument| Metric::Err(argument.depth()),
};
