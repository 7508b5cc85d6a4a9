//! Defines the SQL function `auc`, the area under the ROC curve of the ranking of a query.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "auc",
    usage: USAGE,
    help: "area under the ROC curve",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "auc(label, score [, convention])";

const ENTRY: MetricEntry = MetricEntry {
    name: "auc",
    aliases: &[],
    pooled: Some("auc_pooled"),
    usage: USAGE,
    depth: DepthArgument::None,
    metric: |_| Metric::Auc,
};
