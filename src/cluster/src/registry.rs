//! Lists all jobs that executors can run.

use super::executor::{ExecutorCache, ShardRequest, run};
use super::task::Reply;
use planetree_base::compact::{self, Bytes};
use planetree_base::error::{Error, Result};
use planetree_base::job::{Job, Partial};
use planetree_base::wire::malformed;
use planetree_judge::evaluate::JudgeRows;
use planetree_model::predict::ScoreRows;
use planetree_train::adarank::AdaRankSums;
use planetree_train::coordinate_ascent::{CoordinateScan, RankWeights};
use planetree_train::jobs::{
    BoostJob, CombinedMetrics, GrowTrees, Level, Settle, StreamLevel, SumParts, Survey, UpdateGradients,
    ValueLevel,
};
use planetree_train::linear::{LinearDifference, LinearMoments, LinearOffset, LinearRanges, LinearSums};
use planetree_train::net::{NetGradients, NetMetrics};
use planetree_train::ranksvm::{PairLine, PairProduct, PairSums};

const JOBS: &[RegisteredJob] = &[
    RegisteredJob::of::<Survey>(),
    RegisteredJob::of::<BoostJob<UpdateGradients>>(),
    RegisteredJob::of::<BoostJob<Settle>>(),
    RegisteredJob::of::<BoostJob<Level>>(),
    RegisteredJob::of::<BoostJob<StreamLevel>>(),
    RegisteredJob::of::<BoostJob<SumParts>>(),
    RegisteredJob::of::<BoostJob<ValueLevel>>(),
    RegisteredJob::of::<CombinedMetrics>(),
    RegisteredJob::of::<GrowTrees>(),
    RegisteredJob::of::<LinearOffset>(),
    RegisteredJob::of::<LinearRanges>(),
    RegisteredJob::of::<LinearMoments>(),
    RegisteredJob::of::<LinearDifference>(),
    RegisteredJob::of::<LinearSums>(),
    RegisteredJob::of::<PairSums>(),
    RegisteredJob::of::<PairProduct>(),
    RegisteredJob::of::<PairLine>(),
    RegisteredJob::of::<AdaRankSums>(),
    RegisteredJob::of::<RankWeights>(),
    RegisteredJob::of::<CoordinateScan>(),
    RegisteredJob::of::<NetGradients>(),
    RegisteredJob::of::<NetMetrics>(),
    RegisteredJob::of::<ScoreRows>(),
    RegisteredJob::of::<JudgeRows>(),
];

/// A job that can be found by its name.
pub(crate) struct RegisteredJob {
    name: &'static str,
    /// Runs the job on a shard (a range of row groups) and returns the blocks of its result.
    pub run: fn(&ExecutorCache, &ShardRequest<'_>) -> Result<Vec<Reply>>,
    /// Merges serialised results of shards, given in the order of the shards.
    pub merge: fn(&[Bytes]) -> Result<Bytes>,
    /// Reads a serialised job and a serialised snapshot, without running anything.
    pub read: fn(&[u8], &[u8]) -> Result<()>,
}

impl RegisteredJob {
    const fn of<J: Job>() -> Self {
        RegisteredJob { name: J::NAME, run: run::<J>, merge: merge::<J>, read: read::<J> }
    }

    /// Returns the job at a place in the list, which starts again at its end.
    pub(crate) fn at(place: usize) -> &'static RegisteredJob {
        &JOBS[place % JOBS.len()]
    }

    /// Finds a job by its name.
    pub(crate) fn find(name: &str) -> Result<&'static RegisteredJob> {
        JOBS.iter().find(|job| job.name == name).ok_or_else(|| {
            Error::usage(
                format_args!("this executor has no job called {name:?}"),
                "run the same build of planetree everywhere",
            )
        })
    }
}

/// Deserialises and validates a partial.
pub(crate) fn read_partial<P: Partial>(bytes: &Bytes) -> Result<P> {
    let partial: P = compact::from_bytes(&bytes.0)?;
    if partial.is_valid() { Ok(partial) } else { Err(malformed()) }
}

fn merge<J: Job>(partials: &[Bytes]) -> Result<Bytes> {
    let partials = partials.iter().map(read_partial).collect::<Result<Vec<J::Partial>>>()?;
    let merged = J::Partial::merge_all(partials)?.ok_or_else(malformed)?;
    Ok(Bytes(compact::to_bytes(&merged)))
}

fn read<J: Job>(job: &[u8], snapshot: &[u8]) -> Result<()> {
    let snapshot = compact::from_bytes::<J::Snapshot>(snapshot);
    compact::from_bytes::<J>(job).and(snapshot).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_a_name_of_its_own() {
        for job in JOBS {
            assert_eq!(JOBS.iter().filter(|other| other.name == job.name).count(), 1, "{}", job.name);
            assert!(RegisteredJob::find(job.name).is_ok());
        }
        let unknown = RegisteredJob::find("no such job").err().unwrap();
        assert!(unknown.remedy().unwrap().contains("same build"));
    }
}
