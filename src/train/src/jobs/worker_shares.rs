//! Assigns the workers of streaming histograms to shares, which are the row groups that one executor works on.
//!
//! Row groups are divided among shares. A worker belongs to the share in whose row groups its first row is, and the
//! share also reads the following row groups that its workers need. It computes
//! the gradients of their rows, but the share that owns these row groups reports them.

use crate::tree::{WorkerBounds, WorkerPiece};
use planetree_data::source::LabelledRows;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The workers of each share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerShares {
    /// The rows of each worker.
    pub bounds: WorkerBounds,
    /// The shares, in order.
    pub shares: Vec<WorkerShare>,
}

/// The workers of one share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerShare {
    /// The row groups of the share itself.
    pub own: Range<usize>,
    /// All row groups that the share reads: its own ones, followed by those that its workers also need.
    pub read: Range<usize>,
    /// The workers of the share.
    pub workers: Range<usize>,
}

impl WorkerShares {
    /// Assigns workers to shares. `rows` are the numbers of rows of all row groups, and `shares` divides the row groups. A
    /// share in whose row groups no worker begins is joined with the one before.
    pub fn assign(bounds: WorkerBounds, rows: &[u64], shares: &[Range<usize>]) -> Self {
        let mut next = 0;
        let mut firsts = Vec::with_capacity(rows.len());
        for rows in rows {
            firsts.push(next);
            next += rows;
        }
        let first_row = |group: usize| firsts.get(group).copied().unwrap_or(u64::MAX);
        let mut all: Vec<WorkerShare> = Vec::new();
        for own in shares {
            let workers = bounds.first_from(first_row(own.start))..bounds.first_from(first_row(own.end));
            match all.last_mut() {
                Some(last) if workers.is_empty() => last.own.end = own.end,
                _ => all.push(WorkerShare { own: own.clone(), read: own.clone(), workers }),
            }
        }
        for share in &mut all {
            let end = bounds.rows(share.workers.clone()).end;
            share.read.end = share.own.end.max(firsts.partition_point(|first| *first < end));
        }
        WorkerShares { bounds, shares: all }
    }

    /// Finds the share that reads these row groups.
    pub fn share_of(&self, parts: &[usize]) -> Option<&WorkerShare> {
        self.shares.iter().find(|share| parts.iter().copied().eq(share.read.clone()))
    }
}

/// The workers of a share, together with the places of their rows.
#[derive(Debug, Clone)]
pub(super) struct OwnWorkers {
    /// The rows of all workers.
    pub bounds: WorkerBounds,
    /// The workers of the share.
    pub workers: Range<usize>,
    /// The rows of these workers.
    pub pieces: Vec<WorkerPiece>,
    /// Number of partitions whose gradients the share reports. Partitions of other shares follow them.
    pub partitions: usize,
}

impl OwnWorkers {
    /// Finds the workers of the share that reads the row groups `parts`, whose rows are given. Returns `None` if
    /// there is no such share.
    pub(super) fn find(shares: &WorkerShares, parts: &[usize], rows: &[LabelledRows]) -> Option<Self> {
        let share = shares.share_of(parts).filter(|_| shares.bounds.is_valid())?;
        let is_known = share.workers.end <= shares.bounds.workers() && !share.workers.is_empty();
        let (bounds, workers) = (shares.bounds.clone(), share.workers.clone());
        is_known.then(|| OwnWorkers {
            pieces: bounds.pieces(workers.clone(), rows),
            bounds,
            workers,
            partitions: share.own.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Row groups with queries of the given sizes.
    fn rows(groups: &[Vec<u32>]) -> Vec<LabelledRows> {
        let (mut first, mut first_query) = (0, 0);
        let group = |sizes: &Vec<u32>| {
            let mut query_bounds = vec![0];
            sizes.iter().for_each(|size| query_bounds.push(query_bounds.last().unwrap() + size));
            let count = *query_bounds.last().unwrap();
            let rows = LabelledRows {
                first,
                first_query,
                labels: vec![0.0; count as usize],
                weights: None,
                positions: None,
                query_bounds,
                query_keys: Vec::new(),
            };
            first += u64::from(count);
            first_query += sizes.len() as u64;
            rows
        };
        groups.iter().map(group).collect()
    }

    proptest! {
        #[test]
        fn every_worker_and_every_row_group_belongs_to_one_share(
            groups in prop::collection::vec(prop::collection::vec(1u32..30, 1..12), 1..12),
            workers in 1usize..20, cuts in prop::collection::vec(0usize..12, 0..5),
        ) {
            let rows = rows(&groups);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < groups.len()).collect();
            cuts.extend([0, groups.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let divided: Vec<Range<usize>> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
            let bounds = WorkerBounds::divide(&rows, workers);
            let counts: Vec<u64> = rows.iter().map(|rows| rows.len() as u64).collect();
            let shares = WorkerShares::assign(bounds.clone(), &counts, &divided);
            let own: Vec<usize> = shares.shares.iter().flat_map(|share| share.own.clone()).collect();
            prop_assert_eq!(own, (0..groups.len()).collect::<Vec<_>>());
            let all: Vec<usize> = shares.shares.iter().flat_map(|share| share.workers.clone()).collect();
            prop_assert_eq!(all, (0..bounds.workers()).collect::<Vec<_>>());
            for share in &shares.shares {
                prop_assert_eq!(share.read.start, share.own.start, "the first row group identifies a share");
                prop_assert!(share.own.end <= share.read.end && !share.workers.is_empty());
                let parts: Vec<usize> = share.read.clone().collect();
                let found = OwnWorkers::find(&shares, &parts, &rows[share.read.clone()]).unwrap();
                prop_assert_eq!((&found.workers, found.partitions), (&share.workers, share.own.len()));
                let count: u64 = found.pieces.iter().map(|piece| piece.rows.len() as u64).sum();
                let wanted = bounds.rows(share.workers.clone());
                prop_assert_eq!(count, wanted.end - wanted.start, "the share reads all rows of its workers");
            }
            prop_assert!(OwnWorkers::find(&shares, &[groups.len()], &[]).is_none());
        }
    }
}
