//! Defines the SQL function `precision_at`, the precision of the first k documents of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "precision_at",
    usage: USAGE,
    help: "fraction of the first k documents that are relevant",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "precision_at(label, score, k [, convention [, doc_id]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "precision_at",
    aliases: &[],
    pooled: Some("precision_at_pooled"),
    usage: USAGE,
    depth: DepthArgument::Required,
    metric: |argument| Metric::Precision(argument.depth()),
};
