//! The gradients of the next tree: residuals for the squared error, what an objective says of every query
//! for all others. They are scaled to whole numbers when a tree starts.

use crate::driver::{GradientSummary, Scores};
use crate::objective::{Objective, Pulls, Query, Room, Tally};
use crate::tree::{Cell, RowSets, Scale, round, whole};
use planetree_data::source::Rows;
use rayon::prelude::*;
use std::ops::Range;

/// The gradients of all rows.
pub struct Gradients {
    kind: Kind,
    /// The greatest weight of a row, when rows have weights.
    heaviest: Option<f32>,
}

enum Kind {
    Residuals,
    Objective { objective: Box<dyn Objective>, partitions: Vec<Pulled> },
}

/// What an objective said of a partition.
struct Pulled {
    gradients: Vec<f32>,
    hessians: Vec<f32>,
    /// By query, what follows from its labels alone.
    of_labels: Vec<f32>,
}

/// Rows that one thread works on at a time: whole queries from about so many on; of residuals so many exactly, whose
/// squares are added up for themselves, so that the last digits of the error in the log depend on it.
const STRETCH: usize = 4096;

/// Some queries of a partition.
struct Stretch<'a> {
    rows: &'a Rows,
    scores: &'a [f64],
    queries: Range<usize>,
    gradients: &'a mut [f32],
    hessians: &'a mut [f32],
    of_labels: &'a [f32],
}

impl Gradients {
    /// Room for the gradients of some rows, before any is known.
    /// No objective means squared error.
    pub fn new(objective: Option<Box<dyn Objective>>, rows: &[Rows]) -> Self {
        let weights = rows.iter().flat_map(|rows| rows.weights.iter().flatten());
        let heaviest = weights.copied().reduce(f32::max);
        let kind = match objective {
            None => Kind::Residuals,
            Some(objective) => {
                let room = |rows: &Rows| Pulled {
                    gradients: vec![0.0; rows.len()],
                    hessians: vec![0.0; rows.len()],
                    of_labels: rows.queries().map(|query| objective.of_labels(&rows.labels[query])).collect(),
                };
                let partitions = rows.par_iter().map(room).collect();
                Kind::Objective { objective, partitions }
            }
        };
        Gradients { kind, heaviest }
    }

    /// Whether rows need more than a gradient and a count: a weight or a hessian.
    pub fn are_weighted(&self) -> bool {
        let hessians = match &self.kind {
            Kind::Residuals => false,
            Kind::Objective { objective, .. } => !objective.hessians_are_one(),
        };
        hessians || self.heaviest.is_some()
    }

    /// Whether they are residuals of rows without weights.
    pub fn are_plain_residuals(&self) -> bool {
        matches!(self.kind, Kind::Residuals) && self.heaviest.is_none()
    }

    /// Whether earlier rounds must be gone through again before a training goes on.
    pub fn remember(&self) -> bool {
        match &self.kind {
            Kind::Residuals => false,
            Kind::Objective { objective, .. } => objective.learns(),
        }
    }

    /// Works the gradients out for the tree of a round. Sums of squared errors are of numbers that are rounded, so
    /// there is one part for each partition, to be added in their order; for other objectives there is one for all.
    pub fn update(&mut self, rows: &[Rows], scores: &Scores, round: u32) -> Vec<GradientSummary> {
        let are_weighted = self.are_weighted();
        match &mut self.kind {
            Kind::Residuals => {
                let heaviest = f64::from(self.heaviest.unwrap_or(0.0));
                let summary = |(partition, rows): (usize, &Rows)| {
                    let residuals = Residuals { rows, scores: scores.partition(partition) };
                    GradientSummary { heaviest, ..residuals.summary() }
                };
                rows.par_iter().enumerate().map(summary).collect()
            }
            Kind::Objective { objective, partitions } => {
                let stretches = rows.iter().zip(partitions).enumerate();
                let stretches: Vec<Stretch<'_>> = stretches
                    .flat_map(|(partition, (rows, pulled))| cut(rows, scores.partition(partition), pulled))
                    .collect();
                let (summary, tally) = stretches
                    .into_par_iter()
                    .with_max_len(1)
                    .map_init(Room::default, |room, stretch| {
                        let summary = pull(&**objective, stretch, round, room);
                        (summary, std::mem::take(&mut room.tally))
                    })
                    .reduce(
                        Default::default,
                        |(summary, mut tally), (other, of_other): (GradientSummary, Tally)| {
                            tally.merge(&of_other);
                            (summary.and(other), tally)
                        },
                    );
                objective.learn(&tally);
                // Where hessians are counts, a count is a hessian.
                vec![GradientSummary {
                    heaviest: if are_weighted { summary.heaviest } else { 0.0 },
                    ..summary
                }]
            }
        }
    }

    /// Starts a tree: every row's target, or those of the rows that were drawn.
    pub fn start_tree<C: Cell>(
        &self,
        rows: &[Rows],
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
                Kind::Residuals if self.are_plain_residuals() => {
                    let residuals = rows[partition].labels.par_iter().zip(scores.partition(partition));
                    let target = |(label, score): (&f32, &f64)| {
                        C::target(target_of_residual(*label, *score, scale.gradient), 1)
                    };
                    set.start(residuals.map(target), drawn);
                }
                Kind::Residuals => {
                    let residuals = Residuals { rows: &rows[partition], scores: scores.partition(partition) };
                    let all = (0..rows[partition].len()).into_par_iter();
                    set.start(all.map(|row| target(residuals.of(row))), drawn);
                }
                Kind::Objective { partitions, .. } => {
                    let Pulled { gradients, hessians, .. } = &partitions[partition];
                    let pulls = gradients.par_iter().zip(hessians);
                    let pulls = pulls.map(|(gradient, hessian)| (f64::from(*gradient), f64::from(*hessian)));
                    set.start(pulls.map(target), drawn);
                }
            }
        });
    }
}

/// Cuts a partition into stretches of whole queries.
fn cut<'a>(rows: &'a Rows, scores: &'a [f64], pulled: &'a mut Pulled) -> Vec<Stretch<'a>> {
    let bounds = &rows.query_bounds;
    let (mut gradients, mut hessians) = (&mut pulled.gradients[..], &mut pulled.hessians[..]);
    let mut stretches = Vec::new();
    let mut first = 0;
    while first + 1 < bounds.len() {
        let start = bounds[first] as usize;
        let end = bounds.partition_point(|bound| (*bound as usize) < start + STRETCH);
        let end = end.clamp(first + 1, bounds.len() - 1);
        let count = bounds[end] as usize - start;
        let (mine, others) = gradients.split_at_mut(count);
        let (my_hessians, other_hessians) = hessians.split_at_mut(count);
        (gradients, hessians) = (others, other_hessians);
        stretches.push(Stretch {
            rows,
            scores,
            queries: first..end,
            gradients: mine,
            hessians: my_hessians,
            of_labels: &pulled.of_labels,
        });
        first = end;
    }
    stretches
}

/// Asks the objective about every query of a stretch.
fn pull(objective: &dyn Objective, stretch: Stretch<'_>, round: u32, room: &mut Room) -> GradientSummary {
    let Stretch { rows, scores, queries, gradients, hessians, of_labels } = stretch;
    let first = rows.query_bounds[queries.start] as usize;
    for query in queries {
        let range = rows.query_bounds[query] as usize..rows.query_bounds[query + 1] as usize;
        let here = range.start - first..range.end - first;
        let (gradients, hessians) = (&mut gradients[here.clone()], &mut hessians[here]);
        let asked = Query {
            number: rows.first_query + query as u64,
            round,
            labels: &rows.labels[range.clone()],
            scores: &scores[range.clone()],
            positions: rows.positions.as_ref().map(|positions| &positions[range.clone()]),
            of_labels: of_labels[query],
        };
        objective.pull(&asked, room, Pulls { gradients, hessians });
        if let Some(weights) = &rows.weights {
            weigh(objective.weighs_rows(), &weights[range], gradients, hessians);
        }
    }
    let most = |pulls: &[f32]| {
        let most = pulls.iter().fold(0f32, |most, pull| if pull.abs() > most { pull.abs() } else { most });
        // A sum is no number when one of its terms is none.
        let odd = pulls.iter().sum::<f32>().is_nan();
        if odd { f64::INFINITY } else { f64::from(most) }
    };
    // A gradient may be finite where the score is not.
    let scores = &scores[first..first + gradients.len()];
    let most_gradient =
        if scores.iter().all(|score| score.is_finite()) { most(gradients) } else { f64::INFINITY };
    GradientSummary { most: most_gradient, heaviest: most(hessians), ..Default::default() }
}

/// Multiplies by the weights of rows, or by their mean.
fn weigh(by_rows: bool, weights: &[f32], gradients: &mut [f32], hessians: &mut [f32]) {
    let mean = (weights.iter().map(|weight| f64::from(*weight)).sum::<f64>() / weights.len() as f64) as f32;
    for (row, (gradient, hessian)) in gradients.iter_mut().zip(hessians).enumerate() {
        let weight = if by_rows { weights[row] } else { mean };
        *gradient *= weight;
        *hessian *= weight;
    }
}

/// Gradients of a partition under squared error: weighted residuals.
struct Residuals<'a> {
    rows: &'a Rows,
    scores: &'a [f64],
}

impl Residuals<'_> {
    /// Gradient and weight of a row.
    #[inline(always)]
    fn of(&self, row: usize) -> (f64, f64) {
        let weight = self.rows.weights.as_ref().map_or(1.0, |weights| f64::from(weights[row]));
        ((f64::from(self.rows.labels[row]) - self.scores[row]) * weight, weight)
    }

    /// Stretch by stretch, added in their order.
    fn summary(&self) -> GradientSummary {
        let all: Vec<usize> = (0..self.rows.len()).step_by(STRETCH).collect();
        let parts: Vec<GradientSummary> = all.into_par_iter().map(|start| self.summary_from(start)).collect();
        GradientSummary::of_parts(&parts)
    }

    /// Of the stretch that starts at a row.
    fn summary_from(&self, start: usize) -> GradientSummary {
        let mut summary = GradientSummary::default();
        for row in start..(start + STRETCH).min(self.rows.len()) {
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

/// The residual in units: of label and score each for itself, so that a score that moves by whole units moves it by
/// exactly as many.
#[inline(always)]
fn target_of_residual(label: f32, score: f64, units: f64) -> i32 {
    round(whole(f64::from(label) * units) - whole(score * units))
}

/// A weight in units; what weighs anything weighs at least one.
#[inline]
fn weight_in_units(weight: f64, units: f64) -> i32 {
    round(weight * units).max(i32::from(weight > 0.0))
}
