//! XE-NDCG: the cross entropy between the softmax of the scores and a target distribution of randomly reduced gains.
//! This loss bounds NDCG (Bruch, An alternative cross entropy loss for learning-to-rank, 2021).

use super::softmax::{cross_entropy_gradients, softmax};
use super::{Gradients, LabelProblem, Objective, Query, QueryBuffers};
use planetree_base::random::Stream;
use planetree_data::source::LabelledRows;
use planetree_metric::Gain;

const OF_GAINS: u64 = 0x6E69_6147;

/// The XE-NDCG objective, a cross-entropy surrogate for NDCG.
#[derive(Debug)]
pub(super) struct XeNdcg {
    seed: u64,
}

impl XeNdcg {
    pub(super) fn new(seed: u64) -> Self {
        XeNdcg { seed }
    }
}

impl Objective for XeNdcg {
    fn check(&self, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
        let mut labels = rows.iter().flat_map(|rows| &rows.labels);
        let Some(label) = labels.find(|label| **label < 0.0 || !Gain::Exp2.fits(**label)) else {
            return Ok(());
        };
        let problem = if *label < 0.0 { "is negative" } else { "has a gain 2^label - 1 above 1e30" };
        Err(LabelProblem::new(
            format_args!("the label {label} {problem}, which objective xendcg does not support"),
            "train on labels from 0 to 99, or set objective=listnet, or objective=lambdarank and label_gain=linear",
        ))
    }

    fn draws(&self) -> bool {
        true
    }

    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>) {
        let mut draw = Stream::new(&[self.seed, OF_GAINS, u64::from(query.round), query.number]);
        // Target weights: 2^label minus a random number from 0 to 1 (eq. 6 of the paper), redrawn in every round.
        let mut wanted = std::mem::take(&mut buffers.wanted);
        wanted.clear();
        wanted.extend(query.labels.iter().map(|label| {
            /// Larger labels are reduced to this one, because sums would overflow.
            const MOST: f32 = 512.0;
            libm::exp2(f64::from(label.min(MOST))) - draw.uniform()
        }));
        let sum: f64 = wanted.iter().sum();
        wanted.iter_mut().for_each(|gain| *gain /= if sum > 0.0 { sum } else { 1.0 });
        softmax(query.scores.iter().copied(), &mut buffers.shares);
        cross_entropy_gradients(&buffers.shares, |place| wanted[place], out);
        buffers.wanted = wanted;
    }
}
