//! Area under the ROC curve of a query.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function =
    Function { name: "auc", usage: USAGE, help: "area under the ROC curve", make: Make::Metric(&ENTRY) };

const USAGE: &str = "auc(label, score [, convention])";

const ENTRY: MetricEntry = MetricEntry {
    name: "auc",
    aliases: &[],
    pooled: Some("auc_pooled"),
    usage: USAGE,
    depth: Depth::None,
    metric: |_| Metric::Auc,
};
