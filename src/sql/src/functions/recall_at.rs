//! Defines the SQL function `recall_at`, the recall of the first k documents of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "recall_at",
    usage: USAGE,
    help: "fraction of the relevant documents that are among the first k",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "recall_at(label, score, k [, convention [, doc_id]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "recall_at",
    aliases: &[],
    pooled: Some("recall_at_pooled"),
    usage: USAGE,
    depth: DepthArgument::Required,
    metric: |argument| Metric::Recall(argument.depth()),
};
