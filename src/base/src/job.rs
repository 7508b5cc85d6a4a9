//! Jobs: computations that run on every shard of some data, on the executors of a cluster.
//!
//! ```text
//! driver: job ──► every shard: state, map ──► partials ──merge──► driver
//!                  │ no state? prepared from the data, or from a snapshot that the driver sends
//! ```
//!
//! A new job is a type with an implementation of [`Job`] and a line in the registry of `planetree-cluster`, which does
//! everything else: it sends and repeats requests, keeps shards on their executors, caches and rebuilds states, and
//! merges partials, on executors if there are many. A request may be repeated at any time, so the result of
//! [`Job::map`] may depend only on the job, the data and the state.
//!
//! - *shard*: some of the data's parts, such as row groups, that one executor works on;
//! - *partial*: the result of one shard, or of several after merging;
//! - *state*: what an executor caches between the jobs of a command;
//! - *snapshot*: what a lost state is rebuilt from, besides the data.

use crate::error::{Error, Result};
use crate::storage::Location;
use serde::{Serialize, de::DeserializeOwned};

/// A computation that runs on every shard of some data.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the job in requests.
    const NAME: &'static str;

    /// Whether a state serves one shard or all shards of an executor.
    const SCOPE: Scope = Scope::Shard;

    /// The data.
    type Data: JobData;

    /// What an executor caches between the jobs of a command; `()` for nothing. Jobs with the same type share it.
    /// Several requests may use it at the same time.
    type State: Send + Sync + 'static;

    /// What a lost state is rebuilt from; `()` for nothing.
    type Snapshot: Serialize + DeserializeOwned;

    /// The result of a shard.
    type Partial: Partial;

    /// Opens the data.
    fn open(&self, location: &Location) -> Result<Self::Data> {
        Self::Data::open(location)
    }

    /// Makes a state. `None` if that takes a snapshot: then the driver repeats the request with one.
    fn prepare(
        &self,
        snapshot: Option<Self::Snapshot>,
        shard: &Shard<'_, Self::Data>,
    ) -> Result<Option<Self::State>>;

    /// Approximate memory of a state, for the limit of an executor's cache.
    fn state_bytes(_state: &Self::State) -> u64 {
        0
    }

    /// Computes the result of a shard. `None` if the state is behind, so that it must be rebuilt.
    fn map(&self, state: &Self::State, shard: &Shard<'_, Self::Data>) -> Result<Option<Self::Partial>>;

    /// Like [`map`](Self::map), cut into at most `blocks` blocks, each of which merges with the same block of other
    /// shards. So several executors can merge the partials of many shards.
    fn map_blocks(
        &self,
        state: &Self::State,
        shard: &Shard<'_, Self::Data>,
        _blocks: usize,
    ) -> Result<Option<Vec<Self::Partial>>> {
        Ok(self.map(state, shard)?.map(|partial| vec![partial]))
    }
}

/// What a state belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One shard.
    Shard,
    /// The data: it serves all shards of an executor, and must not depend on one of them.
    Data,
}

/// Data that jobs work on; all processes can open them.
pub trait JobData: Send + Sync + Sized + 'static {
    /// Opens the data.
    fn open(location: &Location) -> Result<Self>;

    /// Identifies the content and its parts. Executors compare it with that of the driver.
    fn content_key(&self) -> Result<String>;

    /// The error for content that differs from the driver's.
    fn mismatch(place: &str) -> Error;
}

/// Some of the data.
pub struct Shard<'a, D> {
    /// All the data.
    pub data: &'a D,
    /// Numbers of the shard's parts, ascending, such as row groups. For jobs that need all the data on every executor,
    /// they only tell shards apart.
    pub parts: &'a [usize],
}

/// The result of a shard, or of several.
pub trait Partial: Serialize + DeserializeOwned + Send + 'static {
    /// Adds the partial of the next shards.
    fn merge(&mut self, other: Self) -> Result<()>;

    /// Merges many partials, in order, as a balanced tree; `None` if there are none.
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

    /// Whether its fields fit together; checked when it was received.
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
