//! Root mean squared error of some rows.

use super::ranking::{Depth, MetricEntry};
use super::{Function, Make};
use planetree_metric::Metric;

pub const FUNCTION: Function = Function {
    name: "rmse",
    usage: USAGE,
    help: "root of the mean squared difference of score and label",
    make: Make::Metric(&ENTRY),
};

const USAGE: &str = "rmse(label, score)";

const ENTRY: MetricEntry = MetricEntry {
    name: "rmse",
    aliases: &[],
    pooled: None,
    usage: USAGE,
    depth: Depth::None,
    metric: |_| Metric::Rmse,
};
