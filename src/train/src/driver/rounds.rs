//! The training loop. It runs the rounds and handles the log, early stopping, checkpoints, interruption and progress. A
//! [`Learner`] does the work of a round.

use super::best_models::keep_rounds;
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

/// Trains a model round by round. [`Training::run`] calls the methods of this trait.
pub trait Learner {
    /// Adds the trees of a checkpoint, starting with round 1, to the scores of all rows.
    fn replay(&mut self, trees: &[Tree], meter: &dyn Meter) -> Result<()>;

    /// Called once, before the first round of this run.
    fn start(&mut self, round: u32) -> Result<()>;

    /// Grows the tree of a round and adds it to the scores of all rows. Returns `None` if no split was possible and
    /// none will be possible in later rounds.
    fn round(&mut self, round: u32) -> Result<Option<Tree>>;

    /// Returns the values to log after a round.
    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>>;

    /// Returns whether the trees of a finished round are never read again, so that they can be streamed to the model
    /// file.
    fn can_stream(&self) -> bool;

    /// Returns the results besides the model and the log, given that the model keeps the trees up to round `last`.
    fn finish(&mut self, last: u32) -> LearnerOutputs;

    /// Returns the error for a training run that could not split even one node.
    fn no_split(&self) -> Error;
}

/// The results of a training run besides the model and the log.
#[derive(Default)]
pub struct LearnerOutputs {
    /// Out-of-bag scores; see [`Outcome::out_of_bag`].
    pub out_of_bag: Option<Vec<f64>>,
    /// Ranking quality of each tree; see [`Outcome::strength`].
    pub strength: Option<Vec<TreeStrength>>,
}

/// A training run in progress.
pub struct Training<'a> {
    request: &'a TrainRequest,
    /// The model with all trees so far, unless they are streamed to a file.
    model: Model,
    /// Number of trees that come from the start model. They precede the trees of this training run.
    start_trees: usize,
    log: Vec<LogEntry>,
    /// The file that trees are streamed to. `None` means that they are kept in the model.
    file: Option<ModelWriter>,
    /// Size of the trees grown so far, without the start model.
    size: ModelSize,
    /// Time spent per phase so far.
    pub seconds: PhaseSeconds,
    begun: Instant,
    /// Seconds that training took before it was interrupted and resumed.
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

/// Returns the trees that are being trained, which are in the last part (term of the model's sum).
pub fn ensemble_of(model: &Model) -> &TreeEnsemble {
    model
        .parts
        .last()
        .and_then(|part| part.family.trees())
        .expect("a model in training ends with a part of trees")
}

/// Like [`ensemble_of`], to change the trees.
pub fn ensemble_of_mut(model: &mut Model) -> &mut TreeEnsemble {
    let last = model.parts.last_mut().and_then(|part| part.family.trees_mut());
    last.expect("a model in training ends with a part of trees")
}

impl<'a> Training<'a> {
    /// Creates a training run that begins with its first round or continues from its checkpoint. `model` is the model
    /// before the first round.
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

    /// Returns the current model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Runs all remaining rounds.
    pub fn run(mut self, learner: &mut dyn Learner, observer: &mut dyn Observer) -> Result<Outcome> {
        self.file = self.model_file(learner)?;
        self.replay(learner, observer)?;
        observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // from now on, an interrupt writes a checkpoint
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
        if self.request.start.is_some() && self.model.rounds == 0 && self.log.is_empty() {
            // The start model alone is logged as round 0, because it may be better than all later rounds.
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
            // On a cluster, the evaluation can be interrupted. The tree is added only afterwards, so that a checkpoint
            // never contains half a round.
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

    /// Adds the tree of the next round to the model or to the model file.
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

    /// Adds the values of a round to the log and passes them to the observer.
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

    /// Returns the file to stream trees to, or `None` if a checkpoint or early stopping needs them again. Streaming
    /// saves memory, because deep trees are large.
    fn model_file(&self, learner: &dyn Learner) -> Result<Option<ModelWriter>> {
        match &self.request.stream_to {
            Some(location @ Location::Local(_))
                if learner.can_stream()
                    && self.request.checkpoint.is_none()
                    && self.request.best_for.is_empty()
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

    /// Returns the best round according to the first metric on the first validation set. `None` if early stopping is
    /// off.
    fn best(&self) -> Option<BestRound> {
        self.request.parameters.early_stopping_rounds?;
        let set = self.request.validation.first()?;
        BestRound::of(&self.log, &set.name, self.request.parameters.metrics.first()?)
    }

    /// Creates the outcome. With early stopping, only the trees up to the best round are kept.
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
        let best_models = self.request.best_models(&self.model, self.start_trees, &self.log)?;
        if best.is_some() {
            keep_rounds(&mut self.model, self.start_trees, last);
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
        Ok(Outcome { model, written, log, best, out_of_bag, strength, best_models, seconds })
    }
}
