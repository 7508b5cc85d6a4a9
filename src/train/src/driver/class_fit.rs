//! Fits the weights of classes after every round, so that a round is judged by the model that would end there.

use super::scores::Scores;
use planetree_base::least_squares::LeastSquares;
use planetree_data::source::LabelledRows;
use rayon::prelude::*;

/// The parts of an ordinal model whose weights are fitted by least squares of the labels.
pub struct ClassFit<'a> {
    /// Index of the class of each part.
    pub classes: Vec<usize>,
    /// Number of parts per class, whose scores are averaged.
    pub runs: u32,
    /// The training rows, if the weights are fitted on them.
    pub training: Option<&'a [LabelledRows]>,
    /// Whether the weights are fitted on the first validation set.
    pub on_validation: bool,
}

/// The weights of all parts.
#[derive(Debug, Clone, PartialEq)]
pub struct PartWeights {
    /// The weight of each part.
    pub weights: Vec<f64>,
    /// The constant to which the weighted scores of the parts are added.
    pub intercept: f64,
}

impl ClassFit<'_> {
    /// Fits the weights. Each element of `splits` has rows and the scores of all parts for them.
    pub fn fit<S: AsRef<Scores> + Sync>(&self, splits: &[(&[LabelledRows], Vec<S>)]) -> PartWeights {
        let runs = f64::from(self.runs);
        let count = self.classes.iter().max().map_or(0, |class| class + 1);
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); count];
        for (rows, scores) in splits {
            columns.par_iter_mut().enumerate().for_each(|(class, column)| {
                let own = self.classes.iter().zip(scores).filter(|(of_part, _)| **of_part == class);
                let terms: Vec<(f64, &Scores)> =
                    own.map(|(_, scores)| (1.0 / runs, scores.as_ref())).collect();
                let mean = Scores::combined(rows, 0.0, &terms);
                (0..rows.len()).for_each(|partition| column.extend_from_slice(mean.partition(partition)));
            });
        }
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let rows: Vec<&[LabelledRows]> = splits.iter().map(|(rows, _)| *rows).collect();
        let fit = fit_labels(&columns, &rows);
        let weights = self.classes.iter().map(|class| fit.coefficients[*class] / runs).collect();
        PartWeights { weights, intercept: fit.intercept }
    }
}

/// Fits the labels of rows by columns, one value per row. Rows count by their weights.
pub(crate) fn fit_labels(columns: &[&[f64]], splits: &[&[LabelledRows]]) -> LeastSquares {
    let rows = || splits.iter().flat_map(|rows| rows.iter());
    let labels: Vec<f64> = rows().flat_map(|rows| &rows.labels).map(|label| f64::from(*label)).collect();
    let of = |rows: &LabelledRows| match &rows.weights {
        Some(weights) => weights.iter().map(|weight| f64::from(*weight)).collect(),
        None => vec![1.0; rows.len()],
    };
    let weights: Option<Vec<f64>> =
        rows().any(|rows| rows.weights.is_some()).then(|| rows().flat_map(of).collect());
    LeastSquares::fit(columns, &labels, weights.as_deref())
}
