//! Which pairs of a query there are, and how much each counts.

use super::delta::{AveragePrecision, Columns, Delta, Err, Ndcg};
use super::ranked::Ranked;
use crate::config::{ObjectiveName, Parameters};
use fearless_simd::{Level, dispatch};
use planetree_metric::{Convention, Discount, Metric, Threshold, satisfies};

/// How pairs count.
#[derive(Debug, Clone)]
pub struct Weighs {
    /// What a swap would change; `None` when all pairs count alike.
    pub metric: Option<Metric>,
    convention: Convention,
    /// One document of a pair is among so many best.
    pub truncation: usize,
    /// Pairs count less the further their scores are apart, and no query pulls out of proportion.
    normalised: bool,
}

/// The metric that pairs count by. NDCG without a depth is as deep as pairs are looked at: a query of hundreds
/// of relevant documents counts by those that can be on top. Measured, this ranks better than the whole list, and
/// better than the whole list's discounts by the ideal DCG of the top, which is LightGBM's way.
fn metric_of(parameters: &Parameters) -> Metric {
    match parameters.lambda_metric {
        Metric::Ndcg(None) => Metric::Ndcg(parameters.truncation_level),
        other => other,
    }
}

impl Weighs {
    /// As the parameters say.
    pub fn new(parameters: &Parameters) -> Self {
        Weighs {
            metric: (parameters.objective == ObjectiveName::LambdaRank).then(|| metric_of(parameters)),
            convention: Convention {
                gain: parameters.label_gain.clone(),
                relevant: Threshold::From(parameters.relevant_from),
                ..Convention::default()
            },
            truncation: parameters.truncation_level.map_or(usize::MAX, |level| level as usize),
            normalised: parameters.lambda_norm,
        }
    }

    /// One by the ideal DCG, for NDCG.
    pub fn of_labels(&self, labels: &[f32]) -> f32 {
        let Some(Metric::Ndcg(depth)) = self.metric else { return 0.0 };
        let mut gains: Vec<f64> = labels.iter().map(|label| self.convention.gain.of(*label)).collect();
        gains.sort_unstable_by(|one, other| other.total_cmp(one));
        gains.truncate(depth.map_or(usize::MAX, |depth| depth as usize));
        let ideal: f64 = gains.iter().enumerate().map(|(rank, gain)| gain * Discount::Log2.at(rank)).sum();
        if ideal > 0.0 { (1.0 / ideal) as f32 } else { 0.0 }
    }

    /// Fills the columns that the closed form of the metric looks up.
    pub fn fill(&self, of_labels: f32, ranked: &Ranked, columns: &mut Columns) {
        match self.metric {
            Some(Metric::Ndcg(depth)) => {
                columns.of_ndcg(ranked, |label| self.convention.gain.of(label), depth, of_labels);
            }
            Some(Metric::Err(depth)) => {
                columns.of_err(ranked, |label| satisfies(label, self.convention.err_grade), depth);
            }
            Some(Metric::Map(None)) => {
                columns.of_average_precision(ranked, |label| self.convention.is_relevant(label));
            }
            _ => {}
        }
    }

    /// What swapping the documents at two ranks would change, after [`Weighs::fill`].
    pub fn delta(&self, columns: &Columns, ranked: &Ranked, i: usize, j: usize) -> f32 {
        match self.metric {
            None => 1.0,
            Some(Metric::Ndcg(_)) => dispatch!(Level::baseline(), simd => Ndcg.of(simd, columns, i, j)[0]),
            Some(Metric::Err(_)) => dispatch!(Level::baseline(), simd => Err.of(simd, columns, i, j)[0]),
            Some(Metric::Map(None)) => {
                dispatch!(Level::baseline(), simd => AveragePrecision.of(simd, columns, i, j)[0])
            }
            Some(metric) => {
                metric.swap_delta(&self.convention, &ranked.labels[..ranked.len()], i, j).abs() as f32
            }
        }
    }

    /// What all pulls of a query are multiplied by, which together are as strong as `total`.
    pub fn factor(&self, total: f32) -> f32 {
        if self.normalised && total > 0.0 {
            (libm::log2(1.0 + f64::from(total)) / f64::from(total)) as f32
        } else {
            1.0
        }
    }

    /// What is added to the difference of two scores before pairs are divided by it, if they are.
    pub fn distance(&self, ranked: &Ranked) -> Option<f32> {
        let apart = ranked.len() > 1 && ranked.scores[ranked.len() - 1] < 0.0;
        (self.normalised && apart).then_some(0.01)
    }
}
