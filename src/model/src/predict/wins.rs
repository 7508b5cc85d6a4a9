//! Scores by wins: a model of pairs says how likely one document is better than another, from the difference of
//! their features. A document's score is the mean of that over the others of its query.

/// Others that a document meets at most, each of them twice: as the first and as the second of a pair. More
/// than these would make a query's cost the square of its documents.
const MOST_OPPONENTS: usize = 64;

/// The scores of one query's documents, given one after another, `width` values each. `chance` says of every
/// difference how likely the first document is the better one.
pub fn wins(documents: &[f32], width: usize, mut chance: impl FnMut(&[f32], &mut [f64])) -> Vec<f64> {
    let count = documents.len() / width.max(1);
    let opponents = MOST_OPPONENTS.min(count.saturating_sub(1));
    if opponents == 0 {
        return vec![0.5; count];
    }
    let mut wins = vec![0.0; count];
    let mut differences = vec![0.0; documents.len()];
    let mut chances = vec![0.0; count];
    for opponent in 0..opponents {
        // All others, or some at equal distances, so that everybody meets as many.
        let distance = 1 + opponent * (count - 1) / opponents;
        let other = |document: usize| (document + distance) % count;
        for (document, differences) in differences.chunks_exact_mut(width).enumerate() {
            let (one, other) = (&documents[document * width..], &documents[other(document) * width..]);
            for (difference, (one, other)) in differences.iter_mut().zip(one.iter().zip(other)) {
                *difference = (one - other).clamp(f32::MIN, f32::MAX);
            }
        }
        chance(&differences, &mut chances);
        for (document, chance) in chances.iter().enumerate() {
            wins[document] += chance;
            wins[other(document)] += 1.0 - chance;
        }
    }
    wins.iter().map(|wins| wins / (2 * opponents) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_always_wins_scores_one_and_meets_everybody() {
        // The greater value wins; in a query of 5 everybody meets everybody, twice.
        let mut met = Vec::new();
        let scores = wins(&[3.0, 1.0, 4.0, 2.0, 0.0], 1, |differences, chances| {
            met.extend_from_slice(differences);
            for (difference, chance) in differences.iter().zip(chances) {
                *chance = if *difference > 0.0 { 1.0 } else { 0.0 };
            }
        });
        assert_eq!(scores, [0.75, 0.25, 1.0, 0.5, 0.0]);
        assert_eq!(met.len(), 5 * 4);
        assert_eq!(wins(&[7.0, 8.0], 2, |_, _| unreachable!()), [0.5], "nobody to meet");
        assert!(wins(&[], 3, |_, _| unreachable!()).is_empty());
    }

    #[test]
    fn in_a_large_query_everybody_meets_as_many() {
        let documents: Vec<f32> = (0..1000).map(|document| (document * 7 % 1000) as f32).collect();
        let mut asked = 0;
        let scores = wins(&documents, 1, |differences, chances| {
            asked += differences.len();
            differences.iter().zip(chances).for_each(|(d, chance)| *chance = f64::from(u8::from(*d > 0.0)));
        });
        assert_eq!(asked, 1000 * MOST_OPPONENTS);
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
        wins(&[f32::NAN, 1.0], 1, |differences, _| seen.extend_from_slice(differences));
        assert!(seen.iter().all(|difference| difference.is_nan()));
        seen.clear();
        wins(&[f32::MAX, f32::MIN], 1, |differences, _| seen.extend_from_slice(differences));
        assert_eq!(seen, [f32::MAX, f32::MIN], "never beyond all numbers");
    }
}
