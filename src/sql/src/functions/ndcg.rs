//! Defines the SQL function `ndcg`, the normalised discounted cumulative gain of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "ndcg",
    usage: USAGE,
    help: "DCG divided by the DCG of the ideal order",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "ndcg(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "ndcg",
    aliases: &[],
    pooled: Some("ndcg_pooled"),
    usage: USAGE,
    depth: DepthArgument::Optional,
    metric: |argument| Metric::Ndcg(argument.depth()),
};
