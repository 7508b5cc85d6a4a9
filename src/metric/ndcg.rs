//! NDCG: discounted cumulative gain over that of the best order (Järvelin & Kekäläinen 2002), with
//! the gain 2^label - 1 and the discount 1/log2(rank + 1) (Burges et al. 2005).
//!
//! A query without anything relevant scores 0; a query shorter than the depth is taken as it is.

use super::gain::{discount, gain};
use super::ranking::Scratch;

/// DCG of documents in the order given, no deeper than `depth`.
pub fn dcg(order: &[u32], labels: &[f32], depth: Option<u32>) -> f64 {
    let depth = depth.map_or(usize::MAX, |depth| depth as usize);
    let gains = order.iter().take(depth).map(|place| gain(labels[*place as usize]));
    gains.enumerate().map(|(rank, gain)| gain * discount(rank)).sum()
}

/// DCG of the best order.
pub fn ideal(labels: &[f32], depth: Option<u32>, scratch: &mut Scratch) -> f64 {
    let as_scores: Vec<f64> = labels.iter().map(|label| f64::from(*label)).collect();
    dcg(scratch.rank(&as_scores, depth), labels, depth)
}

/// NDCG of an order whose ideal is known. An ideal that is not above 0 has nothing relevant.
pub fn ndcg(order: &[u32], labels: &[f32], depth: Option<u32>, ideal: f64) -> f64 {
    if ideal > 0.0 { dcg(order, labels, depth) / ideal } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::metric::{Metric, Scratch};
    use proptest::prelude::*;

    fn ndcg_of(labels: &[f32], scores: &[f64], depth: Option<u32>) -> f64 {
        Metric::Ndcg(depth).of_query(labels, scores, &mut Scratch::default())
    }

    /// Slow and obviously right: two full sorts and the formula as it is printed.
    fn ndcg_slowly(labels: &[f32], scores: &[f64], depth: usize) -> f64 {
        let dcg = |labels: &[f32]| -> f64 {
            let ranks = labels.iter().zip(1..).take(depth);
            ranks.map(|(label, r)| (f64::from(*label).exp2() - 1.0) / (f64::from(r) + 1.0).log2()).sum()
        };
        let mut ranked: Vec<(f64, f32)> = scores.iter().copied().zip(labels.iter().copied()).collect();
        ranked.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap());
        let ranked: Vec<f32> = ranked.into_iter().map(|(_, label)| label).collect();
        let mut best = labels.to_vec();
        best.sort_by(|a, b| b.partial_cmp(a).unwrap());
        if dcg(&best) > 0.0 { dcg(&ranked) / dcg(&best) } else { 0.0 }
    }

    #[test]
    fn worked_by_hand() {
        let ranked = [3.0, 2.0, 1.0];
        assert!((ndcg_of(&[0.0, 1.0, 2.0], &ranked, Some(3)) - 0.5869).abs() < 5e-5);
        assert!((ndcg_of(&[0.0, 1.0, 2.0], &ranked, Some(1)) - 0.0).abs() < 1e-15);
        assert_eq!(ndcg_of(&[2.0, 1.0, 0.0], &ranked, Some(3)), 1.0);
        // (1 + 7/log2(3)) / (7 + 1/log2(3))
        assert!((ndcg_of(&[1.0, 3.0], &[2.0, 1.0], None) - 0.709_809_7).abs() < 1e-6);
    }

    #[test]
    fn nothing_relevant_scores_zero() {
        assert_eq!(ndcg_of(&[0.0, 0.0, 0.0], &[3.0, 2.0, 1.0], Some(10)), 0.0);
        assert_eq!(ndcg_of(&[-1.0, -2.0], &[2.0, 1.0], None), 0.0);
        assert_eq!(ndcg_of(&[], &[], Some(10)), 0.0);
    }

    #[test]
    fn a_depth_beyond_the_query_is_the_whole_query() {
        let (labels, scores) = ([0.0, 3.0, 1.0, 0.5], [0.1, 0.2, 0.3, 0.0]);
        assert_eq!(ndcg_of(&labels, &scores, Some(10)), ndcg_of(&labels, &scores, None));
    }

    #[test]
    fn equal_scores_keep_the_order_of_the_input() {
        let equal = [1.0; 50];
        let mut labels = [0.0; 50];
        labels[49] = 1.0;
        assert_eq!(ndcg_of(&labels, &equal, Some(10)), 0.0);
        labels[0] = 1.0;
        assert!((ndcg_of(&labels, &equal, Some(1)) - 1.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn agrees_with_full_sorts(
            documents in proptest::collection::vec((
                prop_oneof![(0_u8..5).prop_map(f32::from), -1.0_f32..5.0],
                prop_oneof![(-3_i8..3).prop_map(f64::from), -1.0..1.0],
            ), 0..150),
            depth in proptest::option::of(1_u32..160),
        ) {
            let (labels, scores): (Vec<f32>, Vec<f64>) = documents.into_iter().unzip();
            let slow = ndcg_slowly(&labels, &scores, depth.map_or(usize::MAX, |depth| depth as usize));
            let fast = ndcg_of(&labels, &scores, depth);
            prop_assert!((slow - fast).abs() <= 1e-10 * slow.abs().max(1.0), "{slow} {fast}");
        }

        #[test]
        fn the_best_order_scores_exactly_one(mut labels in proptest::collection::vec(0_u8..5, 1..150)) {
            labels.sort_by(|a, b| b.cmp(a));
            labels[0] = labels[0].max(1);
            let labels: Vec<f32> = labels.into_iter().map(f32::from).collect();
            let scores: Vec<f64> = (0..labels.len()).map(|place| -(place as f64)).collect();
            prop_assert_eq!(ndcg_of(&labels, &scores, Some(10)), 1.0);
        }
    }
}
