//! The expectation of metrics over all orders of a query's documents, each of which is equally likely.
//!
//! If all scores are equal and the convention averages over ties, most metrics are this expectation already. This module
//! has the others.

use super::auc::AreaRules;
use super::convention::{Convention, MapNormaliser, Ties};
use super::{Metric, inversions};
use planetree_base::error::{Error, Result};

impl Convention {
    /// Returns the convention that averages over ties. Returns an error if one of the metrics has no closed form.
    pub(super) fn averaged(&self, metrics: &[Metric]) -> Result<Self> {
        let has_map = metrics.iter().any(|metric| matches!(metric, Metric::Map(_)));
        if has_map && self.map_normaliser == MapNormaliser::Found {
            return Err(Error::usage(
                format_args!("convention {self}: map_normaliser=found has no expectation over random orders"),
                "choose another convention, such as map_normaliser=depth, or leave out map",
            ));
        }
        if let Some(metric) = metrics.iter().find(|metric| matches!(metric, Metric::PartialAucPooled(..))) {
            return Err(Error::usage(
                format_args!("{metric} has no expectation over random orders"),
                "choose pauc@I-J with auc=query in the convention, or auc_pooled",
            ));
        }
        Ok(Convention { ties: Ties::Average, binary_ties: Ties::Average, ..self.clone() })
    }

    /// Returns the convention by which rankers are trained for a metric. Where the order of rows or the labels themselves
    /// would break ties, documents in a tie count as the mean over all their orders, or as in the worst one if the metric
    /// has no such mean. Otherwise, functions that tie documents would be rewarded if rows happen to be sorted by label.
    pub fn for_training(&self) -> Self {
        let broken = |ties: Ties, instead: Ties| match ties {
            Ties::Input | Ties::Best => instead,
            Ties::Document | Ties::Average | Ties::Worst | Ties::Last => ties,
        };
        let has_mean = self.map_normaliser != MapNormaliser::Found;
        Convention {
            ties: broken(self.ties, Ties::Average),
            binary_ties: broken(self.binary_ties, if has_mean { Ties::Average } else { Ties::Worst }),
            ..self.clone()
        }
    }
}

impl Metric {
    /// Returns the expectation over all orders of a query. `tied` is the value for equal scores. `None` if the query is
    /// excluded from the mean, or if the metric does not depend on the order alone.
    pub(super) fn expected(&self, tied: Option<f64>, labels: &[f32], convention: &Convention) -> Option<f64> {
        match self {
            Metric::Rmse | Metric::Custom(_) => None,
            Metric::PartialAuc(from, to) => partial_auc(labels, convention, (*from, *to)),
            Metric::KendallTau => {
                // Tau is undefined if all labels are equal. Otherwise, it is as often negative as positive.
                let pairs = inversions::count(labels, &[labels.len() as u32]);
                (pairs.all > pairs.equal_labels).then_some(0.0)
            }
            _ => tied,
        }
    }
}

/// Returns the expected area under the ROC curve between two false-positive rates in percent. The curve is a step
/// function: the expected share of relevant documents above the irrelevant document number k, from 0, of n is
/// (k + 1) / (n + 1).
fn partial_auc(labels: &[f32], convention: &Convention, percents: (u32, u32)) -> Option<f64> {
    let relevant = convention.count_relevant(labels);
    let irrelevant = labels.len() - relevant;
    if relevant == 0 || irrelevant == 0 {
        return None;
    }
    let within = |percent: u32| f64::from(percent) / 100.0 * irrelevant as f64;
    let (from, to) = (within(percents.0), within(percents.1));
    let step = |place: usize| {
        let (low, high) = (f64::max(from, place as f64), f64::min(to, place as f64 + 1.0));
        (high - low).max(0.0) * (place + 1) as f64 / (irrelevant + 1) as f64
    };
    let area = (0..irrelevant).map(step).sum::<f64>() / irrelevant as f64;
    Some(AreaRules::of(convention).scaled(area, percents))
}

#[cfg(test)]
mod tests {
    use crate::{Convention, Judge, Metric, QueryRows};
    use proptest::prelude::*;

    const METRICS: &str = "ndcg@2,ndcg,dcg@3,err,err@2,map,map@3,mrr,mrr@2,p@3,recall@2,success@2,auc,pauc@0-30,pauc@20-70,tau,inversions";

    /// Calls a function for every order of the numbers below `count`.
    fn for_orders(count: usize, visit: &mut dyn FnMut(&[usize])) {
        fn extend(order: &mut Vec<usize>, count: usize, visit: &mut dyn FnMut(&[usize])) {
            if order.len() == count {
                visit(order);
            }
            for next in 0..count {
                if !order.contains(&next) {
                    order.push(next);
                    extend(order, count, visit);
                    order.pop();
                }
            }
        }
        extend(&mut Vec::new(), count, visit);
    }

    fn metrics() -> Vec<Metric> {
        METRICS.split(',').map(|name| name.parse().unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn the_expectation_is_the_mean_over_all_permutations(
            labels in proptest::collection::vec((0_u8..4).prop_map(f32::from), 1..6),
            convention in proptest::sample::select(
                vec!["planetree", "letor4", "mslr", "yahoo", "empty=skip", "trec", "xgboost", "lightgbm", "pauc=standardised"]),
        ) {
            let (metrics, convention) = (metrics(), convention.parse::<Convention>().unwrap());
            let names: Vec<String> = (0..labels.len()).map(|place| place.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let scores = vec![0.0; labels.len()];
            let rows = QueryRows { labels: &labels, scores: &scores, documents: Some(&names), judged: None };
            let mut expectation = Judge::of_random_order(&metrics, &convention).unwrap();
            let expected = expectation.query(&rows).unwrap().to_vec();
            let mut judge = Judge::new(&metrics, &convention);
            let (mut sums, mut orders) = (vec![Some(0.0); metrics.len()], 0.0);
            for_orders(labels.len(), &mut |order| {
                let scores: Vec<f64> = order.iter().map(|place| *place as f64).collect();
                let values = judge.query(&QueryRows { scores: &scores, ..rows }).unwrap();
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = sum.zip(*value).map(|(sum, value)| sum + value);
                }
                orders += 1.0;
            });
            for ((metric, sum), expected) in metrics.iter().zip(sums).zip(expected) {
                let mean: Option<f64> = sum.map(|sum| sum / orders);
                match (mean, expected) {
                    (Some(mean), Some(expected)) => {
                        prop_assert!((mean - expected).abs() < 1e-12, "{metric} {labels:?}: {mean} {expected}");
                    }
                    (mean, expected) => prop_assert_eq!(mean, expected, "{} {:?}", metric, labels),
                }
            }
        }
    }

    #[test]
    fn ties_are_not_broken_by_rows_or_labels_in_training() {
        for (given, expected) in [
            ("planetree", "planetree,ties=average"),
            ("letor4", "letor4,ties=average"),
            ("catboost", "catboost"),
            ("ydf", "ydf,binary_ties=worst"),
            ("ties=best,binary_ties=last", "ties=average,binary_ties=last"),
            ("ties=docid", "ties=docid"),
        ] {
            let [given, expected] = [given, expected].map(|text| text.parse::<Convention>().unwrap());
            assert_eq!(given.for_training().values(), expected.values(), "{given}");
            // The name of the result has the same values, so that it can be sent to other processes.
            let named: Convention = given.for_training().to_string().parse().unwrap();
            assert_eq!(named.values(), expected.values(), "{named}");
        }
    }

    #[test]
    fn what_has_no_expectation_is_refused_or_excluded() {
        let convention: Convention = "ydf".parse().unwrap();
        let error = Judge::of_random_order(&[Metric::Map(None)], &convention).unwrap_err().to_string();
        assert!(error.contains("map_normaliser=found has no expectation"), "{error}");
        assert!(Judge::of_random_order(&[Metric::Ndcg(None)], &convention).is_ok());
        let mut judge = Judge::of_random_order(&[Metric::Rmse], &Convention::default()).unwrap();
        let rows = QueryRows { labels: &[1.0, 0.0], scores: &[0.0, 0.0], documents: None, judged: None };
        assert_eq!(judge.query(&rows).unwrap(), [None]);
    }
}
