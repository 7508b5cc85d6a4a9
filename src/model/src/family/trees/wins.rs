//! Computes the scores of pairwise models. Such a model predicts, from the difference of two documents' features, the
//! probability that the first document is better. A document's score is the mean of that probability over the other
//! documents of its query.

/// Maximum number of comparisons in which a document is the first of the two documents. It is the second in equally
/// many comparisons. Without a limit, the cost of a query would be quadratic in its number of documents.
const MAX_OPPONENTS: usize = 64;

/// Returns the scores of a query's documents. `documents` has `width` values per document. `predict` computes, for each
/// difference of two documents, the probability that the first document is better.
pub fn win_rates(documents: &[f32], width: usize, mut predict: impl FnMut(&[f32], &mut [f64])) -> Vec<f64> {
    let count = documents.len() / width.max(1);
    let opponents = MAX_OPPONENTS.min(count.saturating_sub(1));
    if opponents == 0 {
        return vec![0.5; count];
    }
    let mut wins = vec![0.0; count];
    let mut differences = vec![0.0; documents.len()];
    let mut probabilities = vec![0.0; count];
    for opponent in 0..opponents {
        // The opponents are all other documents or, in a large query, some of them at regular distances. So every
        // document has the same number of opponents.
        let distance = 1 + opponent * (count - 1) / opponents;
        let other = |document: usize| (document + distance) % count;
        for (document, differences) in differences.chunks_exact_mut(width).enumerate() {
            let (one, other) = (&documents[document * width..], &documents[other(document) * width..]);
            for (difference, (one, other)) in differences.iter_mut().zip(one.iter().zip(other)) {
                *difference = (one - other).clamp(f32::MIN, f32::MAX);
            }
        }
        predict(&differences, &mut probabilities);
        for (document, probability) in probabilities.iter().enumerate() {
            wins[document] += probability;
            wins[other(document)] += 1.0 - probability;
        }
    }
    wins.iter().map(|wins| wins / (2 * opponents) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_document_scores_one_and_all_pairs_are_compared() {
        // The larger value wins. In a query of 5, every document is compared with every other one, in both orders.
        let mut compared = Vec::new();
        let scores = win_rates(&[3.0, 1.0, 4.0, 2.0, 0.0], 1, |differences, probabilities| {
            compared.extend_from_slice(differences);
            for (difference, probability) in differences.iter().zip(probabilities) {
                *probability = if *difference > 0.0 { 1.0 } else { 0.0 };
            }
        });
        assert_eq!(scores, [0.75, 0.25, 1.0, 0.5, 0.0]);
        assert_eq!(compared.len(), 5 * 4);
        assert_eq!(win_rates(&[7.0, 8.0], 2, |_, _| unreachable!()), [0.5], "no opponents");
        assert!(win_rates(&[], 3, |_, _| unreachable!()).is_empty());
    }

    #[test]
    fn all_documents_of_a_large_query_have_the_same_number_of_opponents() {
        let documents: Vec<f32> = (0..1000).map(|document| (document * 7 % 1000) as f32).collect();
        let mut compared = 0;
        let scores = win_rates(&documents, 1, |differences, probabilities| {
            compared += differences.len();
            let pairs = differences.iter().zip(probabilities);
            pairs.for_each(|(difference, probability)| *probability = f64::from(u8::from(*difference > 0.0)));
        });
        assert_eq!(compared, 1000 * MAX_OPPONENTS);
        let best = (0..1000).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
        assert!(
            documents[best] > 990.0 && (scores[best] - 1.0).abs() < 1e-9,
            "{} {}",
            documents[best],
            scores[best]
        );
    }

    #[test]
    fn a_missing_value_makes_a_missing_difference() {
        let mut seen = Vec::new();
        win_rates(&[f32::NAN, 1.0], 1, |differences, _| seen.extend_from_slice(differences));
        assert!(seen.iter().all(|difference| difference.is_nan()));
        seen.clear();
        win_rates(&[f32::MAX, f32::MIN], 1, |differences, _| seen.extend_from_slice(differences));
        assert_eq!(seen, [f32::MAX, f32::MIN], "differences do not overflow");
    }
}
