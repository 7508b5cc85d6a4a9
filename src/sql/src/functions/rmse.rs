//! Defines the SQL function `rmse`, the root mean squared error over rows.

use super::ranking::{DepthArgument, MetricEntry};
use super::{FunctionKind, SqlFunction};
use planetree_metric::Metric;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "rmse",
    usage: USAGE,
    help: "root mean squared difference between score and label",
    kind: FunctionKind::Metric(&ENTRY),
};

const USAGE: &str = "rmse(label, score)";

const ENTRY: MetricEntry = MetricEntry {
    name: "rmse",
    aliases: &[],
    pooled: None,
    usage: USAGE,
    depth: DepthArgument::None,
    metric: |_| Metric::Rmse,
};
