//! The gradients of rows by a training objective, for learners that follow the gradient of any objective.

use crate::objective::{Gradients, Objective, Query, QueryBuffers, weigh};
use planetree_data::source::LabelledRows;

/// An objective with what it keeps of some rows.
pub(crate) struct RowObjective {
    /// `None` means squared error.
    objective: Option<Box<dyn Objective>>,
    /// One number per partition and query, which the objective computes once from the labels.
    label_constants: Vec<Vec<f32>>,
}

/// A query whose gradients are computed.
pub(crate) struct ScoredQuery<'a> {
    /// The rows of the partition.
    pub rows: &'a LabelledRows,
    /// Number of the partition among those of the rows.
    pub partition: usize,
    /// Number of the query in its partition.
    pub number: usize,
    /// The current score of each document.
    pub scores: &'a [f64],
    /// Number of the round, starting from 1.
    pub round: u32,
}

/// Buffers of one thread, which are reused for every query.
#[derive(Default)]
pub(crate) struct GradientBuffers {
    gradients: Vec<f32>,
    hessians: Vec<f32>,
    objective: QueryBuffers,
}

impl RowObjective {
    /// Prepares an objective for some rows. An objective of `None` means squared error.
    pub(crate) fn new(objective: Option<Box<dyn Objective>>, rows: &[LabelledRows]) -> Self {
        let constants = |rows: &LabelledRows| match &objective {
            None => Vec::new(),
            Some(objective) => {
                rows.queries().map(|query| objective.label_constant(&rows.labels[query])).collect()
            }
        };
        let label_constants = rows.iter().map(constants).collect();
        RowObjective { objective, label_constants }
    }

    /// Computes the gradients of a query: the negative derivatives of the loss by the scores, times the weights of rows.
    pub(crate) fn gradients(
        &self,
        query: &ScoredQuery<'_>,
        buffers: &mut GradientBuffers,
        out: &mut Vec<f64>,
    ) {
        let ScoredQuery { rows, partition, number, scores, round } = *query;
        let range = rows.query_bounds[number] as usize..rows.query_bounds[number + 1] as usize;
        let (labels, weights) =
            (&rows.labels[range.clone()], rows.weights.as_ref().map(|all| &all[range.clone()]));
        out.clear();
        let Some(objective) = &self.objective else {
            let weight = |row: usize| weights.map_or(1.0, |weights| f64::from(weights[row]));
            let residuals = labels.iter().zip(scores).map(|(label, score)| f64::from(*label) - score);
            out.extend(residuals.enumerate().map(|(row, residual)| residual * weight(row)));
            return;
        };
        let GradientBuffers { gradients, hessians, objective: buffers } = buffers;
        for list in [&mut *gradients, &mut *hessians] {
            list.clear();
            list.resize(range.len(), 0.0);
        }
        let input = Query {
            number: rows.first_query + number as u64,
            round,
            labels,
            scores,
            positions: rows.positions.as_ref().map(|positions| &positions[range.clone()]),
            label_constant: self.label_constants[partition][number],
        };
        objective.gradients(
            &input,
            buffers,
            Gradients { gradients: &mut *gradients, hessians: &mut *hessians },
        );
        if let Some(weights) = weights {
            weigh(objective.weights_rows(), weights, gradients, hessians);
        }
        out.extend(gradients.iter().map(|gradient| f64::from(*gradient)));
    }
}
