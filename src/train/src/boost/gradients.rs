//! Computes the gradients of all rows. For squared error, they are the residuals; otherwise they come from the
//! objective. Gradients are quantised to integers when a tree starts.

use crate::driver::{GradientSummary, Scores};
use crate::objective::{Gradients, Objective, PositionLosses, Query, QueryBuffers, weigh};
use crate::tree::{Cell, RowSets, Scale, round, whole};
use planetree_data::source::LabelledRows;
use rayon::prelude::*;
use std::ops::Range;

/// The gradients and hessians of all rows.
pub struct RowGradients {
    kind: GradientKind,
    /// The largest row weight. `None` if rows have no weights.
    heaviest: Option<f32>,
}

enum GradientKind {
    Residuals,
    Objective { objective: Box<dyn Objective>, partitions: Vec<PartitionGradients> },
}

/// The gradients of a partition.
struct PartitionGradients {
    gradients: Vec<f32>,
    hessians: Vec<f32>,
    /// One number per query, which the objective computes once from the labels.
    label_constant: Vec<f32>,
}

/// Number of rows in a chunk, which one thread processes at a time. For squared error, every chunk but the last has
/// exactly this many rows. For other objectives, a chunk consists of whole queries with about this many rows in
/// total. Squared errors are summed by chunk, so the last digits of the logged error depend on this constant.
const CHUNK_ROWS: usize = 4096;

/// Consecutive queries of a partition, which one thread processes.
struct QueryChunk<'a> {
    rows: &'a LabelledRows,
    scores: &'a [f64],
    queries: Range<usize>,
    gradients: &'a mut [f32],
    hessians: &'a mut [f32],
    label_constant: &'a [f32],
}

impl RowGradients {
    /// Creates zero gradients for these rows. An objective of `None` means squared error.
    pub fn new(objective: Option<Box<dyn Objective>>, rows: &[LabelledRows]) -> Self {
        let weights = rows.iter().flat_map(|rows| rows.weights.iter().flatten());
        let heaviest = weights.copied().reduce(f32::max);
        let kind = match objective {
            None => GradientKind::Residuals,
            Some(objective) => {
                let zero = |rows: &LabelledRows| PartitionGradients {
                    gradients: vec![0.0; rows.len()],
                    hessians: vec![0.0; rows.len()],
                    label_constant: rows
                        .queries()
                        .map(|query| objective.label_constant(&rows.labels[query]))
                        .collect(),
                };
                let partitions = rows.par_iter().map(zero).collect();
                GradientKind::Objective { objective, partitions }
            }
        };
        RowGradients { kind, heaviest }
    }

    /// Returns whether rows need a weight or a hessian besides a gradient and a count.
    pub fn are_weighted(&self) -> bool {
        let hessians = match &self.kind {
            GradientKind::Residuals => false,
            GradientKind::Objective { objective, .. } => !objective.hessians_are_one(),
        };
        hessians || self.heaviest.is_some()
    }

    /// Returns whether the gradients are residuals of rows without weights.
    pub fn are_plain_residuals(&self) -> bool {
        matches!(self.kind, GradientKind::Residuals) && self.heaviest.is_none()
    }

    /// Returns whether the objective learns from earlier rounds, which must then be replayed before a training run
    /// resumes.
    pub fn remember(&self) -> bool {
        match &self.kind {
            GradientKind::Residuals => false,
            GradientKind::Objective { objective, .. } => objective.learns(),
        }
    }

    /// Computes the gradients for the tree of a round. For squared error, the result has one summary per partition,
    /// which the caller must merge in order, because floating-point sums depend on the order. Other objectives have a
    /// single summary.
    pub fn update(&mut self, rows: &[LabelledRows], scores: &Scores, round: u32) -> Vec<GradientSummary> {
        let are_weighted = self.are_weighted();
        match &mut self.kind {
            GradientKind::Residuals => {
                let heaviest = f64::from(self.heaviest.unwrap_or(0.0));
                let summary = |(partition, rows): (usize, &LabelledRows)| {
                    let residuals = Residuals { rows, scores: scores.partition(partition) };
                    GradientSummary { heaviest, ..residuals.summary() }
                };
                rows.par_iter().enumerate().map(summary).collect()
            }
            GradientKind::Objective { objective, partitions } => {
                let chunks = rows.iter().zip(partitions).enumerate();
                let chunks: Vec<QueryChunk<'_>> = chunks
                    .flat_map(|(partition, (rows, partition_gradients))| {
                        cut(rows, scores.partition(partition), partition_gradients)
                    })
                    .collect();
                let (summary, losses) = chunks
                    .into_par_iter()
                    .with_max_len(1)
                    .map_init(QueryBuffers::default, |buffers, chunk| {
                        let summary = chunk_gradients(&**objective, chunk, round, buffers);
                        (summary, std::mem::take(&mut buffers.losses))
                    })
                    .reduce(
                        Default::default,
                        |(summary, mut losses), (other, of_other): (GradientSummary, PositionLosses)| {
                            losses.merge(&of_other);
                            (summary.and(other), losses)
                        },
                    );
                objective.learn(&losses);
                // If all hessians are 1, their sums equal the counts, so they are not stored.
                vec![GradientSummary {
                    heaviest: if are_weighted { summary.heaviest } else { 0.0 },
                    ..summary
                }]
            }
        }
    }

    /// Starts a tree with quantised gradients of all rows, or of the sampled rows.
    pub fn start_tree<C: Cell>(
        &self,
        rows: &[LabelledRows],
        scores: &Scores,
        scale: &Scale,
        drawn: Option<&[Vec<u32>]>,
        sets: &mut RowSets<C>,
    ) {
        sets.totals.clear();
        sets.partitions.par_iter_mut().enumerate().for_each(|(partition, set)| {
            let drawn = drawn.map(|drawn| drawn[partition].as_slice());
            let target = |(gradient, weight): (f64, f64)| {
                C::target(round(gradient * scale.gradient), weight_in_units(weight, scale.weight))
            };
            match &self.kind {
                GradientKind::Residuals if self.are_plain_residuals() => {
                    let residuals = rows[partition].labels.par_iter().zip(scores.partition(partition));
                    let target = |(label, score): (&f32, &f64)| {
                        C::target(target_of_residual(*label, *score, scale.gradient), 1)
                    };
                    set.start(residuals.map(target), drawn);
                }
                GradientKind::Residuals => {
                    let residuals = Residuals { rows: &rows[partition], scores: scores.partition(partition) };
                    let all = (0..rows[partition].len()).into_par_iter();
                    set.start(all.map(|row| target(residuals.of(row))), drawn);
                }
                GradientKind::Objective { partitions, .. } => {
                    let PartitionGradients { gradients, hessians, .. } = &partitions[partition];
                    let values = gradients.par_iter().zip(hessians);
                    let values =
                        values.map(|(gradient, hessian)| (f64::from(*gradient), f64::from(*hessian)));
                    set.start(values.map(target), drawn);
                }
            }
        });
    }
}

/// Divides a partition into chunks of whole queries.
fn cut<'a>(
    rows: &'a LabelledRows,
    scores: &'a [f64],
    partition_gradients: &'a mut PartitionGradients,
) -> Vec<QueryChunk<'a>> {
    let bounds = &rows.query_bounds;
    let (mut gradients, mut hessians) =
        (&mut partition_gradients.gradients[..], &mut partition_gradients.hessians[..]);
    let mut chunks = Vec::new();
    let mut first = 0;
    while first + 1 < bounds.len() {
        let start = bounds[first] as usize;
        let end = bounds.partition_point(|bound| (*bound as usize) < start + CHUNK_ROWS);
        let end = end.clamp(first + 1, bounds.len() - 1);
        let count = bounds[end] as usize - start;
        let (mine, others) = gradients.split_at_mut(count);
        let (my_hessians, other_hessians) = hessians.split_at_mut(count);
        (gradients, hessians) = (others, other_hessians);
        chunks.push(QueryChunk {
            rows,
            scores,
            queries: first..end,
            gradients: mine,
            hessians: my_hessians,
            label_constant: &partition_gradients.label_constant,
        });
        first = end;
    }
    chunks
}

/// Computes the gradients of the queries in a chunk and summarises them.
fn chunk_gradients(
    objective: &dyn Objective,
    chunk: QueryChunk<'_>,
    round: u32,
    buffers: &mut QueryBuffers,
) -> GradientSummary {
    let QueryChunk { rows, scores, queries, gradients, hessians, label_constant } = chunk;
    let first = rows.query_bounds[queries.start] as usize;
    for query in queries {
        let range = rows.query_bounds[query] as usize..rows.query_bounds[query + 1] as usize;
        let local = range.start - first..range.end - first;
        let (gradients, hessians) = (&mut gradients[local.clone()], &mut hessians[local]);
        let query_input = Query {
            number: rows.first_query + query as u64,
            round,
            labels: &rows.labels[range.clone()],
            scores: &scores[range.clone()],
            positions: rows.positions.as_ref().map(|positions| &positions[range.clone()]),
            label_constant: label_constant[query],
        };
        objective.gradients(&query_input, buffers, Gradients { gradients, hessians });
        if let Some(weights) = &rows.weights {
            weigh(objective.weights_rows(), &weights[range], gradients, hessians);
        }
    }
    let most = |values: &[f32]| {
        let most =
            values.iter().fold(0f32, |most, value| if value.abs() > most { value.abs() } else { most });
        // A sum is NaN if any of its terms is.
        let odd = values.iter().sum::<f32>().is_nan();
        if odd { f64::INFINITY } else { f64::from(most) }
    };
    // Scores are checked too, because a gradient can be finite even if the score is not.
    let scores = &scores[first..first + gradients.len()];
    let most_gradient =
        if scores.iter().all(|score| score.is_finite()) { most(gradients) } else { f64::INFINITY };
    GradientSummary { most: most_gradient, heaviest: most(hessians), ..Default::default() }
}

/// The gradients of a partition under squared error, which are weighted residuals.
struct Residuals<'a> {
    rows: &'a LabelledRows,
    scores: &'a [f64],
}

impl Residuals<'_> {
    /// Returns the gradient and the weight of a row.
    #[inline(always)]
    fn of(&self, row: usize) -> (f64, f64) {
        let weight = self.rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row]));
        ((f64::from(self.rows.labels[row]) - self.scores[row]) * weight, weight)
    }

    /// Returns the summaries of all chunks, merged in order.
    fn summary(&self) -> GradientSummary {
        let all: Vec<usize> = (0..self.rows.len()).step_by(CHUNK_ROWS).collect();
        let parts: Vec<GradientSummary> = all.into_par_iter().map(|start| self.summary_from(start)).collect();
        GradientSummary::of_parts(&parts)
    }

    /// Returns the summary of the chunk that starts at a row.
    fn summary_from(&self, start: usize) -> GradientSummary {
        let mut summary = GradientSummary::default();
        for row in start..(start + CHUNK_ROWS).min(self.rows.len()) {
            let ((gradient, weight), label, score) = (self.of(row), self.rows.labels[row], self.scores[row]);
            summary.most = if gradient.abs() > summary.most { gradient.abs() } else { summary.most };
            let error = f64::from(label) - score;
            summary.squares += error * error * weight;
            summary.weight += weight;
            let far = f64::from(label.abs()).max(score.abs());
            summary.farthest = if far > summary.farthest { far } else { summary.farthest };
        }
        summary
    }
}

/// Returns the residual in whole units of the gradient scale. Label and score are rounded separately, so if the score
/// changes by exactly n units, so does the residual.
#[inline(always)]
fn target_of_residual(label: f32, score: f64, units: f64) -> i32 {
    round(whole(f64::from(label) * units) - whole(score * units))
}

/// Returns a weight in whole units. Positive weights become at least 1.
#[inline]
fn weight_in_units(weight: f64, units: f64) -> i32 {
    round(weight * units).max(i32::from(weight > 0.0))
}
