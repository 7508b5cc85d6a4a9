//! Metrics that are defined by a Rust function.

use super::query::QueryRows;
use std::fmt;
use std::hash::{Hash, Hasher};

type CustomFunction = dyn Fn(&QueryRows<'_>) -> Option<f64> + Send + Sync;

/// A metric that is defined by a function, created with [`Metric::custom`](super::Metric::custom).
#[derive(Clone, Copy)]
pub struct CustomMetric {
    pub(super) name: &'static str,
    pub(super) higher_is_better: bool,
    value: &'static CustomFunction,
}

impl CustomMetric {
    pub(super) fn new(
        name: &str,
        higher_is_better: bool,
        value: impl Fn(&QueryRows<'_>) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        // The name and the function are leaked deliberately: the metric then lives as long as the program, and stays
        // a small `Copy` value that logs and tables can refer to.
        let name = Box::leak(name.to_owned().into_boxed_str());
        CustomMetric { name, higher_is_better, value: Box::leak(Box::new(value)) }
    }

    pub(super) fn value(&self, rows: &QueryRows<'_>) -> Option<f64> {
        (self.value)(rows)
    }
}

impl fmt::Debug for CustomMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomMetric").field(&self.name).finish()
    }
}

impl PartialEq for CustomMetric {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.higher_is_better == other.higher_is_better
    }
}

impl Eq for CustomMetric {}

impl Hash for CustomMetric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Convention, Judge, Metric, QueryRows};

    #[test]
    fn a_custom_metric_is_judged_beside_others() {
        let top = |rows: &QueryRows<'_>| {
            let best = (0..rows.scores.len())
                .max_by(|one, other| rows.scores[*one].total_cmp(&rows.scores[*other]))?;
            Some(f64::from(rows.labels[best]))
        };
        let metric = Metric::custom("top_label", true, top);
        assert_eq!(metric.to_string(), "top_label");
        assert!(metric.higher_is_better());
        let mut judge = Judge::new(&[metric, Metric::Ndcg(None)], &Convention::default());
        let rows =
            QueryRows { labels: &[0.0, 3.0, 1.0], scores: &[0.1, 0.5, 0.9], documents: None, judged: None };
        let values = judge.query(&rows).unwrap();
        assert_eq!(values[0], Some(1.0));
        assert!(values[1].is_some_and(|ndcg| ndcg < 1.0));
        let empty = QueryRows { labels: &[], scores: &[], documents: None, judged: None };
        assert_eq!(Judge::new(&[metric], &Convention::default()).query(&empty).unwrap(), [None]);
    }
}
