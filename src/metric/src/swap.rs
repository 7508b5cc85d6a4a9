//! Computes how a metric changes when two documents are swapped, by evaluating the metric before and after. The
//! formulas for this change in the training objectives are tested against this function.

use super::Metric;
use super::convention::Convention;
use super::judge::Judge;
use super::query::QueryRows;

impl Metric {
    /// Returns the value after swapping the documents at ranks `i` and `j`, minus the value before. Ranks count from
    /// 0, and `labels` are in ranked order. The result is 0 if the metric has no value, and for RMSE, which does not
    /// depend on ranks.
    pub fn swap_delta(&self, convention: &Convention, labels: &[f32], i: usize, j: usize) -> f64 {
        if *self == Metric::Rmse {
            return 0.0;
        }
        let scores: Vec<f64> = (0..labels.len()).map(|rank| -(rank as f64)).collect();
        let mut judge = Judge::new(&[*self], convention);
        let mut value = |labels: &[f32]| {
            let rows = QueryRows { labels, scores: &scores, documents: None, judged: None };
            judge.query(&rows).ok().and_then(|values| values[0])
        };
        let mut swapped = labels.to_vec();
        swapped.swap(i, j);
        value(&swapped).zip(value(labels)).map_or(0.0, |(after, before)| after - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let standard = Convention::default();
        let labels = [0.0, 1.0, 2.0];
        let delta = |metric: &str, i, j| -> f64 {
            metric.parse::<Metric>().unwrap().swap_delta(&standard, &labels, i, j)
        };
        // The DCG changes by (3 - 0) (1 - 1/2) = 1.5, and the ideal DCG is 3 + 1/log2(3).
        assert!((delta("dcg", 0, 2) - 1.5).abs() < 1e-15);
        assert!((delta("ndcg", 0, 2) - 1.5 / (3.0 + 1.0 / 3_f64.log2())).abs() < 1e-15);
        assert_eq!(delta("ndcg", 0, 2), delta("ndcg", 2, 0));
        assert_eq!(delta("mrr", 0, 1), 0.5);
        assert_eq!(delta("p@2", 1, 2), 0.0);
        assert_eq!(delta("p@2", 0, 2), 0.5);
        assert_eq!(delta("inversions", 0, 2), -3.0);
        assert_eq!(delta("rmse", 0, 2), 0.0);
        assert_eq!(Metric::Auc.swap_delta(&standard, &[0.0, 0.0], 0, 1), 0.0);
    }
}
