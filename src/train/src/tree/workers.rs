//! Divides the rows of a dataset among the workers of streaming histograms, and defines the order in which the
//! results of workers are merged. Both depend on the queries and on the number of workers only, never on partitions,
//! threads or executors.

use planetree_data::source::LabelledRows;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The rows of each worker. A worker has a contiguous range of whole queries, and all workers have about the same
/// number of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerBounds(
    /// The first row of each worker, followed by the number of rows.
    Vec<u64>,
);

/// Rows of a worker in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPiece {
    /// The partition.
    pub partition: usize,
    /// Rows, counted from the first row of the partition.
    pub rows: Range<u32>,
}

impl WorkerBounds {
    /// Divides rows among workers. There are as many workers as requested, or as many as there are queries.
    pub fn divide(rows: &[LabelledRows], workers: usize) -> Self {
        let ends = |rows: &LabelledRows| {
            let first = rows.first;
            rows.query_bounds[1..].iter().map(move |end| first + u64::from(*end)).collect::<Vec<u64>>()
        };
        let queries: Vec<u64> = std::iter::once(0).chain(rows.iter().flat_map(ends)).collect();
        let count = queries.len() - 1;
        let workers = workers.clamp(1, count.max(1));
        let all = queries[count];
        let mut bounds = vec![0];
        let mut used = 0;
        for worker in 1..workers {
            // The end of a query that is nearest to the wanted row, but every worker gets a query.
            let wanted = (u128::from(all) * worker as u128 / workers as u128) as u64;
            let above = queries.partition_point(|end| *end < wanted);
            let is_below_nearer = above > 0 && wanted - queries[above - 1] <= queries[above] - wanted;
            let nearest = if is_below_nearer { above - 1 } else { above };
            used = nearest.clamp(used + 1, count - (workers - worker));
            bounds.push(queries[used]);
        }
        bounds.push(all);
        WorkerBounds(bounds)
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Returns the rows of neighbouring workers.
    pub fn rows(&self, workers: Range<usize>) -> Range<u64> {
        self.0[workers.start]..self.0[workers.end]
    }

    /// Returns the first worker whose rows begin at or after a row, or the number of workers if there is none.
    pub fn first_from(&self, row: u64) -> usize {
        self.0[..self.workers()].partition_point(|first| *first < row)
    }

    /// Returns whether there is a worker, and each has rows.
    pub fn is_valid(&self) -> bool {
        self.0.len() > 1 && self.0[0] == 0 && self.0.is_sorted_by(|one, next| one < next)
    }

    /// Finds the rows of neighbouring workers in these partitions, which must contain all of them.
    pub fn pieces(&self, workers: Range<usize>, partitions: &[LabelledRows]) -> Vec<WorkerPiece> {
        let wanted = self.rows(workers);
        let piece = |(partition, rows): (usize, &LabelledRows)| {
            let within = |row: u64| row.clamp(rows.first, rows.first + rows.len() as u64) - rows.first;
            let rows = within(wanted.start) as u32..within(wanted.end) as u32;
            WorkerPiece { partition, rows }
        };
        let pieces = partitions.iter().enumerate().map(piece);
        pieces.filter(|piece| !piece.rows.is_empty()).collect()
    }
}

/// Results of workers, in ascending order of the workers. They are merged pairwise, in a balanced tree: first those of
/// workers 0 and 1, 2 and 3, and so on, then those of workers 0 to 1 and 2 to 3. If a result has no partner, it moves
/// up unchanged. A share merges only the pairs of which it has both results, so that the outcome does not depend on how
/// workers are divided among shares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeTree<T> {
    /// The number of all workers.
    workers: usize,
    /// Ranges of workers, each with their merged result.
    merged: Vec<(Range<usize>, T)>,
}

impl<T> MergeTree<T> {
    /// Creates a tree without results.
    pub fn new(workers: usize) -> Self {
        MergeTree { workers, merged: Vec::new() }
    }

    /// Adds the result of some workers. `merge` merges the results of two neighbouring ranges of workers.
    pub fn add<E>(
        &mut self,
        workers: Range<usize>,
        result: T,
        merge: &mut impl FnMut(T, T) -> Result<T, E>,
    ) -> Result<(), E> {
        self.merged.push((workers, result));
        while let [.., (left, _), (right, _)] = &self.merged[..]
            && are_partners(left, right, self.workers)
            && let (Some((right, of_right)), Some((left, of_left))) = (self.merged.pop(), self.merged.pop())
        {
            self.merged.push((left.start..right.end, merge(of_left, of_right)?));
        }
        Ok(())
    }

    /// Adds the results of the workers after those of this tree.
    pub fn append<E>(&mut self, other: Self, merge: &mut impl FnMut(T, T) -> Result<T, E>) -> Result<(), E> {
        other.merged.into_iter().try_for_each(|(workers, result)| self.add(workers, result, merge))
    }

    /// Returns the result of all workers, or `None` if some are missing.
    pub fn finish(mut self) -> Option<T> {
        match self.merged.pop() {
            Some((workers, result)) if workers == (0..self.workers) => Some(result),
            _ => None,
        }
    }

    /// Returns the number of all workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the merged results so far.
    pub fn results(&self) -> impl Iterator<Item = &T> {
        self.merged.iter().map(|(_, result)| result)
    }
}

/// Returns whether two neighbouring ranges of workers are merged with each other.
fn are_partners(left: &Range<usize>, right: &Range<usize>, workers: usize) -> bool {
    let size = left.len();
    left.end == right.start
        && size.is_power_of_two()
        && left.start.is_multiple_of(2 * size)
        && right.end == (left.start + 2 * size).min(workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// Rows of queries with the given sizes, in partitions that begin at the queries with the given numbers.
    fn rows(sizes: &[u32], starts: &[usize]) -> Vec<LabelledRows> {
        let mut bounds: Vec<usize> = starts.iter().map(|start| start % sizes.len()).collect();
        bounds.extend([0, sizes.len()]);
        bounds.sort_unstable();
        bounds.dedup();
        let partition = |range: &[usize]| {
            let before: u32 = sizes[..range[0]].iter().sum();
            let sizes = &sizes[range[0]..range[1]];
            let mut query_bounds = vec![0];
            sizes.iter().for_each(|size| query_bounds.push(query_bounds.last().unwrap() + size));
            let count = *query_bounds.last().unwrap() as usize;
            LabelledRows {
                first: before.into(),
                first_query: range[0] as u64,
                labels: vec![0.0; count],
                weights: None,
                positions: None,
                query_bounds,
                query_keys: Vec::new(),
            }
        };
        bounds.windows(2).map(partition).collect()
    }

    proptest! {
        #[test]
        fn workers_have_whole_queries_whatever_the_partitions(
            sizes in prop::collection::vec(1u32..40, 1..60), workers in 1usize..20,
            starts in prop::collection::vec(0usize..60, 0..10),
        ) {
            let one = rows(&sizes, &[]);
            let bounds = WorkerBounds::divide(&one, workers);
            prop_assert!(bounds.is_valid());
            prop_assert_eq!(bounds.workers(), workers.min(sizes.len()));
            let several = rows(&sizes, &starts);
            prop_assert_eq!(&WorkerBounds::divide(&several, workers), &bounds);
            let ends: Vec<u64> = one[0].query_bounds.iter().map(|end| u64::from(*end)).collect();
            let all = *ends.last().unwrap();
            let mut next = 0;
            for worker in 0..bounds.workers() {
                let own = bounds.rows(worker..worker + 1);
                prop_assert!(ends.contains(&own.start) && ends.contains(&own.end));
                // No worker is further from its equal part than half of a query at either end, unless that would leave
                // a worker without a query.
                let longest = u64::from(*sizes.iter().max().unwrap());
                let few = sizes.len() < 4 * workers;
                prop_assert!(few || own.end - own.start <= all / bounds.workers() as u64 + 1 + longest);
                for piece in bounds.pieces(worker..worker + 1, &several) {
                    let first = several[piece.partition].first;
                    prop_assert_eq!(first + u64::from(piece.rows.start), next);
                    next = first + u64::from(piece.rows.end);
                    prop_assert_eq!(bounds.first_from(next), worker + 1);
                }
                prop_assert_eq!(next, own.end);
            }
            prop_assert_eq!(next, all);
        }

        #[test]
        fn any_division_of_workers_is_merged_in_the_same_tree(
            workers in 1usize..40, cuts in prop::collection::vec(0usize..40, 0..6),
        ) {
            // The slow twin merges all results level by level.
            let mut level: Vec<String> = (0..workers).map(|worker| worker.to_string()).collect();
            while level.len() > 1 {
                level = level.chunks(2).map(|pair| match pair {
                    [one, other] => format!("({one} {other})"),
                    _ => pair[0].clone(),
                }).collect();
            }
            let mut merge = |one: String, other: String| Ok::<_, Infallible>(format!("({one} {other})"));
            let mut bounds: Vec<usize> = cuts.into_iter().filter(|cut| *cut < workers).collect();
            bounds.extend([0, workers]);
            bounds.sort_unstable();
            bounds.dedup();
            let mut all = MergeTree::new(workers);
            for share in bounds.windows(2) {
                let mut of_share = MergeTree::new(workers);
                for worker in share[0]..share[1] {
                    of_share.add(worker..worker + 1, worker.to_string(), &mut merge).unwrap();
                }
                prop_assert!(of_share.results().count() <= 2 * 6, "at most two results per level of the tree");
                all.append(of_share, &mut merge).unwrap();
            }
            prop_assert_eq!(all.finish(), Some(level.remove(0)));
        }
    }

    #[test]
    fn a_tree_without_all_workers_has_no_result() {
        let mut merge = |one: u32, other: u32| Ok::<_, Infallible>(one + other);
        let mut tree = MergeTree::new(3);
        tree.add(0..1, 1, &mut merge).unwrap();
        tree.add(2..3, 1, &mut merge).unwrap();
        assert_eq!(tree.clone().finish(), None);
        assert_eq!(MergeTree::<u32>::new(3).finish(), None);
    }
}
