//! Step that sums nodes by every value of their features, for exact candidate splits. The size of the result grows with
//! the number of distinct values.

use super::boost_job::BoostStep;
use super::in_blocks;
use super::member_share::MemberShare;
use crate::tree::{GradientSums, GroupNodes};
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use serde::{Deserialize, Serialize};

/// Sums nodes by the codes of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueLevel {
    /// The feature groups and nodes.
    pub wanted: Vec<GroupNodes>,
}

/// The sums of some feature groups, by group and node.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueLists(Vec<Vec<CodeList>>);

/// The sums of a node by code. Codes are encoded as differences from the previous code, so the numbers are small.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct CodeList(Vec<(u32, GradientSums)>);

impl CodeList {
    fn of(sums: impl IntoIterator<Item = (u32, GradientSums)>) -> Self {
        let mut before = 0;
        let gap = |(code, sums): (u32, GradientSums)| (code - std::mem::replace(&mut before, code), sums);
        CodeList(sums.into_iter().map(gap).collect())
    }

    fn codes(&self) -> impl Iterator<Item = (u32, GradientSums)> {
        let mut code = 0u32;
        self.0.iter().map(move |(gap, sums)| {
            code = code.wrapping_add(*gap);
            (code, *sums)
        })
    }

    /// Merges the sums of other rows of the node.
    fn merged(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.codes().peekable(), other.codes().peekable());
        let next = std::iter::from_fn(|| match (ours.peek(), theirs.peek()) {
            (Some((one, _)), Some((other, _))) if one == other => {
                let ((code, one), (_, other)) = (ours.next()?, theirs.next()?);
                Some((code, one + other))
            }
            (Some((one, _)), Some((other, _))) if one > other => theirs.next(),
            (None, _) => theirs.next(),
            _ => ours.next(),
        });
        CodeList::of(next)
    }

    /// Returns whether codes are ascending.
    fn is_valid(&self) -> bool {
        let total: u64 = self.0.iter().map(|(gap, _)| u64::from(*gap)).sum();
        total <= u64::from(u32::MAX) && self.0.iter().skip(1).all(|(gap, _)| *gap > 0)
    }
}

impl ValueLists {
    /// Returns the sums by group and node.
    pub fn lists(&self) -> impl Iterator<Item = Vec<Vec<(u32, GradientSums)>>> {
        self.0.iter().map(|nodes| nodes.iter().map(|list| list.codes().collect()).collect())
    }
}

impl BoostStep for ValueLevel {
    const NAME: &'static str = "values";
    type Partial = ValueLists;

    /// Each block has some of the feature groups.
    fn run(&self, share: &mut MemberShare, blocks: usize) -> Result<Vec<ValueLists>> {
        let groups = share.value_sums(&self.wanted)?;
        let of_group = |nodes: Vec<_>| nodes.into_iter().map(CodeList::of).collect();
        let groups: Vec<Vec<CodeList>> = groups.into_iter().map(of_group).collect();
        Ok(in_blocks(groups, blocks).into_iter().map(ValueLists).collect())
    }
}

impl Partial for ValueLists {
    fn merge(&mut self, other: Self) -> Result<()> {
        let fits = |(ours, theirs): (&Vec<CodeList>, &Vec<CodeList>)| ours.len() == theirs.len();
        if self.0.len() != other.0.len() || !self.0.iter().zip(&other.0).all(fits) {
            return Err(malformed());
        }
        let theirs = other.0.iter().flatten();
        self.0.iter_mut().flatten().zip(theirs).for_each(|(ours, theirs)| *ours = ours.merged(theirs));
        Ok(())
    }

    fn is_valid(&self) -> bool {
        self.0.iter().flatten().all(CodeList::is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planetree_base::compact::{from_bytes, to_bytes};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The slow twin adds the sums of all shares in a map.
        #[test]
        fn sums_by_code_add_up_after_a_round_trip(
            shares in prop::collection::vec(prop::collection::btree_map(0u32..50, -9i64..9, 0..20), 1..5),
        ) {
            let sums = |gradient| GradientSums { gradient, weight: 2, count: 1 };
            let mut expected: BTreeMap<u32, GradientSums> = BTreeMap::new();
            let mut partials = Vec::new();
            for share in &shares {
                for (code, gradient) in share {
                    let sum = expected.entry(*code).or_default();
                    *sum = *sum + sums(*gradient);
                }
                let list = CodeList::of(share.iter().map(|(code, gradient)| (*code, sums(*gradient))));
                let partial = ValueLists(vec![vec![list]]);
                let back: ValueLists = from_bytes(&to_bytes(&partial)).unwrap();
                prop_assert!(back.is_valid() && back == partial);
                partials.push(back);
            }
            let merged = Partial::merge_all(partials).unwrap().unwrap();
            prop_assert!(merged.is_valid());
            let lists: Vec<_> = merged.lists().collect();
            prop_assert_eq!(&lists, &[vec![expected.into_iter().collect::<Vec<_>>()]]);
        }
    }

    #[test]
    fn codes_that_do_not_ascend_are_refused() {
        let list = |gaps: &[u32]| {
            ValueLists(vec![vec![CodeList(gaps.iter().map(|gap| (*gap, GradientSums::default())).collect())]])
        };
        assert!(list(&[0, 1, 5]).is_valid());
        assert!(!list(&[3, 0]).is_valid() && !list(&[1, u32::MAX]).is_valid());
    }
}
