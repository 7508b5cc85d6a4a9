//! Runs the jobs of linear models: in this process, or on the executors of a cluster.

use super::jobs::LinearSnapshot;
use super::rows::LinearRows;
use crate::driver::{Backend, run_job};
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::storage::interrupt;
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rows of a training run, which jobs run on.
pub(crate) enum LinearJobs<'a> {
    /// The rows are in memory.
    Memory {
        /// The datasets.
        source: &'a LabelledData,
        /// All rows.
        rows: LinearRows,
    },
    /// The rows do not fit in memory: every job reads them again, one partition at a time.
    Streamed {
        /// The datasets.
        source: &'a LabelledData,
        /// Reads a partition.
        read: Box<dyn Fn(usize) -> Result<LinearRows> + Send + Sync + 'a>,
    },
    /// Other processes hold the rows.
    Remote {
        /// The processes.
        backend: &'a dyn Backend,
        /// The index of the part in its stage.
        member: usize,
        /// What executors rebuild their states from.
        snapshot: LinearSnapshot,
        /// Whether no job has run yet.
        is_first: AtomicBool,
    },
}

impl<'a> LinearJobs<'a> {
    /// Runs jobs on the processes of a backend. `member` is the index of the part in its stage.
    pub(crate) fn remote(backend: &'a dyn Backend, member: usize, snapshot: LinearSnapshot) -> Self {
        LinearJobs::Remote { backend, member, snapshot, is_first: AtomicBool::new(true) }
    }

    /// Runs a job on all rows.
    pub(crate) fn run<J>(&self, job: &J) -> Result<J::Partial>
    where
        J: Job<Data = LabelledData, State = LinearRows, Snapshot = LinearSnapshot>,
    {
        interrupt::check()?;
        let map = |source: &LabelledData, rows: &LinearRows, parts: &[usize]| {
            job.map(rows, &Shard { data: source, parts })?.ok_or_else(malformed)
        };
        match self {
            LinearJobs::Memory { source, rows } => {
                map(source, rows, &(0..source.partitions()).collect::<Vec<_>>())
            }
            LinearJobs::Streamed { source, read } => {
                let mut total: Option<J::Partial> = None;
                for partition in 0..source.partitions() {
                    interrupt::check()?;
                    let partial = map(source, &read(partition)?, &[partition])?;
                    match &mut total {
                        None => total = Some(partial),
                        Some(total) => total.merge(partial)?,
                    }
                }
                total.ok_or_else(malformed)
            }
            LinearJobs::Remote { backend, member, snapshot, is_first } => {
                let is_first = is_first.swap(false, Ordering::Relaxed);
                run_job(*backend, *member, job, snapshot, is_first)
            }
        }
    }
}
