//! Step that computes the gradients of a round.

use super::boost_job::BoostStep;
use super::means::SharedMeans;
use super::member_share::MemberShare;
use crate::driver::GradientSummary;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use serde::{Deserialize, Serialize};

/// Computes the gradients for the next tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateGradients {
    /// The round whose gradients are computed.
    pub round: u32,
}

/// Summaries of the gradients, and the metrics of the scores that the gradients are based on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientParts {
    /// The summaries, in order. There is one per partition or, depending on the objective, one per share (the rows
    /// that one executor works on).
    pub parts: Vec<GradientSummary>,
    /// The metrics.
    pub means: SharedMeans,
}

impl BoostStep for UpdateGradients {
    const NAME: &'static str = "gradients";
    const COUPLES: bool = true;
    type Partial = GradientParts;

    fn run(&self, share: &mut MemberShare, _blocks: usize) -> Result<Vec<GradientParts>> {
        let (parts, means) = share.gradients(self.round)?;
        Ok(vec![GradientParts { parts, means: SharedMeans::of(&means) }])
    }
}

impl Partial for GradientParts {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.parts.extend(other.parts);
        self.means.merge(other.means)
    }
}
