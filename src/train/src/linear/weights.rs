//! The weights that a learner gives to the rows.

use planetree_base::random::Stream;
use planetree_data::source::LabelledRows;
use serde::{Deserialize, Serialize};

const OF_NONRELEVANT: u64 = 0x6E6F_6E72;

/// The weights that a learner gives to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum RowWeights {
    /// Those of the data.
    Given,
    /// The learner does not use those of the data: all rows have the same weight.
    Equal,
    /// Those of the data, but nonrelevant rows that were not drawn have weight 0.
    Undersampled(NonrelevantSample),
}

/// A sample of the nonrelevant rows: those whose random keys are at most a limit. The key of a row depends on its number
/// in the data, so partitions do not change the sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NonrelevantSample {
    /// Minimum label of relevant rows.
    relevant_from: f32,
    seed: u64,
    /// The greatest key of a drawn row. `None` if none is drawn.
    limit: Option<u64>,
}

impl NonrelevantSample {
    /// Draws `per_relevant` nonrelevant rows for each relevant row. Returns `None` if there are not more of them, so that
    /// all are kept.
    pub(super) fn draw(
        rows: &[LabelledRows],
        relevant_from: f32,
        seed: u64,
        per_relevant: f64,
    ) -> Option<Self> {
        let mut keys = Vec::new();
        let mut relevant = 0usize;
        for rows in rows {
            for (number, label) in (rows.first..).zip(&rows.labels) {
                match *label >= relevant_from {
                    true => relevant += 1,
                    false => keys.push(key_of(seed, number)),
                }
            }
        }
        let wanted = (relevant as f64 * per_relevant).round() as usize;
        if wanted >= keys.len() {
            return None;
        }
        let limit = wanted.checked_sub(1).map(|last| *keys.select_nth_unstable(last).1);
        Some(NonrelevantSample { relevant_from, seed, limit })
    }

    /// Returns whether a row is used.
    fn keeps(&self, number: u64, label: f32) -> bool {
        label >= self.relevant_from || self.limit.is_some_and(|limit| key_of(self.seed, number) <= limit)
    }
}

impl RowWeights {
    /// Sets the weights of rows.
    pub(super) fn apply(&self, rows: &mut LabelledRows) {
        match self {
            RowWeights::Given => {}
            RowWeights::Equal => rows.weights = None,
            RowWeights::Undersampled(sample) => {
                let LabelledRows { first, labels, weights, .. } = rows;
                let weights = weights.get_or_insert_with(|| vec![1.0; labels.len()]);
                for ((number, label), weight) in (*first..).zip(&*labels).zip(weights) {
                    if !sample.keeps(number, *label) {
                        *weight = 0.0;
                    }
                }
            }
        }
    }
}

fn key_of(seed: u64, number: u64) -> u64 {
    Stream::new(&[seed, OF_NONRELEVANT, number]).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(first: u64, labels: &[f32]) -> LabelledRows {
        LabelledRows {
            first,
            first_query: 0,
            labels: labels.to_vec(),
            weights: None,
            positions: None,
            query_bounds: vec![0, labels.len() as u32],
            query_keys: Vec::new(),
        }
    }

    #[test]
    fn as_many_nonrelevant_rows_are_drawn_as_asked_for() {
        let labels: Vec<f32> =
            (0..1000).map(|row| if row % 10 == 0 { 2.0 } else { (row % 2) as f32 }).collect();
        let halves = [rows(0, &labels[..300]), rows(300, &labels[300..])];
        for (per_relevant, wanted) in [(1.0, 100), (2.5, 250), (0.004, 0), (9.0, 900), (20.0, 900)] {
            let sample = NonrelevantSample::draw(&halves, 2.0, 7, per_relevant);
            assert_eq!(sample.is_none(), wanted == 900, "{per_relevant}");
            let Some(sample) = sample else { continue };
            let mut drawn = halves.clone();
            drawn.iter_mut().for_each(|rows| RowWeights::Undersampled(sample).apply(rows));
            let kept = |is_relevant: bool| {
                let weights =
                    drawn.iter().flat_map(|rows| rows.labels.iter().zip(rows.weights.iter().flatten()));
                weights.filter(|(label, weight)| (**label >= 2.0) == is_relevant && **weight == 1.0).count()
            };
            assert_eq!((kept(true), kept(false)), (100, wanted), "{per_relevant}");
            // Partitions do not matter, another seed does.
            let whole = NonrelevantSample::draw(&[rows(0, &labels)], 2.0, 7, per_relevant);
            assert_eq!(whole, Some(sample));
            if wanted > 0 {
                assert_ne!(
                    NonrelevantSample::draw(&halves, 2.0, 8, per_relevant).map(|other| other.limit),
                    Some(sample.limit)
                );
            }
        }
    }

    #[test]
    fn weights_of_drawn_rows_are_those_of_the_data() {
        let mut given = LabelledRows { weights: Some(vec![0.5, 2.0, 3.0]), ..rows(0, &[0.0, 1.0, 0.0]) };
        let sample = NonrelevantSample { relevant_from: 1.0, seed: 1, limit: None };
        RowWeights::Undersampled(sample).apply(&mut given);
        assert_eq!(given.weights, Some(vec![0.0, 2.0, 0.0]));
        RowWeights::Given.apply(&mut given);
        assert_eq!(given.weights, Some(vec![0.0, 2.0, 0.0]));
        RowWeights::Equal.apply(&mut given);
        assert_eq!(given.weights, None);
    }
}
