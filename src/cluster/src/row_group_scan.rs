//! A pass over many row groups: some of them are asked about at a time, so that whoever asks never holds more than a few
//! of their answers, and the next ones are worked on while the last are used.

use super::client::{ClusterRequest, SchedulerClient};
use super::share::divide;
use super::task::{Answer, Task};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::Result;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

/// Rows of a wave at most, unless a single row group has more.
const MOST_ROWS: u64 = 1 << 20;

/// Rows of a wave at least, for every executor: fewer are not worth a job of the engine.
const LEAST_ROWS: u64 = 1 << 16;

/// The shares of a wave: stretches of neighbouring row groups, in their order.
pub type Wave = Vec<Range<usize>>;

/// A question to all row groups, in waves.
pub struct RowGroupScan<'a> {
    /// The line.
    pub client: &'a SchedulerClient,
    /// What is asked.
    pub task: &'a Task,
    /// What is asked together.
    pub waves: &'a [Wave],
    /// The files of some shares.
    pub groups: &'a (dyn Fn(&Wave) -> Vec<FileGroup> + Sync),
    /// What executors build on.
    pub snapshot: &'a (dyn Fn() -> Vec<u8> + Sync),
}

impl RowGroupScan<'_> {
    /// Hands on all answers in the order of the row groups, until the sink says `false`.
    pub fn run(&self, sink: &mut dyn FnMut(Answer) -> Result<bool>) -> Result<()> {
        let outcome = std::thread::scope(|scope| {
            // One wave is used, one waits to be used or is worked on.
            let (sender, receiver) = sync_channel(0);
            scope.spawn(move || {
                for (number, wave) in self.waves.iter().enumerate() {
                    let groups = (self.groups)(wave);
                    let answers = self.client.ask(&ClusterRequest {
                        task: self.task,
                        snapshot: self.snapshot,
                        is_first: number == 0,
                        groups: &groups,
                        merge_plan: None,
                    });
                    let is_over = answers.is_err();
                    if sender.send(answers).is_err() || is_over {
                        return;
                    }
                }
            });
            for answers in receiver {
                for answer in answers? {
                    if !sink(answer)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        if let Some(first) = self.waves.first() {
            self.client.forget(self.task, &(self.groups)(first));
        }
        outcome
    }
}

/// Cuts row groups of so many rows into waves: enough groups for all threads and enough rows to be worth it, but not
/// too many rows. Each is divided into at most so many shares.
pub fn waves(rows: &[u64], threads: usize, shares: usize) -> Vec<Wave> {
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
    fn small_row_groups_are_asked_about_together() {
        assert_eq!(waves(&[300; 9], 2, 2), [vec![0..4, 4..9]]);
        assert_eq!(waves(&[1 << 18; 6], 4, 2), [vec![0..2, 2..4], vec![4..5, 5..6]]);
        let alone = waves(&[1 << 22, 1], 4, 2);
        assert_eq!(alone.concat(), [0..1, 1..2]);
        assert_eq!(alone.len(), 2);
        assert!(waves(&[], 4, 2).is_empty());
    }
}
