//! Defines the SQL function `pauc`, the area under a part of the ROC curve of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "pauc",
    usage: USAGE,
    help: "area under the ROC curve between two false-positive rates in percent, such as '0-5'",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "pauc(label, score, range [, convention])";

const ENTRY: MetricEntry = MetricEntry {
    name: "pauc",
    aliases: &[],
    pooled: Some("pauc_pooled"),
    usage: USAGE,
    depth: DepthArgument::Range,
    metric: |argument| {
        let (from, to) = argument.range();
        Metric::PartialAuc(from, to)
    },
};
