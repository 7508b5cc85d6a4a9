//! Finds weights by coordinate ascent on a metric (Metzler and Croft 2007): one weight at a time is changed by steps of
//! growing size in both directions, and the best change is kept, until no change of any weight improves the metric.
//!
//! The starts are equal weights, equal weights of the members at the same scale, the weights of least squares, and each
//! member alone. The ascent begins at the first three and at the best of all starts, and the best result is kept, so it
//! is never worse than any start. Nothing is random: equal values are decided in favour of the earlier candidate.

use super::BlendScores;
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use planetree_metric::{Convention, Mean, Metric, Prepared, evaluate};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// First step, as a weight and as a fraction of the current weight; the larger one counts.
const FIRST_STEP: f64 = 0.001;
const FIRST_SHARE: f64 = 0.05;
/// Number of steps in each direction. Every step is twice as long as the previous one.
const STEPS: i32 = 12;
/// Maximum number of passes over all weights.
const MAX_PASSES: usize = 25;
/// A pass that improves the metric by less is the last one.
const MIN_GAIN: f64 = 1e-6;
/// Number of queries that are evaluated together.
const CHUNK_QUERIES: usize = 64;

/// Returns the weights of `members` that maximise a metric, or minimise it if lower values are better. Their absolute
/// values add up to 1.
pub(super) fn ascend(
    scores: &BlendScores,
    members: &[usize],
    metric: Metric,
    convention: &Convention,
) -> Result<Vec<f64>> {
    let ascent = Ascent::new(scores, members, metric, convention)?;
    let starts = ascent.starts(scores, members);
    let values: Vec<f64> = starts.iter().map(|weights| ascent.value(weights)).collect();
    let mut best = 0;
    for start in 1..starts.len() {
        if ascent.is_better(values[start], values[best]) {
            best = start;
        }
    }
    let (mut weights, mut value) = (starts[best].clone(), values[best]);
    let mut begins: Vec<usize> = (0..starts.len() - members.len()).collect();
    begins.extend((!begins.contains(&best)).then_some(best));
    for begin in begins {
        let climbed = ascent.climb(starts[begin].clone(), values[begin])?;
        for candidate in [scaled(&climbed), climbed] {
            let reached = ascent.value(&candidate);
            if ascent.is_better(reached, value) {
                (weights, value) = (candidate, reached);
            }
        }
    }
    Ok(weights)
}

/// Scales weights so that their absolute values add up to 1, which does not change the ranking.
fn scaled(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
    if sum > 0.0 { weights.iter().map(|weight| weight / sum).collect() } else { weights.to_vec() }
}

/// Returns the standard deviation of values.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count).sqrt()
}

/// The data of an ascent, prepared for many evaluations.
struct Ascent<'a> {
    metric: Metric,
    labels: &'a [f32],
    values: Vec<&'a [f64]>,
    chunks: Vec<AscentChunk>,
}

/// Some queries that are evaluated together.
struct AscentChunk {
    rows: Range<usize>,
    /// Bounds of the queries, relative to the first row of the chunk.
    bounds: Vec<u32>,
    prepared: Prepared,
}

impl<'a> Ascent<'a> {
    fn new(
        scores: &'a BlendScores,
        members: &[usize],
        metric: Metric,
        convention: &Convention,
    ) -> Result<Self> {
        if convention.needs_documents() {
            return Err(Error::usage(
                format_args!("convention {convention}: coordinate ascent does not support ties=docid"),
                "choose another rule for ties, such as ties=input",
            ));
        }
        let convention = Arc::new(convention.clone());
        let mut chunks = Vec::new();
        for queries in (0..scores.queries.len()).step_by(CHUNK_QUERIES) {
            let last = (queries + CHUNK_QUERIES).min(scores.queries.len());
            let first_row = scores.bounds[queries];
            let rows = first_row as usize..scores.bounds[last] as usize;
            let bounds: Vec<u32> =
                scores.bounds[queries..=last].iter().map(|bound| bound - first_row).collect();
            let prepared = metric.prepare_under(&convention, &scores.labels[rows.clone()], &bounds)?;
            chunks.push(AscentChunk { rows, bounds, prepared });
        }
        let values = members.iter().map(|member| scores.values[*member].as_slice()).collect();
        Ok(Ascent { metric, labels: &scores.labels, values, chunks })
    }

    /// Returns the weights to start from. The last ones are those of each member alone.
    fn starts(&self, scores: &BlendScores, members: &[usize]) -> Vec<Vec<f64>> {
        let count = members.len();
        let mut starts = vec![vec![1.0 / count as f64; count]];
        let same_scale: Vec<f64> = self.values.iter().map(|values| 1.0 / deviation(values)).collect();
        for weights in [same_scale, scores.least_squares(members).coefficients] {
            let weights = scaled(&weights);
            if weights.iter().all(|weight| weight.is_finite()) && weights.iter().any(|weight| *weight != 0.0)
            {
                starts.push(weights);
            }
        }
        let alone = |member: usize| (0..count).map(|other| if other == member { 1.0 } else { 0.0 }).collect();
        starts.extend((0..count).map(alone));
        starts
    }

    fn is_better(&self, value: f64, than: f64) -> bool {
        self.metric.is_better(value, than)
    }

    /// Returns the metric of a weighted sum.
    fn value(&self, weights: &[f64]) -> f64 {
        self.value_of(&|row, sum| {
            for (values, weight) in self.values.iter().zip(weights) {
                for (sum, value) in sum.iter_mut().zip(&values[row..]) {
                    *sum += weight * value;
                }
            }
        })
    }

    /// Returns the metric of scores. `add` receives the index of a first row, and adds the scores of some rows to zeros.
    fn value_of(&self, add: &(dyn Fn(usize, &mut [f64]) + Sync)) -> f64 {
        let means = self.chunks.par_iter().map(|chunk| {
            let mut sum = vec![0.0; chunk.rows.len()];
            add(chunk.rows.start, &mut sum);
            let labels = &self.labels[chunk.rows.clone()];
            evaluate(std::slice::from_ref(&chunk.prepared), labels, &sum, &chunk.bounds).swap_remove(0)
        });
        // Means are exact sums, so the order in which threads finish does not matter.
        let merge = |mut one: Mean, other: Mean| {
            one.merge(&other);
            one
        };
        means.reduce(|| Mean::new(self.metric), merge).value()
    }

    /// Changes one weight after the other until nothing improves the metric.
    fn climb(&self, mut weights: Vec<f64>, mut value: f64) -> Result<Vec<f64>> {
        let rows = self.labels.len();
        for _ in 0..MAX_PASSES {
            let before = value;
            for member in 0..weights.len() {
                interrupt::check()?;
                let mut rest = vec![0.0; rows];
                for (other, values) in self.values.iter().enumerate().filter(|(other, _)| *other != member) {
                    rest.iter_mut().zip(*values).for_each(|(sum, value)| *sum += weights[other] * value);
                }
                for candidate in candidates(weights[member]) {
                    let found = self.value_of(&|row, sum| {
                        let own = &self.values[member][row..];
                        for ((sum, rest), own) in sum.iter_mut().zip(&rest[row..]).zip(own) {
                            *sum = rest + candidate * own;
                        }
                    });
                    if self.is_better(found, value) {
                        (weights[member], value) = (candidate, found);
                    }
                }
            }
            if (value - before).abs() < MIN_GAIN {
                break;
            }
        }
        Ok(weights)
    }
}

/// Returns the weights to try in place of a weight.
fn candidates(weight: f64) -> Vec<f64> {
    let first = FIRST_STEP.max(FIRST_SHARE * weight.abs());
    let steps = (0..STEPS).map(|step| first * f64::from(1 << step));
    let moved = steps.flat_map(|step| [weight + step, weight - step]);
    moved.chain((weight != 0.0).then_some(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::random::Stream;
    use planetree_metric::{Judge, QueryRows};

    /// Returns rows of random queries. The label is the sum of two hidden values; the first members see one of them each,
    /// and the last one sees noise.
    pub(super) fn random_scores(seed: u64, queries: usize) -> BlendScores {
        let mut draw = Stream::new(&[seed]);
        let mut scores = BlendScores { values: vec![Vec::new(); 3], ..BlendScores::default() };
        for query in 0..queries {
            for _ in 0..3 + query % 9 {
                let (one, other) = (draw.normal(), draw.normal());
                scores.push(&format!("q{query}"), Some((one + other).round().clamp(0.0, 4.0) as f32));
                for (values, value) in scores.values.iter_mut().zip([one, 5.0 * other, draw.normal()]) {
                    values.push(value + 0.1 * draw.normal());
                }
            }
        }
        scores.members = ["a", "b", "c"].map(str::to_owned).to_vec();
        scores.finish().unwrap();
        scores
    }

    /// Computes the mean of a metric with one sort per query.
    fn naive(scores: &BlendScores, weights: &[f64], metric: Metric) -> f64 {
        let sum = scores.combined(weights, 0.0);
        let mut judge = Judge::new(&[metric], &Convention::default());
        let values: Vec<f64> = scores
            .query_rows()
            .filter_map(|rows| {
                let (labels, scores) = (&scores.labels[rows.clone()], &sum[rows]);
                judge.query(&QueryRows { labels, scores, documents: None, judged: None }).unwrap()[0]
            })
            .collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn the_ascent_is_never_below_its_starts_and_finds_useful_members() {
        for (seed, metric) in [(1, "ndcg@10"), (2, "err"), (3, "map"), (4, "ndcg@3")] {
            let metric: Metric = metric.parse().unwrap();
            let scores = random_scores(seed, 150);
            let found = ascend(&scores, &[0, 1, 2], metric, &Convention::default()).unwrap();
            let reached = naive(&scores, &found, metric);
            let starts = [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
            for start in starts {
                assert!(reached >= naive(&scores, &start, metric) - 1e-12, "{metric}: {found:?}");
            }
            assert!(found[0] > found[1] && found[1] > 0.0, "the second has the larger scale: {found:?}");
            assert!(found[2].abs() < 0.3 * found[0], "{found:?}");
            let sum: f64 = found.iter().map(|weight| weight.abs()).sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn threads_do_not_change_the_weights() {
        let scores = random_scores(9, 300);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                ascend(&scores, &[0, 1, 2], Metric::Ndcg(Some(5)), &Convention::default()).unwrap()
            })
        };
        assert_eq!(on(1), on(4));
    }

    #[test]
    fn lower_may_be_better() {
        let scores = random_scores(5, 100);
        let found = ascend(&scores, &[0, 1], Metric::Inversions, &Convention::default()).unwrap();
        let reached = naive(&scores, &[found[0], found[1], 0.0], Metric::Inversions);
        for start in [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] {
            assert!(reached <= naive(&scores, &start, Metric::Inversions) + 1e-12);
        }
    }
}
