//! Step that adds the last tree of a part to the scores, so that the parts coupled with it can compute their gradients.

use super::boost_job::BoostStep;
use super::member_share::MemberShare;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use serde::{Deserialize, Serialize};

/// Brings the scores of a part up to date and computes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settle;

/// The number of shares whose scores are up to date.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct SettledShares(u64);

impl BoostStep for Settle {
    const NAME: &'static str = "settle";
    type Partial = SettledShares;

    fn run(&self, _share: &mut MemberShare, _blocks: usize) -> Result<Vec<SettledShares>> {
        Ok(vec![SettledShares(1)])
    }
}

impl Partial for SettledShares {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0 += other.0;
        Ok(())
    }
}
