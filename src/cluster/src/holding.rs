//! An executor at work: it keeps the codes, scores and nodes of the shares it is asked about, and follows the training.
//! All of that is a cache. What it does not have is built anew from the dataset and the trees so far.

use super::cells::{NodeSums, WireCell, write_blocks};
use super::judge::{JudgeQuestion, judge, numbers_of, open_predictions};
use super::score::{predictor, score};
use super::share::{key_of, partitions_of};
use super::task::{Answer, BUILD, Foundation, Grown, Identity, Step, Task, means_to_bytes, unpack};
use super::trees::{self, dealt, worker_of};
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location, digest_of};
use planetree_data::source::Source;
use planetree_judge::evaluate::Predictions;
use planetree_model::model::Model;
use planetree_model::predict::GroupPredictor;
use planetree_train::bins::{BinOptions, BinnedData, survey};
use planetree_train::boost::{LocalWorker, RowGradients, WorkerState};
use planetree_train::config::Parameters;
use planetree_train::objective::objective;
use planetree_train::tree::{NodeSplit, RowStore, WantedNode};
use planetree_train::{BoostWorker, TreeStart};
use planetree_train::{Metrics, Scores};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A command that asked nothing for so long is over, or its shares are built anew.
const IDLE: Duration = Duration::from_secs(600);

/// What this executor holds.
static HOLDINGS: LazyLock<Holdings> = LazyLock::new(Holdings::default);

/// How this executor is called where it is spoken of: its machine and process.
pub fn name() -> String {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "of a machine without a name" } else { host.trim() };
        format!("{host}, process {}", std::process::id())
    });
    NAME.clone()
}

/// Drops, now and then, the shares of commands that seem to be over.
pub fn drop_idle_shares() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(IDLE / 10);
            let mut kept = lock(&HOLDINGS.shares);
            kept.shares.retain(|_, slot| slot.held.try_lock().is_err() || lock(&slot.used).elapsed() < IDLE);
        }
    });
}

/// Sets how many bytes the shares that are kept may take together.
pub fn set_limit(bytes: u64) {
    lock(&HOLDINGS.shares).limit = Some(bytes);
}

/// Answers a question about the share that a file group names; its number is that of its first partition.
pub fn answer(task: &Task, foundation: &[u8], group: &FileGroup) -> (u64, Answer) {
    // Until its partitions are known, a share that cannot be found is at least told apart from the others.
    let number = Mutex::new(xxhash_rust::xxh3::xxh3_64(key_of(group).as_bytes()) | 1 << 63);
    let work = || -> Result<Answer> {
        if task.step == Step::Probe {
            let threads = rayon::current_num_threads() as u64;
            // Every answer counts: who answers is what is asked.
            *lock(&number) =
                group.iter().next().and_then(|file| file.range.as_ref()).map_or(0, |r| r.start as u64);
            return Ok(Answer::Here(Identity { name: name(), threads, build: BUILD.to_owned() }));
        }
        if task.build != BUILD {
            return Err(Error::usage(
                format_args!("this executor is {BUILD}, whoever asks is {}", task.build),
                "run the same build of planetree everywhere",
            ));
        }
        HOLDINGS.answer(task, foundation, group, &mut lock(&number))
    };
    let answer = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(Error::Interrupted)) => Answer::Leaving,
        Ok(Err(error)) => Answer::failed(&error),
        Err(_) => Answer::failed(&Error::usage("the executor panicked", "look at its standard error")),
    };
    (*lock(&number), answer)
}

/// What tells a dataset's content apart from any other.
pub fn fingerprint(source: &Source) -> String {
    digest_of(source.identity().as_bytes()).to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All shares.
#[derive(Default)]
struct Holdings {
    shares: Mutex<Kept>,
    /// Datasets that are open, by place and content.
    sources: Mutex<HashMap<String, Arc<Source>>>,
}

#[derive(Default)]
struct Kept {
    shares: HashMap<String, Arc<Slot>>,
    limit: Option<u64>,
}

/// Room for a share, and when it was last asked for.
struct Slot {
    run: String,
    used: Mutex<Instant>,
    bytes: Mutex<u64>,
    held: Mutex<Option<Held>>,
}

/// What is held of a training.
enum Held {
    /// A share that follows it.
    Share(Box<Following>),
    /// All rows, for whole trees.
    Whole(Arc<(Parameters, BinnedData)>),
    /// Predictions that are open.
    Predictions(Arc<Predictions>),
    /// A model that scores.
    Predictor(Arc<GroupPredictor<Model>>),
}

impl Holdings {
    fn answer(&self, task: &Task, foundation: &[u8], group: &FileGroup, number: &mut u64) -> Result<Answer> {
        if let Step::Forget = task.step {
            lock(&self.shares).shares.retain(|_, slot| slot.run != task.run);
            return Ok(Answer::Forgotten);
        }
        if let Step::Judge(question) = &task.step {
            let groups = numbers_of(group);
            *number = groups.first().map_or(0, |first| *first as u64);
            let predictions = self.predictions(task, question)?;
            return Ok(Answer::Judged(judge(&predictions, question, &groups)?));
        }
        let source = self.source(task)?;
        if let Step::Trees { trees, workers } = &task.step {
            let worker = worker_of(group);
            *number = worker as u64;
            let Some(whole) = self.whole(task, foundation, &source)? else { return Ok(Answer::Lacking) };
            let (parameters, data) = &*whole;
            return Ok(Answer::Trees(trees::grow(parameters, data, dealt(trees, worker, *workers))?));
        }
        let partitions = partitions_of(&source, group)?;
        *number = partitions.first().map_or(0, |first| *first as u64);
        match &task.step {
            Step::Probe | Step::Forget | Step::Trees { .. } | Step::Judge(_) => Ok(Answer::Lacking),
            Step::Score => match self.predictor(task, foundation, &source)? {
                Some(predictor) => Ok(Answer::Scored(score(&source, &partitions, &predictor)?)),
                None => Ok(Answer::Lacking),
            },
            Step::Survey { features, rows, parameters } => {
                let options = BinOptions::of(&Parameters::from_toml(parameters)?);
                Ok(Answer::Surveyed(survey(&source, &partitions, features.clone(), *rows, &options)?))
            }
            Step::Gradients { .. } | Step::Level { .. } => {
                let slot = self.slot(task, &key_of(group));
                let mut held = lock(&slot.held);
                if let Some(Held::Share(share)) = &mut *held
                    && let Some(answer) = share.step(&task.step)?
                {
                    return Ok(answer);
                }
                if foundation.is_empty() {
                    return Ok(Answer::Lacking);
                }
                // What is held is of no use, and should not be there twice.
                *held = None;
                let mut share = Box::new(Following::build(&source, &partitions, &unpack(foundation)?)?);
                *lock(&slot.bytes) = share.bytes;
                let answer = share.step(&task.step)?;
                *held = Some(Held::Share(share));
                drop(held);
                self.make_room(&slot);
                Ok(answer.unwrap_or(Answer::Lacking))
            }
        }
    }

    /// All rows of a dataset, in codes; `None` if they are not here and there is nothing to code them by.
    fn whole(
        &self,
        task: &Task,
        foundation: &[u8],
        source: &Source,
    ) -> Result<Option<Arc<(Parameters, BinnedData)>>> {
        let slot = self.slot(task, "whole");
        let mut held = lock(&slot.held);
        if let Some(Held::Whole(whole)) = &*held {
            return Ok(Some(whole.clone()));
        }
        if foundation.is_empty() {
            return Ok(None);
        }
        let foundation: Foundation = unpack(foundation)?;
        let parameters = Parameters::from_toml(&foundation.parameters)?;
        let binning = foundation.binning(&parameters);
        let all: Vec<usize> = (0..source.partitions()).collect();
        let data = BinnedData::of_partitions(source, &all, binning)?;
        *lock(&slot.bytes) = data.bytes()?;
        let whole = Arc::new((parameters, data));
        *held = Some(Held::Whole(whole.clone()));
        drop(held);
        self.make_room(&slot);
        Ok(Some(whole))
    }

    /// The predictions of a task.
    fn predictions(&self, task: &Task, question: &JudgeQuestion) -> Result<Arc<Predictions>> {
        let slot = self.slot(task, "predictions");
        let mut held = lock(&slot.held);
        if let Some(Held::Predictions(predictions)) = &*held {
            return Ok(predictions.clone());
        }
        let opened = Arc::new(open_predictions(task, question)?);
        *held = Some(Held::Predictions(opened.clone()));
        Ok(opened)
    }

    /// The model of a task; `None` if it is not here and did not come along.
    fn predictor(
        &self,
        task: &Task,
        foundation: &[u8],
        source: &Source,
    ) -> Result<Option<Arc<GroupPredictor<Model>>>> {
        let slot = self.slot(task, "model");
        let mut held = lock(&slot.held);
        if let Some(Held::Predictor(predictor)) = &*held {
            return Ok(Some(predictor.clone()));
        }
        if foundation.is_empty() {
            return Ok(None);
        }
        let made = Arc::new(predictor(foundation, source)?);
        *lock(&slot.bytes) = foundation.len() as u64;
        *held = Some(Held::Predictor(made.clone()));
        drop(held);
        self.make_room(&slot);
        Ok(Some(made))
    }

    /// The dataset of a task, if it is the one that is meant.
    fn source(&self, task: &Task) -> Result<Arc<Source>> {
        let key = format!("{} {}", task.fingerprint, task.data);
        if let Some(source) = lock(&self.sources).get(&key) {
            return Ok(source.clone());
        }
        let access = if task.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
        let source = Arc::new(Source::open(&Location::parse(&task.data, access)?, None)?);
        if fingerprint(&source) != task.fingerprint {
            return Err(Error::place(
                &task.data,
                "the dataset is another one here than where the command was started",
                "see that all machines of the cluster see the same dataset",
            ));
        }
        let mut sources = lock(&self.sources);
        if sources.len() >= 16 {
            sources.clear(); // they are only manifests
        }
        sources.insert(key, source.clone());
        Ok(source)
    }

    fn slot(&self, task: &Task, key: &str) -> Arc<Slot> {
        let mut kept = lock(&self.shares);
        let slot = kept.shares.entry(format!("{} {key}", task.run)).or_insert_with(|| {
            Arc::new(Slot {
                run: task.run.clone(),
                used: Mutex::new(Instant::now()),
                bytes: Mutex::default(),
                held: Mutex::default(),
            })
        });
        *lock(&slot.used) = Instant::now();
        slot.clone()
    }

    /// Drops shares that nobody asked for in the longest time until the rest fits; never the one at hand.
    fn make_room(&self, at_hand: &Arc<Slot>) {
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

/// A share that follows a training.
struct Following {
    share: AnyShare,
    bytes: u64,
    /// Trees that its scores are made of.
    trees: usize,
    /// The round whose gradients it has.
    round: Option<u32>,
    /// The tree it follows, and how many of its splits were made.
    tree: Option<(u64, usize)>,
}

enum AnyShare {
    Plain(LocalWorker<i64>),
    Weighted(LocalWorker<[i64; 2]>),
}

/// Does something with a share of either kind.
macro_rules! either {
    ($share:expr, $name:ident => $what:expr) => {
        match $share {
            AnyShare::Plain($name) => $what,
            AnyShare::Weighted($name) => $what,
        }
    };
}

impl Following {
    /// Builds a share from the dataset and the trees so far.
    fn build(source: &Source, partitions: &[usize], foundation: &Foundation) -> Result<Self> {
        let parameters = Parameters::from_toml(&foundation.parameters)?;
        let binning = foundation.binning(&parameters);
        let data = Arc::new(BinnedData::of_partitions(source, partitions, binning)?);
        let objective = objective(&parameters);
        let state = WorkerState {
            scores: Scores::constant(&data.rows, foundation.base_score),
            metrics: match objective {
                None => None,
                Some(_) => Some(Metrics::new(&parameters, &data.rows)?),
            },
            gradients: RowGradients::new(objective, &data.rows),
        };
        let bytes = data.bytes()?;
        let mut share = match foundation.weighted {
            false => AnyShare::Plain(LocalWorker::new(&parameters, data, state)),
            true => AnyShare::Weighted(LocalWorker::new(&parameters, data, state)),
        };
        for (round, tree) in (1..).zip(&foundation.trees) {
            either!(&mut share, share => share.add_earlier(round, tree))?;
        }
        Ok(Following { share, bytes, trees: foundation.trees.len(), round: None, tree: None })
    }

    /// Takes a step; `None` if what it builds on is not here.
    fn step(&mut self, step: &Step) -> Result<Option<Answer>> {
        match step {
            Step::Gradients { round, trees, last } => {
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
            Step::Level { trees, start, splits, wanted, groups, blocks } => {
                if self.trees != *trees {
                    return Ok(None);
                }
                self.follow(start, splits)?;
                let bits = start.scale.count_bits;
                let nodes = either!(&mut self.share, share => level(share, wanted, groups, bits, *blocks))?;
                Ok(Some(Answer::Level(nodes)))
            }
            Step::Probe
            | Step::Survey { .. }
            | Step::Trees { .. }
            | Step::Score
            | Step::Judge(_)
            | Step::Forget => Ok(None),
        }
    }

    /// Adds a tree that was grown, along the rows that it sorted if they were followed.
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

    /// Makes the splits of a tree that were not made here yet.
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

/// Blocks of the totals and histograms of nodes.
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
