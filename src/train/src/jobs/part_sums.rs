//! Step that sums parts of nodes exactly, for candidate splits whose counts are known only approximately.

use super::boost_job::BoostStep;
use super::member_share::MemberShare;
use crate::tree::{GradientSums, NodePart};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use serde::{Deserialize, Serialize};

/// Sums parts of nodes over the rows of all workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SumParts {
    /// The parts that are summed.
    pub parts: Vec<NodePart>,
}

/// The sums of each part over some of the rows.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct PartSums(pub Vec<GradientSums>);

impl BoostStep for SumParts {
    const NAME: &'static str = "part_sums";
    type Partial = PartSums;

    fn run(&self, share: &mut MemberShare, _blocks: usize) -> Result<Vec<PartSums>> {
        Ok(vec![PartSums(share.part_sums(&self.parts)?)])
    }
}

impl Partial for PartSums {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.0.len() != other.0.len() {
            return Err(malformed());
        }
        self.0.iter_mut().zip(other.0).for_each(|(sum, other)| *sum = *sum + other);
        Ok(())
    }
}
