//! Selects the document pairs of a query and computes their weights.

use super::delta::{ApDelta, Delta, DeltaColumns, ErrDelta, NdcgDelta};
use super::ranked::RankedColumns;
use super::{LabelProblem, check_gains};
use crate::config::PairwiseParameters;
use fearless_simd::{Level, dispatch};
use planetree_data::source::LabelledRows;
use planetree_metric::{Convention, Discount, Metric, Threshold, satisfies};

/// Rules by which the pairs of a query are selected and weighted.
#[derive(Debug, Clone)]
pub(super) struct PairWeights {
    /// Metric whose deltas weight the pairs; `None` for equal weights.
    pub metric: Option<Metric>,
    convention: Convention,
    /// Number of top ranks. At least one document of a pair must be among them.
    pub truncation: usize,
    /// Whether pair weights are divided by the score distance, and the gradients of a query are normalised by their
    /// total.
    normalised: bool,
}

/// Returns the metric that weights the pairs. NDCG without a depth is limited to the truncation level, so that a query
/// with hundreds of relevant documents is normalised by only as many as can be at the top. In measurements, this ranked
/// better than NDCG over the whole list, and better than LightGBM's variant, which combines discounts over the whole
/// list with the ideal DCG of the top.
fn metric_of(parameters: &PairwiseParameters) -> Option<Metric> {
    match parameters.metric {
        Some(Metric::Ndcg(None)) => Some(Metric::Ndcg(parameters.truncation_level)),
        other => other,
    }
}

impl PairWeights {
    pub(super) fn new(parameters: &PairwiseParameters) -> Self {
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

    /// Rejects labels without a valid gain if the metric sums gains.
    pub(super) fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        match self.metric {
            None | Some(Metric::Err(_) | Metric::Map(None)) => Ok(()),
            Some(_) => check_gains(&self.convention.gain, rows),
        }
    }

    /// Returns 1 over the ideal DCG of a query if the metric is NDCG, otherwise 0.
    pub(super) fn label_constant(&self, labels: &[f32]) -> f32 {
        let Some(Metric::Ndcg(depth)) = self.metric else { return 0.0 };
        let mut gains: Vec<f64> = labels.iter().map(|label| self.convention.gain.of(*label)).collect();
        gains.sort_unstable_by(|one, other| other.total_cmp(one));
        gains.truncate(depth.map_or(usize::MAX, |depth| depth as usize));
        let ideal: f64 = gains.iter().enumerate().map(|(rank, gain)| gain * Discount::Log2.at(rank)).sum();
        if ideal > 0.0 { (1.0 / ideal) as f32 } else { 0.0 }
    }

    /// Fills the columns from which [`PairWeights::delta`] computes the metric's change in closed form. Metrics without
    /// a closed form need no columns.
    pub(super) fn fill(&self, label_constant: f32, ranked: &RankedColumns, columns: &mut DeltaColumns) {
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

    /// Returns how much the metric changes when the documents at ranks `i` and `j` are swapped. [`PairWeights::fill`]
    /// must have been called for this query.
    pub(super) fn delta(&self, columns: &DeltaColumns, ranked: &RankedColumns, i: usize, j: usize) -> f32 {
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

    /// Returns the normalisation factor for a query whose gradient magnitudes sum to `total`.
    pub(super) fn factor(&self, total: f32) -> f32 {
        if self.normalised && total > 0.0 {
            (libm::log2(1.0 + f64::from(total)) / f64::from(total)) as f32
        } else {
            1.0
        }
    }

    /// Returns the offset that is added to a pair's score distance before the pair weight is divided by it; `None` if
    /// weights are not divided.
    pub(super) fn distance(&self, ranked: &RankedColumns) -> Option<f32> {
        let apart = ranked.len() > 1 && ranked.scores[ranked.len() - 1] < 0.0;
        (self.normalised && apart).then_some(0.01)
    }
}
