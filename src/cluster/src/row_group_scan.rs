//! Processes many row groups in waves, with one request for the row groups of each wave. The driver holds only a few
//! results at a time, and executors compute the next wave while the driver processes the previous one.

use super::call::JobCall;
use super::client::SchedulerClient;
use super::share::{divide, file_groups};
use super::task::ClusterCommand;
use planetree_base::error::Result;
use planetree_base::job::Job;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

/// Maximum number of rows per wave. A wave with a single row group may have more.
const MOST_ROWS: u64 = 1 << 20;

/// Minimum number of rows per wave and share. For fewer rows, the overhead of a request is too high.
const LEAST_ROWS: u64 = 1 << 16;

/// A wave, as ranges of neighbouring row groups in ascending order. Each range is a share, which one executor
/// processes.
pub(crate) type Wave = Vec<Range<usize>>;

/// A job that runs on all row groups of a dataset, wave by wave.
pub(crate) struct RowGroupScan<'a, J: Job> {
    /// The client of the scheduler.
    pub client: &'a SchedulerClient,
    /// The command that the job belongs to.
    pub command: &'a ClusterCommand,
    /// The job to run.
    pub job: &'a J,
    /// The data that executors build their state from if they do not have it.
    pub snapshot: &'a J::Snapshot,
    /// All waves, in order.
    pub waves: &'a [Wave],
}

impl<J: Job<Snapshot: Sync>> RowGroupScan<'_, J> {
    /// Passes the results of all shares to `sink` in the order of the row groups, until `sink` returns `false`.
    pub(crate) fn run(&self, sink: &mut dyn FnMut(J::Partial) -> Result<bool>) -> Result<()> {
        let outcome = std::thread::scope(|scope| {
            // The channel has no buffer, so the driver consumes one wave while at most one other is computed or waits.
            let (sender, receiver) = sync_channel(0);
            scope.spawn(move || {
                for (number, wave) in self.waves.iter().enumerate() {
                    let partials = self.client.run(&JobCall {
                        command: self.command,
                        job: self.job,
                        snapshot: self.snapshot,
                        is_first: number == 0,
                        groups: &file_groups(&self.command.data, wave),
                        merge_plan: None,
                    });
                    let is_over = partials.is_err();
                    if sender.send(partials).is_err() || is_over {
                        return;
                    }
                }
            });
            for partials in receiver {
                for partial in partials? {
                    if !sink(partial)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        if let Some(first) = self.waves.first() {
            self.client.forget(self.command, &file_groups(&self.command.data, first));
        }
        outcome
    }
}

/// Divides row groups into waves with enough row groups for all threads and enough rows to justify the overhead of a
/// request, but at most [`MOST_ROWS`]. Each wave has at most `shares` shares.
pub(crate) fn waves(rows: &[u64], threads: usize, shares: usize) -> Vec<Wave> {
    let least = LEAST_ROWS.saturating_mul(shares as u64).min(MOST_ROWS);
    let mut waves = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let (mut end, mut sum) = (start + 1, rows[start]);
        while end < rows.len()
            && (end - start < threads.max(shares) || sum < least)
            && sum + rows[end] <= MOST_ROWS
        {
            sum += rows[end];
            end += 1;
        }
        let of_wave = divide(&rows[start..end], shares);
        waves.push(of_wave.into_iter().map(|share| start + share.start..start + share.end).collect());
        start = end;
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waves_cover_everything_once_and_stay_small(
            rows in prop::collection::vec(0u64..400_000, 0..60), threads in 1usize..9, shares in 1usize..5,
        ) {
            let waves = waves(&rows, threads, shares);
            let all: Vec<usize> = waves.iter().flatten().cloned().flatten().collect();
            prop_assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
            for wave in &waves {
                prop_assert!(wave.len() <= shares && wave.iter().all(|share| !share.is_empty()));
                let groups: Vec<usize> = wave.iter().cloned().flatten().collect();
                let sum: u64 = groups.iter().map(|group| rows[*group]).sum();
                prop_assert!(sum <= MOST_ROWS || groups.len() == 1);
            }
        }
    }

    #[test]
    fn small_row_groups_share_a_wave() {
        assert_eq!(waves(&[300; 9], 2, 2), [vec![0..4, 4..9]]);
        assert_eq!(waves(&[1 << 18; 6], 4, 2), [vec![0..2, 2..4], vec![4..5, 5..6]]);
        let alone = waves(&[1 << 22, 1], 4, 2);
        assert_eq!(alone.concat(), [0..1, 1..2]);
        assert_eq!(alone.len(), 2);
        assert!(waves(&[], 4, 2).is_empty());
    }
}
