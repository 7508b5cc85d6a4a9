//! Quality gates: the least mean of a metric that a ranking must reach.

use super::report::EvaluatedSystem;
use planetree_base::error::{Error, Result};
use planetree_metric::{Convention, Metric};
use std::str::FromStr;

/// The least mean of a metric, as passed to `--fail-below`. For metrics of which smaller values are better, such as
/// RMSE, it is the largest mean.
#[derive(Debug, Clone)]
pub(crate) struct QualityGate {
    metric: Metric,
    limit: f64,
}

impl FromStr for QualityGate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let expected = || "expected a metric and a value, such as ndcg@10=0.45".to_owned();
        let (metric, limit) = text.split_once('=').ok_or_else(expected)?;
        let metric = metric.parse().map_err(|error: Error| error.to_string())?;
        let limit: f64 = limit.trim().parse().map_err(|_| expected())?;
        if limit.is_finite() { Ok(QualityGate { metric, limit }) } else { Err(expected()) }
    }
}

impl QualityGate {
    /// Fails if the metric is not among those that are computed.
    pub(super) fn check_computed(&self, metrics: &[Metric], convention: &Convention) -> Result<()> {
        if metrics.contains(&convention.meant(self.metric)) {
            return Ok(());
        }
        Err(Error::usage(
            format_args!("--fail-below {}={}: the metric is not computed", self.metric, self.limit),
            format_args!("add {} to --metrics", self.metric),
        ))
    }

    /// Returns whether a mean is good enough. An undefined mean is not.
    fn accepts(&self, mean: Option<f64>) -> bool {
        mean.is_some_and(
            |mean| if self.metric.higher_is_better() { mean >= self.limit } else { mean <= self.limit },
        )
    }
}

/// Fails if a system does not pass a gate. All failures are listed.
pub(super) fn check(
    gates: &[QualityGate],
    metrics: &[Metric],
    convention: &Convention,
    systems: &[EvaluatedSystem],
) -> Result<()> {
    let mut problems = Vec::new();
    for gate in gates {
        let place = metrics.iter().position(|metric| *metric == convention.meant(gate.metric));
        for system in systems {
            let Some(summary) = place.and_then(|place| system.summary.metrics.get(place)) else { continue };
            if !gate.accepts(summary.mean) {
                let side = if gate.metric.higher_is_better() { "below" } else { "above" };
                let mean = summary.mean.map_or_else(|| "undefined".to_owned(), |mean| format!("{mean:.6}"));
                problems.push(format!("{}: {} is {mean}, {side} {}", system.name, gate.metric, gate.limit));
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::QualityGate { problem: format!("quality gate failed: {}", problems.join("; ")) })
}
