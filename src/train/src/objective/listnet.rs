//! ListNet, a query-level softmax loss: the cross entropy between the softmax of the labels and the softmax of the
//! scores (Cao et al. 2007, top-one probabilities).

use super::softmax::{cross_entropy_gradients, softmax};
use super::{Gradients, Objective, Query, QueryBuffers};

/// The ListNet objective.
#[derive(Debug)]
pub(super) struct ListNet;

impl Objective for ListNet {
    fn gradients(&self, query: &Query<'_>, buffers: &mut QueryBuffers, out: Gradients<'_>) {
        let mut wanted = std::mem::take(&mut buffers.wanted);
        softmax(query.labels.iter().map(|label| f64::from(*label)), &mut wanted);
        softmax(query.scores.iter().copied(), &mut buffers.shares);
        cross_entropy_gradients(&buffers.shares, |place| wanted[place], out);
        buffers.wanted = wanted;
    }
}
