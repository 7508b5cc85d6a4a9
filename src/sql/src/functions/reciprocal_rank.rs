//! Defines the SQL function `reciprocal_rank`, the reciprocal rank of the first relevant document of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "reciprocal_rank",
    usage: USAGE,
    help: "1 / rank of the first relevant document",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "reciprocal_rank(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "reciprocal_rank",
    aliases: &[],
    pooled: Some("reciprocal_rank_pooled"),
    usage: USAGE,
    depth: DepthArgument::Optional,
    metric: |argument| Metric::Mrr(argument.depth()),
};
