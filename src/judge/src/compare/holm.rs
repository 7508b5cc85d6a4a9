//! Corrects p-values for multiple comparisons with Holm's step-down method (Holm 1979). It limits the probability of
//! any false positive among all pairs of systems to the significance level alpha.

/// Returns the corrected p-values, in the order of the input. The smallest of n p-values is multiplied by n, the
/// second smallest by n - 1, and so on. Corrected p-values are limited to 1, and are raised where necessary so that
/// they have the same order as the uncorrected p-values.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|one, other| probabilities[*one].total_cmp(&probabilities[*other]));
    let mut corrected = vec![0.0; probabilities.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.iter().enumerate() {
        let factor = (probabilities.len() - rank) as f64;
        largest = largest.max((probabilities[*index] * factor).min(1.0));
        corrected[*index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_case_worked_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.5, 0.75, 0.5]), [1.0, 1.0, 1.0]);
        assert_eq!(holm(&[0.25]), [0.25]);
        assert!(holm(&[]).is_empty());
    }

    /// Returns which hypotheses are rejected, by Holm's own formulation: visits the p-values in ascending order and
    /// rejects hypotheses until a p-value is too large.
    fn rejected(probabilities: &[f64], alpha: f64) -> Vec<bool> {
        let mut sorted: Vec<(f64, usize)> = probabilities.iter().copied().zip(0..).collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut rejected = vec![false; sorted.len()];
        for (rank, (p, index)) in sorted.iter().enumerate() {
            if p * (sorted.len() - rank) as f64 > alpha {
                break;
            }
            rejected[*index] = true;
        }
        rejected
    }

    proptest! {
        #[test]
        fn corrected_values_reject_what_the_procedure_rejects(
            probabilities in proptest::collection::vec(prop_oneof![0.0..1.0, 0.0..0.02], 0..12),
            alpha in 0.001..0.5,
        ) {
            let found: Vec<bool> = holm(&probabilities).iter().map(|p| *p <= alpha).collect();
            prop_assert_eq!(found, rejected(&probabilities, alpha));
        }
    }
}
