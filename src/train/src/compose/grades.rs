//! The grades of an ordinal model, and the weights that turn the probabilities of grades into a score.
//!
//! With the grades g_0 < ... < g_top, T_i = P(label <= g_i) and P_i = T_i - T_(i-1), the expected score of a document is
//! the sum of F(g_i) P_i, which is F(g_top) minus the sum of (F(g_(i+1)) - F(g_i)) T_i (Li, Burges, Wu: McRank, 2007).

use crate::bins::read_rows;
use crate::config::{ClassScores, ClassWeights, OrdinalTarget, Target};
use planetree_base::error::{Error, Result};
use planetree_data::source::{LabelledData, LabelledRows};
use planetree_model::model::ClassBounds;
use std::collections::BTreeSet;

/// Most grades of an ordinal model.
const MOST_GRADES: usize = 32;

/// The different labels of the training data, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grades(Vec<i32>);

impl Grades {
    /// Reads the labels of a dataset.
    pub(super) fn read(target: &Target, source: &LabelledData) -> Result<Self> {
        Self::of(&read_rows(source)?).map_err(|(problem, remedy)| {
            Error::place(source.place(), format_args!("{}: {problem}", target.setting()), remedy)
        })
    }

    /// Returns all grades in ascending order.
    pub(super) fn all(&self) -> &[i32] {
        &self.0
    }

    /// Returns the score of each grade.
    pub(super) fn scores(&self, scores: &ClassScores) -> Result<Vec<f64>> {
        let grades = &self.0;
        let scores: Vec<f64> = match scores {
            ClassScores::Expected => grades.iter().map(|grade| f64::from(*grade)).collect(),
            ClassScores::Square => grades.iter().map(|grade| f64::from(*grade) * f64::from(*grade)).collect(),
            ClassScores::Exp2 => grades.iter().map(|grade| 2f64.powi(*grade)).collect(),
            ClassScores::List(list) if list.len() == grades.len() => list.clone(),
            ClassScores::List(list) => {
                return Err(wrong_length("class_scores", list.len(), grades, "one score per grade"));
            }
        };
        // Differences of finite scores may not be finite.
        let differences = scores.windows(2).map(|pair| pair[0] - pair[1]);
        match differences.chain(scores.iter().copied()).all(f64::is_finite) {
            true => Ok(scores),
            false => Err(Error::usage(
                "class_scores: the score of a grade is too large",
                "set class_scores=expected, or convert with smaller labels",
            )),
        }
    }

    /// Collects the labels of rows. The error is a problem and its remedy.
    fn of(rows: &[LabelledRows]) -> std::result::Result<Self, (String, String)> {
        let mut grades = BTreeSet::new();
        for label in rows.iter().flat_map(|rows| &rows.labels) {
            let grade = *label as i32;
            if f64::from(grade) != f64::from(*label) {
                return Err((
                    format!("the label {label} is not a whole number"),
                    "map the labels to whole numbers with label_map, or set target=labels".to_owned(),
                ));
            }
            grades.insert(grade);
            if grades.len() > MOST_GRADES {
                return Err((
                    format!("there are more than {MOST_GRADES} different labels"),
                    "map the labels to fewer grades with label_map, or set target=labels".to_owned(),
                ));
            }
        }
        if grades.len() < 2 {
            return Err((
                "there are fewer than two different labels".to_owned(),
                "train on rows with different labels".to_owned(),
            ));
        }
        Ok(Grades(grades.into_iter().collect()))
    }

    /// Returns the boundaries between neighbouring grades.
    pub(super) fn classes(&self) -> impl Iterator<Item = ClassBounds> {
        self.0.windows(2).map(|pair| ClassBounds { at_most: pair[0], next: pair[1] })
    }
}

/// Returns the weight of each class and the intercept.
pub(super) fn class_weights(ordinal: &OrdinalTarget, all: &Grades) -> Result<(Vec<f64>, f64)> {
    let grades = &all.0;
    if let ClassWeights::List(list) = &ordinal.weights {
        let Some((intercept, weights)) = list.split_last().filter(|_| list.len() == grades.len()) else {
            return Err(wrong_length(
                "class_weights",
                list.len(),
                grades,
                "one weight per grade below the highest, and the intercept",
            ));
        };
        return Ok((weights.to_vec(), *intercept));
    }
    let scores = all.scores(&ordinal.scores)?;
    let weights: Vec<f64> = scores.windows(2).map(|pair| pair[0] - pair[1]).collect();
    Ok((weights, scores.last().copied().unwrap_or_default()))
}

fn wrong_length(key: &str, count: usize, grades: &[i32], wanted: &str) -> Error {
    let listed: Vec<String> = grades.iter().map(i32::to_string).collect();
    Error::usage(
        format_args!(
            "{key}: {count} numbers, but the training data have {} grades: {}",
            grades.len(),
            listed.join(", ")
        ),
        format_args!("list {wanted}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(labels: &[f32]) -> Vec<LabelledRows> {
        vec![LabelledRows {
            first: 0,
            first_query: 0,
            labels: labels.to_vec(),
            weights: None,
            positions: None,
            query_bounds: vec![0, labels.len() as u32],
            query_keys: Vec::new(),
        }]
    }

    fn weights(scores: ClassScores, labels: &[f32]) -> (Vec<f64>, f64) {
        let ordinal = OrdinalTarget { scores, weights: ClassWeights::Scores };
        class_weights(&ordinal, &Grades::of(&rows(labels)).unwrap()).unwrap()
    }

    #[test]
    fn expected_relevance_is_minus_one_per_class_and_the_top_grade() {
        assert_eq!(weights(ClassScores::Expected, &[4.0, 0.0, 1.0, 3.0, 2.0]), (vec![-1.0; 4], 4.0));
    }

    /// The slow definition: the sum over the grades of score times probability.
    #[test]
    fn weights_give_the_expected_score() {
        let (labels, cumulative) = ([0.0, 2.0, 3.0, 7.0], [0.2, 0.45, 0.9]);
        let list = ClassScores::List(vec![0.5, -1.0, 4.0, 2.0]);
        for (scores, values) in [
            (ClassScores::Expected, [0.0, 2.0, 3.0, 7.0]),
            (ClassScores::Square, [0.0, 4.0, 9.0, 49.0]),
            (ClassScores::Exp2, [1.0, 4.0, 8.0, 128.0]),
            (list, [0.5, -1.0, 4.0, 2.0]),
        ] {
            let (weights, intercept) = weights(scores, &labels);
            let score: f64 =
                intercept + weights.iter().zip(cumulative).map(|(weight, t)| weight * t).sum::<f64>();
            let (mut expected, mut below) = (0.0, 0.0);
            for (value, at_most) in values.into_iter().zip(cumulative.into_iter().chain([1.0])) {
                expected += value * (at_most - below);
                below = at_most;
            }
            assert!((score - expected).abs() < 1e-12, "{score} {expected}");
        }
    }

    #[test]
    fn labels_that_are_no_grades_are_refused() {
        let problem = |labels: &[f32]| Grades::of(&rows(labels)).unwrap_err().0;
        assert!(problem(&[0.0, 0.5]).contains("0.5 is not a whole number"));
        assert!(problem(&[1.0, 3e9]).contains("not a whole number"));
        assert!(problem(&[2.0, 2.0]).contains("fewer than two"));
        let many: Vec<f32> = (0..33u8).map(f32::from).collect();
        assert!(problem(&many).contains("more than 32"));
        assert_eq!(Grades::of(&rows(&many[..32])).unwrap().0.len(), 32);
    }
}
