//! Request handling on an executor. It keeps the codes, scores and node assignments of its shares and updates them as
//! the training proceeds. All of this is a cache: missing state is rebuilt from the dataset and the trees so far.

use super::cells::{NodeSums, WireCell, write_blocks};
use super::evaluate::{EvaluationRequest, judge, numbers_of, open_predictions};
use super::score::{predictor, score};
use super::share::{key_of, partitions_of};
use super::task::{Answer, BUILD, ExecutorIdentity, Grown, Snapshot, Task, TaskStep, means_to_bytes, unpack};
use super::trees::{self, dealt, worker_of};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, digest_of};
use planetree_base::wire::malformed;
use planetree_data::source::LabelledData;
use planetree_judge::evaluate::Predictions;
use planetree_model::predict::GroupPredictor;
use planetree_train::bins::{BinOptions, BinnedData, survey};
use planetree_train::boost::{LocalWorker, RowGradients, WorkerState};
use planetree_train::config::{ForestSettings, Parameters};
use planetree_train::objective::objective;
use planetree_train::tree::{NodeSplit, RowStore, WantedNode};
use planetree_train::{BoostWorker, TreeStart};
use planetree_train::{Metrics, Scores};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without a request after which a command is presumed finished. If it was not, its shares are rebuilt.
const IDLE: Duration = Duration::from_secs(600);

/// The cache of this process.
static CACHE: LazyLock<ExecutorCache> = LazyLock::new(ExecutorCache::default);

/// Name of this executor in messages: its host and process id.
pub fn name() -> String {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "unknown host" } else { host.trim() };
        format!("{host}, process {}", std::process::id())
    });
    NAME.clone()
}

/// Starts a thread that periodically drops the shares of idle commands.
pub fn drop_idle_shares() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(IDLE / 10);
            let mut kept = lock(&CACHE.shares);
            kept.shares.retain(|_, slot| slot.held.try_lock().is_err() || lock(&slot.used).elapsed() < IDLE);
        }
    });
}

/// Sets the maximum total size of cached shares in bytes.
pub fn set_limit(bytes: u64) {
    lock(&CACHE.shares).limit = Some(bytes);
}

/// Handles a task for the share that a file group identifies. Returns the share's number, which is that of its first
/// partition, and the answer.
pub fn answer(task: &Task, snapshot: &[u8], group: &FileGroup) -> (u64, Answer) {
    // Until the partitions are known, a hash keeps an unresolved share distinct from the others.
    let number = Mutex::new(xxhash_rust::xxh3::xxh3_64(key_of(group).as_bytes()) | 1 << 63);
    let work = || -> Result<Answer> {
        if task.step == TaskStep::Probe {
            let threads = rayon::current_num_threads() as u64;
            // Distinct numbers keep the answers of all probes, so that every executor is seen.
            *lock(&number) =
                group.iter().next().and_then(|file| file.range.as_ref()).map_or(0, |r| r.start as u64);
            return Ok(Answer::Identity(ExecutorIdentity { name: name(), threads, build: BUILD.to_owned() }));
        }
        if task.build != BUILD {
            return Err(Error::usage(
                format_args!("version mismatch: this executor runs {BUILD}, the driver {}", task.build),
                "run the same build of planetree everywhere",
            ));
        }
        CACHE.answer(task, snapshot, group, &mut lock(&number))
    };
    let answer = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(Error::Interrupted)) => Answer::Stopping,
        Ok(Err(error)) => Answer::failed(&error),
        Err(_) => Answer::failed(&Error::usage("the executor panicked", "check its standard error")),
    };
    (*lock(&number), answer)
}

/// Hash that identifies the content of a dataset.
pub fn fingerprint(source: &LabelledData) -> String {
    digest_of(source.identity().as_bytes()).to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything that an executor keeps between requests.
#[derive(Default)]
struct ExecutorCache {
    shares: Mutex<CacheIndex>,
    /// Open datasets by fingerprint and location.
    sources: Mutex<HashMap<String, Arc<LabelledData>>>,
}

#[derive(Default)]
struct CacheIndex {
    shares: HashMap<String, Arc<CacheSlot>>,
    limit: Option<u64>,
}

/// Cached state of one share and the time of its last use.
struct CacheSlot {
    run: String,
    used: Mutex<Instant>,
    bytes: Mutex<u64>,
    held: Mutex<Option<CachedState>>,
}

/// State kept for a command.
enum CachedState {
    /// A share of a boosted training.
    Share(Box<CachedShare>),
    /// All rows, for growing whole trees of a forest.
    Whole(Arc<(ForestSettings, BinnedData)>),
    /// Open predictions to evaluate.
    Predictions(Arc<Predictions>),
    /// A model to score with.
    Predictor(Arc<GroupPredictor>),
}

impl ExecutorCache {
    fn answer(&self, task: &Task, snapshot: &[u8], group: &FileGroup, number: &mut u64) -> Result<Answer> {
        if let TaskStep::Forget = task.step {
            lock(&self.shares).shares.retain(|_, slot| slot.run != task.run);
            return Ok(Answer::Released);
        }
        if let TaskStep::Judge(question) = &task.step {
            let groups = numbers_of(group);
            *number = groups.first().map_or(0, |first| *first as u64);
            let predictions = self.predictions(task, question)?;
            return Ok(Answer::Evaluated(judge(&predictions, question, &groups)?));
        }
        let source = self.source(task)?;
        if let TaskStep::Trees { trees, workers } = &task.step {
            let worker = worker_of(group);
            *number = worker as u64;
            let Some(whole) = self.whole(task, snapshot, &source)? else { return Ok(Answer::MissingState) };
            let (parameters, data) = &*whole;
            return Ok(Answer::Trees(trees::grow(parameters, data, dealt(trees, worker, *workers))?));
        }
        let partitions = partitions_of(&source, group)?;
        *number = partitions.first().map_or(0, |first| *first as u64);
        match &task.step {
            TaskStep::Probe | TaskStep::Forget | TaskStep::Trees { .. } | TaskStep::Judge(_) => {
                Ok(Answer::MissingState)
            }
            TaskStep::Score { parts } => match self.predictor(task, snapshot, &source, *parts)? {
                Some(predictor) => Ok(Answer::Scored(score(&source, &partitions, &predictor)?)),
                None => Ok(Answer::MissingState),
            },
            TaskStep::Survey { features, rows, parameters } => {
                let options = BinOptions::of(&Parameters::from_toml(parameters)?);
                Ok(Answer::Surveyed(survey(&source, &partitions, features.clone(), *rows, &options)?))
            }
            TaskStep::Gradients { .. } | TaskStep::Level { .. } => {
                let slot = self.slot(task, &key_of(group));
                let mut held = lock(&slot.held);
                if let Some(CachedState::Share(share)) = &mut *held
                    && let Some(answer) = share.step(&task.step)?
                {
                    return Ok(answer);
                }
                if snapshot.is_empty() {
                    return Ok(Answer::MissingState);
                }
                // Free the stale state first, so that two copies never exist at once.
                *held = None;
                let mut share = Box::new(CachedShare::build(&source, &partitions, &unpack(snapshot)?)?);
                *lock(&slot.bytes) = share.bytes;
                let answer = share.step(&task.step)?;
                *held = Some(CachedState::Share(share));
                drop(held);
                self.make_room(&slot);
                Ok(answer.unwrap_or(Answer::MissingState))
            }
        }
    }

    /// All rows of a dataset as codes; `None` if they are not cached and the request carries no snapshot.
    fn whole(
        &self,
        task: &Task,
        snapshot: &[u8],
        source: &LabelledData,
    ) -> Result<Option<Arc<(ForestSettings, BinnedData)>>> {
        let slot = self.slot(task, "whole");
        let mut held = lock(&slot.held);
        if let Some(CachedState::Whole(whole)) = &*held {
            return Ok(Some(whole.clone()));
        }
        if snapshot.is_empty() {
            return Ok(None);
        }
        let snapshot: Snapshot = unpack(snapshot)?;
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let binning = snapshot.binning(&parameters);
        let all: Vec<usize> = (0..source.partitions()).collect();
        let data = BinnedData::of_partitions(source, &all, binning)?;
        *lock(&slot.bytes) = data.bytes()?;
        let forest = parameters.forest().ok_or_else(malformed)?.clone();
        let whole = Arc::new((parameters.with(forest), data));
        *held = Some(CachedState::Whole(whole.clone()));
        drop(held);
        self.make_room(&slot);
        Ok(Some(whole))
    }

    /// Opens the predictions of a task, or returns the cached reader.
    fn predictions(&self, task: &Task, question: &EvaluationRequest) -> Result<Arc<Predictions>> {
        let slot = self.slot(task, "predictions");
        let mut held = lock(&slot.held);
        if let Some(CachedState::Predictions(predictions)) = &*held {
            return Ok(predictions.clone());
        }
        let opened = Arc::new(open_predictions(task, question)?);
        *held = Some(CachedState::Predictions(opened.clone()));
        Ok(opened)
    }

    /// The model of a task; `None` if it is neither cached nor part of the request.
    fn predictor(
        &self,
        task: &Task,
        snapshot: &[u8],
        source: &LabelledData,
        parts: bool,
    ) -> Result<Option<Arc<GroupPredictor>>> {
        let slot = self.slot(task, "model");
        let mut held = lock(&slot.held);
        if let Some(CachedState::Predictor(predictor)) = &*held {
            return Ok(Some(predictor.clone()));
        }
        if snapshot.is_empty() {
            return Ok(None);
        }
        let made = Arc::new(predictor(snapshot, source, parts)?);
        *lock(&slot.bytes) = snapshot.len() as u64;
        *held = Some(CachedState::Predictor(made.clone()));
        drop(held);
        self.make_room(&slot);
        Ok(Some(made))
    }

    /// The dataset of a task; an error if its content differs from the driver's.
    fn source(&self, task: &Task) -> Result<Arc<LabelledData>> {
        let key = format!("{} {}", task.fingerprint, task.data);
        if let Some(source) = lock(&self.sources).get(&key) {
            return Ok(source.clone());
        }
        let access = if task.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
        let source = Arc::new(LabelledData::open(&Location::parse(&task.data, access)?, None)?);
        if fingerprint(&source) != task.fingerprint {
            return Err(Error::place(
                &task.data,
                "the dataset differs from the one on the driver",
                "make sure that all machines of the cluster see the same dataset",
            ));
        }
        let mut sources = lock(&self.sources);
        if sources.len() >= 16 {
            sources.clear(); // only manifests, cheap to reopen
        }
        sources.insert(key, source.clone());
        Ok(source)
    }

    fn slot(&self, task: &Task, key: &str) -> Arc<CacheSlot> {
        let mut kept = lock(&self.shares);
        let slot = kept.shares.entry(format!("{} {key}", task.run)).or_insert_with(|| {
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

    /// Evicts the least recently used shares until the rest fits the limit, except the one in use.
    fn make_room(&self, at_hand: &Arc<CacheSlot>) {
        let mut kept = lock(&self.shares);
        let Some(limit) = kept.limit else { return };
        loop {
            let bytes: u64 = kept.shares.values().map(|slot| *lock(&slot.bytes)).sum();
            let others = kept.shares.iter().filter(|(_, slot)| !Arc::ptr_eq(slot, at_hand));
            let oldest = others.min_by_key(|(_, slot)| *lock(&slot.used)).map(|(key, _)| key.clone());
            match oldest {
                Some(oldest) if bytes > limit => drop(kept.shares.remove(&oldest)),
                _ => return,
            }
        }
    }
}

/// A share and how far it has followed the training.
struct CachedShare {
    share: AnyShare,
    bytes: u64,
    /// Number of trees included in the scores.
    trees: usize,
    /// The round of the current gradients.
    round: Option<u32>,
    /// The tree being grown and the number of its splits applied so far.
    tree: Option<(u64, usize)>,
}

enum AnyShare {
    Plain(LocalWorker<i64>),
    Weighted(LocalWorker<[i64; 2]>),
}

/// Runs an expression on a share of either cell type.
macro_rules! either {
    ($share:expr, $name:ident => $what:expr) => {
        match $share {
            AnyShare::Plain($name) => $what,
            AnyShare::Weighted($name) => $what,
        }
    };
}

impl CachedShare {
    /// Builds a share from the dataset and a snapshot.
    fn build(source: &LabelledData, partitions: &[usize], snapshot: &Snapshot) -> Result<Self> {
        let parameters = Parameters::from_toml(&snapshot.parameters)?;
        let binning = snapshot.binning(&parameters);
        let data = Arc::new(BinnedData::of_partitions(source, partitions, binning)?);
        let parameters = parameters.with(parameters.boost().ok_or_else(malformed)?.clone());
        let objective = objective(&parameters.learner.objective, parameters.seed);
        let state = WorkerState {
            scores: Scores::constant(&data.rows, snapshot.base_score),
            metrics: match objective {
                None => None,
                Some(_) => Some(Metrics::new(&parameters, &data.rows)?),
            },
            gradients: RowGradients::new(objective, &data.rows),
        };
        let bytes = data.bytes()?;
        let mut share = match snapshot.weighted {
            false => AnyShare::Plain(LocalWorker::new(&parameters, data, state)),
            true => AnyShare::Weighted(LocalWorker::new(&parameters, data, state)),
        };
        for (round, tree) in (1..).zip(&snapshot.trees) {
            either!(&mut share, share => share.add_earlier(round, tree))?;
        }
        Ok(CachedShare { share, bytes, trees: snapshot.trees.len(), round: None, tree: None })
    }

    /// Executes a step; `None` if the state that it builds on is missing.
    fn step(&mut self, step: &TaskStep) -> Result<Option<Answer>> {
        match step {
            TaskStep::Gradients { round, trees, last } => {
                if self.trees + 1 == *trees
                    && let Some(last) = last
                {
                    self.add(last)?;
                }
                if self.trees != *trees {
                    return Ok(None);
                }
                let parts = either!(&mut self.share, share => share.gradients_by_partition(*round));
                self.round = Some(*round);
                let metrics = either!(&mut self.share, share => share.metrics())?;
                Ok(Some(Answer::Gradients { parts, metrics: means_to_bytes(&metrics) }))
            }
            TaskStep::Level { trees, start, splits, wanted, groups, blocks } => {
                if self.trees != *trees {
                    return Ok(None);
                }
                self.follow(start, splits)?;
                let bits = start.scale.count_bits;
                let nodes = either!(&mut self.share, share => level(share, wanted, groups, bits, *blocks))?;
                Ok(Some(Answer::Level(nodes)))
            }
            TaskStep::Probe
            | TaskStep::Survey { .. }
            | TaskStep::Trees { .. }
            | TaskStep::Score { .. }
            | TaskStep::Judge(_)
            | TaskStep::Forget => Ok(None),
        }
    }

    /// Adds a finished tree to the scores, using the node assignment of the rows if its splits were applied here.
    fn add(&mut self, last: &Grown) -> Result<()> {
        match self.tree {
            Some((tree, _)) if tree == last.start.tree => {
                self.follow(&last.start, &last.splits)?;
                either!(&mut self.share, share => share.add_grown(&last.tree))?;
            }
            _ => either!(&mut self.share, share => share.add_earlier(last.start.tree as u32, &last.tree))?,
        }
        self.trees += 1;
        self.tree = None;
        self.round = None;
        Ok(())
    }

    /// Applies the splits of a tree that have not been applied here yet.
    fn follow(&mut self, start: &TreeStart, splits: &[NodeSplit]) -> Result<()> {
        if self.round != Some(start.tree as u32) {
            either!(&mut self.share, share => share.gradients_by_partition(start.tree as u32));
            self.round = Some(start.tree as u32);
            self.tree = None;
        }
        let made = match self.tree {
            Some((tree, made)) if tree == start.tree => made,
            _ => {
                either!(&mut self.share, share => share.start_tree(start))?;
                0
            }
        };
        if let Some(rest) = splits.get(made..)
            && !rest.is_empty()
        {
            either!(&mut self.share, share => share.split(rest).map(drop))?;
        }
        self.tree = Some((start.tree, made.max(splits.len())));
        Ok(())
    }
}

/// Encodes the totals and histograms of some nodes as blocks.
fn level<C: WireCell>(
    share: &mut LocalWorker<C>,
    wanted: &[usize],
    groups: &[usize],
    count_bits: u32,
    blocks: usize,
) -> Result<Vec<Vec<u8>>> {
    let nodes: Vec<WantedNode<C>> =
        wanted.iter().map(|node| WantedNode { node: *node, total: share.total(*node) }).collect();
    let histograms = share.histograms(groups, &nodes)?;
    let nodes: Vec<NodeSums<C>> = nodes.into_iter().map(|node| node.total).zip(histograms).collect();
    Ok(write_blocks(&nodes, groups, count_bits, blocks.max(1)))
}

#[cfg(test)]
mod tests;
