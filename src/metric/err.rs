//! ERR, the expected reciprocal rank at which a user who reads from the top is satisfied
//! (Chapelle et al. 2009). A document of label l satisfies with the probability (2^l - 1)/2^4.

use super::gain::gain;

/// The highest grade. Labels above it are taken for it, labels below 0 for 0.
const MOST: f32 = 4.0;
/// 2^`MOST`.
const GRADES: f64 = 16.0;

/// ERR of documents in the order given, no deeper than `depth`.
pub fn err(order: &[u32], labels: &[f32], depth: Option<u32>) -> f64 {
    let depth = depth.map_or(usize::MAX, |depth| depth as usize);
    let mut unsatisfied = 1.0;
    let mut sum = 0.0;
    for (rank, place) in order.iter().take(depth).enumerate() {
        let satisfies = gain(labels[*place as usize].clamp(0.0, MOST)) / GRADES;
        sum += unsatisfied * satisfies / (rank as f64 + 1.0);
        unsatisfied *= 1.0 - satisfies;
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::metric::{Metric, Scratch};
    use proptest::prelude::*;

    fn err_of(labels: &[f32], scores: &[f64], depth: Option<u32>) -> f64 {
        Metric::Err(depth).of_query(labels, scores, &mut Scratch::default())
    }

    /// Slow and obviously right: the double product as it is printed.
    fn err_slowly(labels: &[f32], scores: &[f64], depth: usize) -> f64 {
        let mut ranked: Vec<(f64, f32)> = scores.iter().copied().zip(labels.iter().copied()).collect();
        ranked.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap());
        let satisfies: Vec<f64> =
            ranked.iter().map(|(_, label)| (f64::from(label.clamp(0.0, 4.0)).exp2() - 1.0) / 16.0).collect();
        (0..satisfies.len().min(depth))
            .map(|r| {
                satisfies[..r].iter().map(|p| 1.0 - p).product::<f64>() * satisfies[r] / (r as f64 + 1.0)
            })
            .sum()
    }

    #[test]
    fn worked_by_hand() {
        assert_eq!(err_of(&[4.0], &[0.0], None), 15.0 / 16.0);
        // 0 at rank 1; 3/16 at rank 2: 3/32; 15/16 of 13/16 at rank 3: 195/768
        let labels = [0.0, 2.0, 4.0];
        assert!((err_of(&labels, &[3.0, 2.0, 1.0], None) - (3.0 / 32.0 + 195.0 / 768.0)).abs() < 1e-15);
        assert!((err_of(&labels, &[3.0, 2.0, 1.0], Some(2)) - 3.0 / 32.0).abs() < 1e-15);
    }

    #[test]
    fn nothing_relevant_scores_zero() {
        assert_eq!(err_of(&[0.0, -1.0], &[2.0, 1.0], None), 0.0);
        assert_eq!(err_of(&[], &[], Some(10)), 0.0);
    }

    #[test]
    fn grades_end_at_four() {
        assert_eq!(err_of(&[9.0, 1.0], &[2.0, 1.0], None), err_of(&[4.0, 1.0], &[2.0, 1.0], None));
    }

    proptest! {
        #[test]
        fn agrees_with_the_double_product(
            documents in proptest::collection::vec((
                prop_oneof![(0_u8..6).prop_map(f32::from), -1.0_f32..5.0],
                prop_oneof![(-3_i8..3).prop_map(f64::from), -1.0..1.0],
            ), 0..80),
            depth in proptest::option::of(1_u32..90),
        ) {
            let (labels, scores): (Vec<f32>, Vec<f64>) = documents.into_iter().unzip();
            let slow = err_slowly(&labels, &scores, depth.map_or(usize::MAX, |depth| depth as usize));
            let fast = err_of(&labels, &scores, depth);
            prop_assert!((slow - fast).abs() <= 1e-12, "{slow} {fast}");
        }
    }
}
