//! Selection and weights of the pairs of a query.

use super::delta::{ApDelta, Delta, DeltaColumns, ErrDelta, NdcgDelta};
use super::ranked::RankedColumns;
use super::{LabelProblem, check_gains};
use crate::config::PairwiseParameters;
use fearless_simd::{Level, dispatch};
use planetree_data::source::LabelledRows;
use planetree_metric::{Convention, Discount, Metric, Threshold, satisfies};

/// Selection and weights of pairs.
#[derive(Debug, Clone)]
pub struct PairWeights {
    /// The metric whose deltas weight the pairs; `None` for equal weights.
    pub metric: Option<Metric>,
    convention: Convention,
    /// At least one document of a pair is in the top `truncation`.
    pub truncation: usize,
    /// Whether pairs are normalised by score distance, and queries by their total gradient.
    normalised: bool,
}

/// The metric that weights pairs. NDCG without a depth is cut at the truncation level, so that a query with hundreds
/// of relevant documents is normalised by those that can be on top. Measured, this ranks better than the whole list,
/// and better than LightGBM's discounts of the whole list over the ideal DCG of the top.
fn metric_of(parameters: &PairwiseParameters) -> Option<Metric> {
    match parameters.metric {
        Some(Metric::Ndcg(None)) => Some(Metric::Ndcg(parameters.truncation_level)),
        other => other,
    }
}

impl PairWeights {
    pub fn new(parameters: &PairwiseParameters) -> Self {
        PairWeights {
            metric: metric_of(parameters),
            convention: Convention {
                gain: parameters.label_gain.clone(),
                relevant: Threshold::From(parameters.relevant_from),
                ..Convention::default()
            },
            truncation: parameters.truncation_level.map_or(usize::MAX, |level| level as usize),
            normalised: parameters.normalised,
        }
    }

    /// Rejects labels without a gain, if the metric adds up gains.
    pub fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        match self.metric {
            None | Some(Metric::Err(_) | Metric::Map(None)) => Ok(()),
            Some(_) => check_gains(&self.convention.gain, rows),
        }
    }

    /// One over the ideal DCG, for NDCG.
    pub fn label_constant(&self, labels: &[f32]) -> f32 {
        let Some(Metric::Ndcg(depth)) = self.metric else { return 0.0 };
        let mut gains: Vec<f64> = labels.iter().map(|label| self.convention.gain.of(*label)).collect();
        gains.sort_unstable_by(|one, other| other.total_cmp(one));
        gains.truncate(depth.map_or(usize::MAX, |depth| depth as usize));
        let ideal: f64 = gains.iter().enumerate().map(|(rank, gain)| gain * Discount::Log2.at(rank)).sum();
        if ideal > 0.0 { (1.0 / ideal) as f32 } else { 0.0 }
    }

    /// Fills the columns for the closed form of the metric.
    pub fn fill(&self, label_constant: f32, ranked: &RankedColumns, columns: &mut DeltaColumns) {
        match self.metric {
            Some(Metric::Ndcg(depth)) => {
                columns.of_ndcg(ranked, |label| self.convention.gain.of(label), depth, label_constant);
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

    /// The change of the metric when the documents at two ranks are swapped. [`PairWeights::fill`] comes first.
    pub fn delta(&self, columns: &DeltaColumns, ranked: &RankedColumns, i: usize, j: usize) -> f32 {
        match self.metric {
            None => 1.0,
            Some(Metric::Ndcg(_)) => {
                dispatch!(Level::baseline(), simd => NdcgDelta.of(simd, columns, i, j)[0])
            }
            Some(Metric::Err(_)) => dispatch!(Level::baseline(), simd => ErrDelta.of(simd, columns, i, j)[0]),
            Some(Metric::Map(None)) => {
                dispatch!(Level::baseline(), simd => ApDelta.of(simd, columns, i, j)[0])
            }
            Some(metric) => {
                metric.swap_delta(&self.convention, &ranked.labels[..ranked.len()], i, j).abs() as f32
            }
        }
    }

    /// The normalisation factor of a query whose gradient magnitudes sum to `total`.
    pub fn factor(&self, total: f32) -> f32 {
        if self.normalised && total > 0.0 {
            (libm::log2(1.0 + f64::from(total)) / f64::from(total)) as f32
        } else {
            1.0
        }
    }

    /// The offset of score distances that divide the pair weights; `None` without normalisation.
    pub fn distance(&self, ranked: &RankedColumns) -> Option<f32> {
        let apart = ranked.len() > 1 && ranked.scores[ranked.len() - 1] < 0.0;
        (self.normalised && apart).then_some(0.01)
    }
}
