//! Defines jobs: computations that the executors (worker processes) of a cluster run on every shard of some data. The
//! driver is the process that starts the jobs and receives the results.
//!
//! ```text
//! driver: job ──► every shard: state, map ──► partials ──merge──► driver
//!                  │ no state? prepared from the data, or from a snapshot that the driver sends
//! ```
//!
//! To add a job, implement [`Job`] for a type and add a line to the registry of `planetree-cluster`. That crate does
//! everything else: it sends and repeats requests, keeps each shard on the same executor, caches and rebuilds states,
//! and merges partials. If there are many partials, executors merge them. A request may be repeated at any time, so
//! the result of [`Job::map`] may depend only on the job, the data and the state.
//!
//! - *shard*: a subset of the parts of the data, such as row groups, that one executor works on;
//! - *partial*: the result for one shard, or for several shards after merging;
//! - *state*: a value that an executor caches between jobs that belong to the same command;
//! - *snapshot*: a value from which, together with the data, an executor rebuilds a lost state. The driver sends it.

use crate::error::{Error, Result};
use crate::storage::Location;
use serde::{Serialize, de::DeserializeOwned};

/// A computation that runs on every shard of some data.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the job in requests.
    const NAME: &'static str;

    /// Whether a state serves one shard or all shards of an executor.
    const SCOPE: Scope = Scope::Shard;

    /// The data that the job runs on.
    type Data: JobData;

    /// The state that an executor caches between jobs that belong to the same command, or `()` if there is none. Jobs
    /// with the same state type share the state. Several requests may use a state at the same time.
    type State: Send + Sync + 'static;

    /// The snapshot from which a lost state is rebuilt, or `()` if there is none.
    type Snapshot: Serialize + DeserializeOwned;

    /// The result for a shard.
    type Partial: Partial;

    /// Opens the data.
    fn open(&self, locations: &[Location]) -> Result<Self::Data> {
        Self::Data::open(locations)
    }

    /// Creates a state. Returns `None` if a snapshot is needed but not given. The driver then repeats the request
    /// with a snapshot.
    fn prepare(
        &self,
        snapshot: Option<Self::Snapshot>,
        shard: &Shard<'_, Self::Data>,
    ) -> Result<Option<Self::State>>;

    /// Returns the approximate size of a state in bytes, which counts towards the limit of an executor's cache.
    fn state_bytes(_state: &Self::State) -> u64 {
        0
    }

    /// Computes the result for a shard. Returns `None` if the state is out of date and must be rebuilt.
    fn map(&self, state: &Self::State, shard: &Shard<'_, Self::Data>) -> Result<Option<Self::Partial>>;

    /// Computes the result for a shard like [`map`](Self::map), divided into at most `blocks` blocks. Each block is
    /// merged with the corresponding blocks of other shards, so that several executors can share the work of merging.
    fn map_blocks(
        &self,
        state: &Self::State,
        shard: &Shard<'_, Self::Data>,
        _blocks: usize,
    ) -> Result<Option<Vec<Self::Partial>>> {
        Ok(self.map(state, shard)?.map(|partial| vec![partial]))
    }
}

/// The shards that a state is valid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The state is valid for one shard.
    Shard,
    /// The state is valid for all shards of an executor, so it must not depend on a single shard.
    Data,
}

/// Data that jobs run on. Every process of a cluster can open the data.
pub trait JobData: Send + Sync + Sized + 'static {
    /// Opens the data: one dataset or file, or several datasets that are read as one.
    fn open(locations: &[Location]) -> Result<Self>;

    /// Returns a key that identifies the content of the data and the division into parts. An executor compares its
    /// key with the driver's key, to detect that the two processes see different data.
    fn content_key(&self) -> Result<String>;

    /// Returns the error for an executor whose data differ from the data on the driver.
    fn mismatch(place: &str) -> Error;
}

/// A subset of the data that one executor works on.
pub struct Shard<'a, D> {
    /// All the data.
    pub data: &'a D,
    /// Numbers of the shard's parts, such as row groups, in ascending order. For jobs that need all the data on every
    /// executor, the numbers only distinguish shards.
    pub parts: &'a [usize],
}

/// The result for one shard, or for several shards after merging.
pub trait Partial: Serialize + DeserializeOwned + Send + 'static {
    /// Merges the partial `other` into this one. The shards of `other` come after the shards of this partial.
    fn merge(&mut self, other: Self) -> Result<()>;

    /// Merges partials in order, pairwise as in a balanced tree. Returns `None` if there are no partials.
    fn merge_all(mut partials: Vec<Self>) -> Result<Option<Self>> {
        while partials.len() > 1 {
            let mut halved = Vec::with_capacity(partials.len().div_ceil(2));
            let mut pairs = partials.into_iter();
            while let Some(mut left) = pairs.next() {
                if let Some(right) = pairs.next() {
                    left.merge(right)?;
                }
                halved.push(left);
            }
            partials = halved;
        }
        Ok(partials.pop())
    }

    /// Checks whether the fields are consistent. It is called whenever a partial is received.
    fn is_valid(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Partial for String {
        fn merge(&mut self, other: Self) -> Result<()> {
            self.push_str(&format!("({other})"));
            Ok(())
        }
    }

    #[test]
    fn partials_merge_in_order() {
        let merged = |count: u32| Partial::merge_all((0..count).map(|number| number.to_string()).collect());
        assert_eq!(merged(0).unwrap(), None);
        assert_eq!(merged(1).unwrap().unwrap(), "0");
        assert_eq!(merged(5).unwrap().unwrap(), "0(1)(2(3))(4)");
    }
}
