//! Selects what listwise trees optimise: NDCG, which has a fast form (`measure.rs`), or the expected value of any other
//! ranking metric, which is evaluated list by list as the metric defines it. The expected value of a metric is its
//! mean over all orders of documents with equal scores.

use super::measure::{Extent, NdcgMeasure, NdcgVariant, round, units_of_worth};
use crate::config::ForestSettings;
use planetree_metric::{Convention, Judge, Metric, QueryRows, Ties, Width};

/// The metric that trees optimise, with its rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MeasureVariant {
    /// A variant of NDCG.
    Ndcg(NdcgVariant),
    /// Another metric, under a convention that averages over the orders of ties.
    Metric(Metric, Box<Convention>),
}

impl MeasureVariant {
    /// Derives the variant from training parameters.
    pub(super) fn of(parameters: &ForestSettings) -> Self {
        let metric =
            parameters.learner.criterion.listwise().map_or(Metric::Ndcg(None), |splits| splits.metric);
        match metric {
            Metric::Ndcg(_) => MeasureVariant::Ndcg(NdcgVariant::of(parameters)),
            metric => Self::averaged(metric, &parameters.convention),
        }
    }

    /// Returns the variant for a metric, under this convention except that ties are averaged.
    pub(super) fn averaged(metric: Metric, convention: &Convention) -> Self {
        let convention = Convention {
            ties: Ties::Average,
            binary_ties: Ties::Average,
            scores: Width::Float64,
            ..convention.clone()
        };
        MeasureVariant::Metric(metric, Box::new(convention))
    }

    /// Returns the gain of a label, which only NDCG uses.
    pub(super) fn gain_of(&self, label: f32) -> f64 {
        match self {
            MeasureVariant::Ndcg(variant) => variant.gain.of(label),
            MeasureVariant::Metric(..) => 0.0,
        }
    }
}

/// Computes the worth of lists in the integer units of one tree.
#[derive(Debug, Clone)]
pub(super) enum ListMeasure {
    /// NDCG, as a sum over ties.
    Ndcg(NdcgMeasure),
    /// Another metric.
    Metric(MetricMeasure),
}

/// Computes the worth of whole lists by a metric.
#[derive(Debug, Clone)]
pub(super) struct MetricMeasure {
    metric: Metric,
    convention: Convention,
    /// Number of units that represent a value of 1 for a list of weight 1.
    units: f64,
}

impl ListMeasure {
    /// Creates the measure for lists of this extent.
    pub(super) fn new(variant: &MeasureVariant, extent: &Extent) -> Self {
        match variant {
            MeasureVariant::Ndcg(variant) => ListMeasure::Ndcg(NdcgMeasure::new(variant, extent)),
            MeasureVariant::Metric(metric, convention) => ListMeasure::Metric(MetricMeasure {
                metric: *metric,
                convention: (**convention).clone(),
                units: units_of_worth(extent),
            }),
        }
    }

    /// Returns the gain of a label in units, which only NDCG uses.
    pub(super) fn gain_of(&self, label: f32) -> i32 {
        match self {
            ListMeasure::Ndcg(measure) => measure.gain_of(label),
            ListMeasure::Metric(_) => 0,
        }
    }

    /// Returns the worth of a list of this weight whose metric is 1.
    pub(super) fn perfect(&self, weight: f64) -> i64 {
        match self {
            ListMeasure::Ndcg(measure) => measure.perfect(weight),
            ListMeasure::Metric(measure) => round(weight * measure.units),
        }
    }

    /// Returns the measure of whole lists; `None` for NDCG.
    pub(super) fn metric(&self) -> Option<&MetricMeasure> {
        match self {
            ListMeasure::Ndcg(_) => None,
            ListMeasure::Metric(measure) => Some(measure),
        }
    }
}

impl MetricMeasure {
    /// Creates the evaluator of single lists.
    pub(super) fn judge(&self) -> Judge {
        Judge::new(&[self.metric], &self.convention)
    }

    /// Returns the factor that converts the metric of a list to worth; 0 if the list does not count. A list counts if
    /// the metric is defined for its ideal ranking: rank correlations are not if all scores are equal.
    pub(super) fn factor_of(&self, judge: &mut Judge, labels: &[f32], weight: f64) -> f64 {
        let ideal: Vec<f64> = labels.iter().map(|label| f64::from(*label)).collect();
        match value_of(judge, labels, &ideal) {
            Some(_) => weight * self.units,
            None => 0.0,
        }
    }
}

/// Returns the metric of a list; `None` if the list does not count.
fn value_of(judge: &mut Judge, labels: &[f32], scores: &[f64]) -> Option<f64> {
    let rows = QueryRows { labels, scores, documents: None, judged: None };
    // Labels without a gain were rejected before the first tree, and averaged ties need no document ids.
    judge.query(&rows).ok().and_then(|values| values.first().copied().flatten())
}

/// Returns the worth of a list with these scores.
pub(super) fn worth_of_scores(judge: &mut Judge, labels: &[f32], scores: &[f64], factor: f64) -> i64 {
    round(value_of(judge, labels, scores).unwrap_or(0.0) * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the mean of a metric over all orders that the scores allow. Distinct scores decide every order.
    fn mean_over_orders(metric: Metric, convention: &Convention, labels: &[f32], scores: &[u8]) -> f64 {
        let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in labels {
            orders = orders
                .iter()
                .flat_map(|order| {
                    let next = (0..labels.len()).filter(|place| !order.contains(place));
                    next.map(|place| [order.as_slice(), &[place]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        let allowed: Vec<Vec<usize>> = orders
            .into_iter()
            .filter(|order| order.is_sorted_by(|one, other| scores[*one] >= scores[*other]))
            .collect();
        let mut judge = Judge::new(&[metric], convention);
        let value = |order: &Vec<usize>| {
            let mut ranked = vec![0.0; labels.len()];
            (0..).zip(order).for_each(|(rank, place)| ranked[*place] = -f64::from(rank));
            value_of(&mut judge, labels, &ranked).unwrap_or(0.0)
        };
        let count = allowed.len() as f64;
        allowed.iter().map(value).sum::<f64>() / count
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_list_is_worth_the_mean_over_all_orders(
            labels in prop::collection::vec(0u8..5, 1..7), scores in prop::collection::vec(0u8..3, 6),
        ) {
            let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
            let scores = &scores[..labels.len()];
            let convention = Convention::default();
            for name in ["err", "err@3", "map", "mrr", "p@2", "recall@3", "auc"] {
                let metric: Metric = name.parse().unwrap();
                let variant = MeasureVariant::averaged(metric, &convention);
                let extent = Extent { longest: 6, lists: 1, most_gain: 0.0, most_weight: 1.0 };
                let ListMeasure::Metric(measure) = ListMeasure::new(&variant, &extent) else { panic!("{name}") };
                let mut judge = measure.judge();
                let factor = measure.factor_of(&mut judge, &labels, 1.0);
                let in_leaves: Vec<f64> = scores.iter().map(|score| f64::from(*score)).collect();
                let worth = worth_of_scores(&mut judge, &labels, &in_leaves, factor) as f64;
                let slow = if factor > 0.0 { mean_over_orders(metric, &convention, &labels, scores) } else { 0.0 };
                prop_assert!((worth / measure.units - slow).abs() < 1e-8, "{}: {} {}", name, worth, slow);
            }
        }
    }
}
