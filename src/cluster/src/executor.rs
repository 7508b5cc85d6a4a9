//! Executes tasks on an executor. Between the requests of a command, the executor caches the open data and the states
//! of jobs. A state that is missing or outdated is rebuilt from the data, or from a snapshot that the driver sends.

use super::registry::RegisteredJob;
use super::share::{key_of, parts_of};
use super::task::{BUILD, ExecutorIdentity, Reply, Step, Task, unpack};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::compact::{self, Bytes};
use planetree_base::error::{Error, Result};
use planetree_base::job::{Job, JobData, Scope, Shard};
use planetree_base::storage::{Access, Location};
use planetree_base::wire::malformed;
use std::any::{Any, type_name};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without a request after which a command is presumed finished and its states are dropped. If the command does
/// continue, they are rebuilt.
const IDLE: Duration = Duration::from_secs(600);

/// The cache of this executor process.
static CACHE: LazyLock<ExecutorCache> = LazyLock::new(ExecutorCache::default);

/// Returns the name of this executor in messages, which consists of its host and process id.
pub(crate) fn name() -> String {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "unknown host" } else { host.trim() };
        format!("{host}, process {}", std::process::id())
    });
    NAME.clone()
}

/// Starts a thread that periodically drops the states of idle commands.
pub(crate) fn drop_idle_shares() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(IDLE / 10);
            let mut index = lock(&CACHE.index);
            index.slots.retain(|_, slot| slot.is_in_use() || lock(&slot.used).elapsed() < IDLE);
        }
    });
}

/// Sets the maximum total size of cached states in bytes.
pub(crate) fn set_limit(bytes: u64) {
    lock(&CACHE.index).limit = Some(bytes);
}

/// Request to execute a task on one share (a range of row groups), decoded from the plan that the scheduler sent.
pub(crate) struct ShardRequest<'a> {
    /// The task to execute.
    pub task: &'a Task,
    /// Maximum number of blocks in the reply, which are pieces of the result that can be merged independently.
    pub blocks: usize,
    /// The index of the part that the state belongs to.
    pub member: usize,
    /// The serialised job.
    pub job: &'a [u8],
    /// The serialised snapshot; empty if none was sent.
    pub snapshot: &'a [u8],
    /// Key that identifies the share.
    pub key: &'a str,
    /// Indices of the row groups of the share.
    pub parts: &'a [usize],
}

/// Executes a task for the share that a file group identifies. Returns the number of the share, which is the index of
/// its first row group, and the blocks of the reply.
pub(crate) fn answer(task: &Task, job: &[u8], snapshot: &[u8], group: &FileGroup) -> (u64, Vec<Reply>) {
    let (key, parts) = (key_of(group), parts_of(group));
    let work = || -> Result<Vec<Reply>> {
        match &task.step {
            Step::Probe => {
                let threads = rayon::current_num_threads() as u64;
                let identity = ExecutorIdentity { name: name(), threads, build: BUILD.to_owned() };
                Ok(vec![Reply::Identity(identity)])
            }
            _ if task.build != BUILD => Err(Error::usage(
                format_args!("version mismatch: this executor runs {BUILD}, the driver {}", task.build),
                "run the same build of planetree everywhere",
            )),
            Step::Run { job: name, blocks, member } => {
                let (blocks, member) = (*blocks, *member);
                let request = ShardRequest { task, blocks, member, job, snapshot, key: &key, parts: &parts };
                (RegisteredJob::find(name)?.run)(&CACHE, &request)
            }
            Step::Forget => {
                lock(&CACHE.index).slots.retain(|_, slot| slot.run != task.run);
                Ok(vec![Reply::Released])
            }
        }
    };
    let replies = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(replies)) => replies,
        Ok(Err(Error::Interrupted)) => vec![Reply::Stopping],
        Ok(Err(error)) => vec![Reply::failed(&error)],
        Err(_) => vec![Reply::failed(&Error::usage("the executor panicked", "check its standard error"))],
    };
    (parts.first().map_or(0, |first| *first as u64), replies)
}

/// Runs a job on a share and returns the blocks of its result as replies.
pub(crate) fn run<J: Job>(cache: &ExecutorCache, request: &ShardRequest<'_>) -> Result<Vec<Reply>> {
    let job: J = unpack(request.job)?;
    let data = cache.data(request.task, &job)?;
    let shard = Shard { data: &*data, parts: request.parts };
    let Some(partials) = cache.map(&job, request, &shard)? else { return Ok(vec![Reply::MissingState]) };
    if partials.is_empty() || partials.len() > request.blocks.max(1) {
        return Err(malformed());
    }
    let block = |partial: &J::Partial| Reply::Block {
        of: partials.len() as u64,
        partial: Bytes(compact::to_bytes(partial)),
    };
    Ok(partials.iter().map(block).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Open data and states that an executor keeps between requests.
#[derive(Default)]
pub(crate) struct ExecutorCache {
    index: Mutex<CacheIndex>,
}

#[derive(Default)]
struct CacheIndex {
    slots: HashMap<String, Arc<CacheSlot>>,
    limit: Option<u64>,
}

/// The open data or one state of a command, with the time of its last use.
struct CacheSlot {
    run: String,
    used: Mutex<Instant>,
    bytes: Mutex<u64>,
    held: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl CacheSlot {
    /// Returns the content of a slot, or `None` if it is empty.
    fn get<T: Send + Sync + 'static>(held: &Option<Arc<dyn Any + Send + Sync>>) -> Option<Arc<T>> {
        held.clone()?.downcast().ok()
    }

    fn is_in_use(&self) -> bool {
        match self.held.try_lock() {
            Ok(held) => held.as_ref().is_some_and(|held| Arc::strong_count(held) > 1),
            Err(_) => true,
        }
    }
}

impl ExecutorCache {
    /// Returns the task's dataset, and opens it unless it is cached. Fails if its content differs from the driver's copy.
    fn data<J: Job>(&self, task: &Task, job: &J) -> Result<Arc<J::Data>> {
        let slot = self.slot(task, type_name::<J::Data>());
        let mut held = lock(&slot.held);
        if let Some(data) = CacheSlot::get(&held) {
            return Ok(data);
        }
        let access = if task.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
        let places = std::iter::once(&task.data).chain(&task.more_data);
        let places = places.map(|place| Location::parse(place, access)).collect::<Result<Vec<_>>>()?;
        let data = Arc::new(job.open(&places)?);
        if data.content_key()? != task.fingerprint {
            return Err(J::Data::mismatch(&task.data));
        }
        *held = Some(data.clone());
        Ok(data)
    }

    /// Runs a job with the cached state, or with a new one if the cached state is missing or outdated. Returns `None`
    /// if the new state needs a snapshot and none was sent.
    fn map<J: Job>(
        &self,
        job: &J,
        request: &ShardRequest<'_>,
        shard: &Shard<'_, J::Data>,
    ) -> Result<Option<Vec<J::Partial>>> {
        if size_of::<J::State>() == 0 {
            let Some(state) = job.prepare(None, shard)? else { return Ok(None) };
            return job.map_blocks(&state, shard, request.blocks);
        }
        let scope = match J::SCOPE {
            Scope::Shard => request.key,
            Scope::Data => "all shares",
        };
        let slot =
            self.slot(request.task, &format!("{} {} {scope}", type_name::<J::State>(), request.member));
        let tried: Option<Arc<J::State>> = CacheSlot::get(&lock(&slot.held));
        if let Some(state) = &tried
            && let Some(partials) = job.map_blocks(state, shard, request.blocks)?
        {
            return Ok(Some(partials));
        }
        let mut held = lock(&slot.held);
        let state = match CacheSlot::get::<J::State>(&held) {
            // Another request has replaced the outdated state in the meantime.
            Some(state) if tried.as_ref().is_none_or(|tried| !Arc::ptr_eq(tried, &state)) => state,
            stale => {
                // Free the outdated state first, so that the two never occupy memory at the same time.
                drop((stale, tried, held.take()));
                let snapshot = match request.snapshot {
                    [] => None,
                    bytes => Some(unpack(bytes)?),
                };
                let Some(state) = job.prepare(snapshot, shard)? else { return Ok(None) };
                let state = Arc::new(state);
                *lock(&slot.bytes) = J::state_bytes(&state);
                *held = Some(state.clone());
                state
            }
        };
        drop(held);
        self.make_room(&slot);
        job.map_blocks(&state, shard, request.blocks)
    }

    fn slot(&self, task: &Task, key: &str) -> Arc<CacheSlot> {
        let mut index = lock(&self.index);
        let slot = index.slots.entry(format!("{} {key}", task.run)).or_insert_with(|| {
            Arc::new(CacheSlot {
                run: task.run.clone(),
                used: Mutex::new(Instant::now()),
                bytes: Mutex::default(),
                held: Mutex::default(),
            })
        });
        *lock(&slot.used) = Instant::now();
        slot.clone()
    }

    /// Evicts the least recently used states until the rest fit within the limit. The state in `at_hand` is kept.
    fn make_room(&self, at_hand: &Arc<CacheSlot>) {
        let mut index = lock(&self.index);
        let Some(limit) = index.limit else { return };
        loop {
            let bytes: u64 = index.slots.values().map(|slot| *lock(&slot.bytes)).sum();
            let others = index.slots.iter().filter(|(_, slot)| !Arc::ptr_eq(slot, at_hand));
            let others = others.filter(|(_, slot)| *lock(&slot.bytes) > 0);
            let oldest = others.min_by_key(|(_, slot)| *lock(&slot.used)).map(|(key, _)| key.clone());
            match oldest {
                Some(oldest) if bytes > limit => drop(index.slots.remove(&oldest)),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
