//! The loop of rounds that every training runs in: log, early stopping, checkpoints, interruption and progress. A
//! [`Learner`] does the work of a round.

use super::checkpoint::Checkpoints;
use super::log::{BestRound, LogEntry, LogValue};
use super::open::find_checkpoint;
use super::request::TrainRequest;
use super::strength::TreeStrength;
use super::{ModelSize, Observer, Outcome, PhaseSeconds};
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_base::storage::{Location, interrupt};
use planetree_model::model::{Model, ModelWriter, Tree, TreeEnsemble};
use std::time::Instant;

/// Trains a model round by round, inside [`Training::run`].
pub trait Learner {
    /// Adds the trees of a checkpoint, those of rounds 1 and up, to the scores of all rows.
    fn replay(&mut self, trees: &[Tree], meter: &dyn Meter) -> Result<()>;

    /// Called once, before the first round of this run.
    fn start(&mut self, round: u32) -> Result<()>;

    /// The tree of a round, added to the scores of all rows; `None` if no split was possible, nor will be in later rounds.
    fn round(&mut self, round: u32) -> Result<Option<Tree>>;

    /// The values of the log after a round.
    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>>;

    /// Whether the trees of a finished round are never read again, so that they can be streamed to the model file.
    fn can_stream(&self) -> bool;

    /// What else was computed, if the model keeps the trees up to round `last`.
    fn finish(&mut self, last: u32) -> LearnerOutputs;

    /// The error for a training without any split.
    fn no_split(&self) -> Error;
}

/// The results of a training besides model and log.
#[derive(Default)]
pub struct LearnerOutputs {
    /// See [`Outcome::out_of_bag`].
    pub out_of_bag: Option<Vec<f64>>,
    /// See [`Outcome::strength`].
    pub strength: Option<Vec<TreeStrength>>,
}

/// A training in progress.
pub struct Training<'a> {
    request: &'a TrainRequest,
    /// The current model.
    model: Model,
    /// Number of trees that come from the start model.
    start_trees: usize,
    log: Vec<LogEntry>,
    /// The file that trees are streamed to; `None` keeps them in the model.
    file: Option<ModelWriter>,
    /// Size of the model without the start model.
    size: ModelSize,
    /// Time spent so far.
    pub seconds: PhaseSeconds,
    begun: Instant,
    /// Seconds spent in earlier runs of this training.
    before: f64,
    /// Seconds spent writing trees to the model file.
    writing: f64,
}

/// Why training stopped.
enum StopReason {
    Complete,
    Early,
    NoSplit,
}

/// The trees of a model in training, which has no other part.
pub fn ensemble_of(model: &Model) -> &TreeEnsemble {
    model.only_trees().expect("a model in training has one part of trees")
}

fn ensemble_of_mut(model: &mut Model) -> &mut TreeEnsemble {
    model.only_trees_mut().expect("a model in training has one part of trees")
}

impl<'a> Training<'a> {
    /// A training at its start, or where its checkpoint left off. `model` is the model before the first round.
    pub fn open(
        request: &'a TrainRequest,
        model: Model,
        seconds: PhaseSeconds,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let mut training = Training {
            request,
            start_trees: ensemble_of(&model).trees.len(),
            model,
            log: Vec::new(),
            file: None,
            size: ModelSize::default(),
            seconds,
            begun: Instant::now(),
            before: 0.0,
            writing: 0.0,
        };
        if let Some(resumed) = find_checkpoint(request, &training.model, observer)? {
            let configuration = std::mem::take(&mut training.model.configuration);
            training.start_trees = resumed.start_trees;
            training.model = Model { configuration, ..resumed.model };
            training.before = resumed.log.last().map_or(0.0, |entry| entry.seconds);
            training.log = resumed.log;
        }
        Ok(training)
    }

    /// The current model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Runs all remaining rounds.
    pub fn run(mut self, learner: &mut dyn Learner, observer: &mut dyn Observer) -> Result<Outcome> {
        self.file = self.model_file(learner)?;
        self.replay(learner, observer)?;
        observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // from now on there is something to save
        }
        self.begun = Instant::now();
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let stop = self.run_rounds(learner, &mut checkpoints, observer);
        if let (Err(Error::Interrupted), Some(checkpoints)) = (&stop, &mut checkpoints) {
            self.write_checkpoint(checkpoints)?;
            return Err(checkpoints.stopped(self.model.rounds));
        }
        self.finish(stop?, learner, observer)
    }

    fn run_rounds(
        &mut self,
        learner: &mut dyn Learner,
        checkpoints: &mut Option<Checkpoints>,
        observer: &mut dyn Observer,
    ) -> Result<StopReason> {
        learner.start(self.model.rounds + 1)?;
        if self.start_trees > 0 && self.model.rounds == 0 && self.log.is_empty() {
            // The start model alone is a round like any other: later rounds may be worse.
            self.enter(0, learner.evaluate(0)?, observer);
        }
        loop {
            if self.is_due_to_stop() {
                return Ok(StopReason::Early);
            }
            if self.model.rounds >= self.request.parameters.num_trees {
                return Ok(StopReason::Complete);
            }
            interrupt::check()?;
            let round = self.model.rounds + 1;
            let Some(tree) = learner.round(round)? else { return Ok(StopReason::NoSplit) };
            // A cluster may be interrupted here: the round counts only when all of it is known.
            let values = learner.evaluate(round)?;
            self.add(tree)?;
            self.enter(round, values, observer);
            if let Some(checkpoints) = checkpoints
                && checkpoints.is_due(round)
            {
                self.write_checkpoint(checkpoints)?;
            }
        }
    }

    /// Adds the tree of the next round.
    fn add(&mut self, tree: Tree) -> Result<()> {
        self.model.rounds += 1;
        self.size.add(&tree);
        match &mut self.file {
            None => ensemble_of_mut(&mut self.model).trees.push(tree),
            Some(file) => {
                let begun = Instant::now();
                file.write_tree(&tree)?;
                self.writing += begun.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }

    /// Adds the values of a round to the log.
    fn enter(&mut self, round: u32, values: Vec<LogValue>, observer: &mut dyn Observer) {
        let seconds = self.before + self.begun.elapsed().as_secs_f64();
        let first = self.log.len();
        self.log.extend(values.into_iter().map(|LogValue { split, metric, value }| LogEntry {
            round,
            split,
            metric: metric.to_string(),
            value,
            seconds,
        }));
        observer.round(round, self.request.parameters.num_trees, &self.log[first..]);
    }

    fn replay(&mut self, learner: &mut dyn Learner, observer: &mut dyn Observer) -> Result<()> {
        let trees = &ensemble_of(&self.model).trees[self.start_trees..];
        if trees.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let meter = observer.begin("replaying trees", trees.len() as u64, "trees");
        learner.replay(trees, &*meter)?;
        trees.iter().for_each(|tree| self.size.add(tree));
        self.seconds.load += begun.elapsed().as_secs_f64();
        Ok(())
    }

    fn write_checkpoint(&self, checkpoints: &mut Checkpoints) -> Result<()> {
        checkpoints.write(&self.model, self.start_trees, &self.log)
    }

    /// The file to stream trees to, if none is needed again by a checkpoint or early stopping. Deep trees are large, and
    /// then need not be kept in memory.
    fn model_file(&self, learner: &dyn Learner) -> Result<Option<ModelWriter>> {
        match &self.request.stream_to {
            Some(location @ Location::Local(_))
                if learner.can_stream()
                    && self.request.checkpoint.is_none()
                    && self.request.parameters.early_stopping_rounds.is_none() =>
            {
                ModelWriter::create(location, &self.model.features).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn is_due_to_stop(&self) -> bool {
        let Some(patience) = self.request.parameters.early_stopping_rounds else { return false };
        self.best().is_some_and(|best| self.model.rounds >= best.round + patience)
    }

    /// The best round by the first metric of the first validation set, if early stopping is on.
    fn best(&self) -> Option<BestRound> {
        self.request.parameters.early_stopping_rounds?;
        let set = self.request.validation.first()?;
        BestRound::of(&self.log, &set.name, self.request.parameters.metrics.first()?)
    }

    /// Keeps the trees up to the best round, if there is one.
    fn finish(
        mut self,
        stop: StopReason,
        learner: &mut dyn Learner,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        if self.size.leaves == self.size.trees {
            return Err(learner.no_split());
        }
        let (best, rounds) = (self.best(), self.model.rounds);
        if matches!(stop, StopReason::NoSplit) {
            observer.note(&format!("stopped after {rounds} trees: no further split has a gain"));
        }
        if let Some(best) = best.filter(|best| best.round < rounds) {
            let prefix = if matches!(stop, StopReason::Early) { "stopped early: " } else { "" };
            observer.note(&match best.round {
                0 => format!("{prefix}none of {rounds} rounds is better than the start model"),
                round => format!("{prefix}the best round is {round} of {rounds}"),
            });
        }
        let last = best.map_or(rounds, |best| best.round);
        if best.is_some() {
            ensemble_of_mut(&mut self.model).trees.truncate(self.start_trees + last as usize);
        }
        self.seconds.train = self.begun.elapsed().as_secs_f64() - self.writing;
        let LearnerOutputs { out_of_bag, strength } = learner.finish(last);
        let written = match self.file.take() {
            None => None,
            Some(file) => {
                file.finish(&self.model, &[])?;
                Some(self.size)
            }
        };
        let Training { model, log, seconds, .. } = self;
        Ok(Outcome { model, written, log, best, out_of_bag, strength, seconds })
    }
}
