//! RankBoost (Freund et al. 2003): the exponential loss of pairs. A pair is two documents of a query with different
//! labels, and its weight is
//!
//! ```text
//! D(i, j) = exp(score of j - score of i)        where i has the higher label
//! ```
//!
//! The gradient of a document is its potential: the weights of the pairs in which it should be above the other document,
//! minus the weights of those in which it should be below. The sum of the gradients of the documents that a weak ranker
//! selects is the R of the paper. The hessian is half the sum of the weights of a document's pairs, so that hessians add
//! up to Z, the sum of all weights.
//!
//! A weight is a product of a factor of i and a factor of j, so pairs are never listed.

use super::{Gradients, Objective, Query, QueryBuffers};

/// The RankBoost objective.
#[derive(Debug)]
pub(super) struct RankBoost;

impl Objective for RankBoost {
    fn gradients(&self, query: &Query<'_>, _buffers: &mut QueryBuffers, out: Gradients<'_>) {
        let Query { labels, scores, .. } = *query;
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|one, other| labels[*one].total_cmp(&labels[*other]));
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The centre cancels out in the products, and keeps the factors within the range of floating-point numbers.
        let centre = least + (most - least) / 2.0;
        let up: Vec<f64> = scores.iter().map(|score| libm::exp(score - centre)).collect();
        let down: Vec<f64> = scores.iter().map(|score| libm::exp(centre - score)).collect();
        let groups = || order.chunk_by(|one, other| labels[*one] == labels[*other]);
        // Weights of the pairs with documents below, then those with documents above.
        let (mut below, mut above) = (0.0, 0.0);
        for group in groups() {
            for &place in group {
                let weight = down[place] * below;
                out.gradients[place] = weight as f32;
                out.hessians[place] = (weight / 2.0) as f32;
            }
            below += group.iter().map(|place| up[*place]).sum::<f64>();
        }
        let descending: Vec<&[usize]> = groups().collect();
        for group in descending.into_iter().rev() {
            for &place in group {
                let weight = up[place] * above;
                out.gradients[place] = (f64::from(out.gradients[place]) - weight) as f32;
                out.hessians[place] = (f64::from(out.hessians[place]) + weight / 2.0) as f32;
            }
            above += group.iter().map(|place| down[*place]).sum::<f64>();
        }
    }
}
