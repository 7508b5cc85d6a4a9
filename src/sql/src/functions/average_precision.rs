//! Defines the SQL function `average_precision`, the average precision of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "average_precision",
    usage: USAGE,
    help: "mean of the precision at each relevant document; alias ap",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "average_precision(label, score [, k [, convention [, doc_id]]])";

const ENTRY: MetricEntry = MetricEntry {
    name: "average_precision",
    aliases: &["ap"],
    pooled: Some("average_precision_pooled"),
    usage: USAGE,
    depth: DepthArgument::Optional,
    metric: |argument| Metric::Map(argument.depth()),
};
