//! Gradient boosting: each round fits a tree to the gradients of all rows and adds it to the scores.

mod gradients;
mod local_worker;
mod prepare;
mod spin_guard;
mod whole_scores;

pub use {gradients::RowGradients, local_worker::LocalWorker, local_worker::WorkerState};

use crate::config::{Candidates, ObjectiveName, Parameters};
use crate::driver::{
    BackendCell, BestRound, BoostWorker, Checkpoints, GradientSummary, LogEntry, Observer, Outcome,
    TrainRequest, TreeStart, no_split,
};
use crate::tree::{
    CarriedRoot, Cell, CodedTree, Cover, ExactSplits, FeatureChoice, GrowContext, KeptHistograms, Order,
    SplitFinder, SplitRules, StaticBins, StreamingRules, StreamingSplits, TreeLimits, carrying_pays, grow,
};
use planetree_base::error::{Error, Result};
use planetree_base::progress::unwatched;
use planetree_base::storage::interrupt;
use planetree_metric::{Mean, Metric};
use prepare::PreparedBoosting;
use spin_guard::SpinGuard;
use std::time::Instant;

/// Trains a boosted model.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    let prepared = prepare::prepare(request, observer)?;
    match prepared.traits.weighted {
        true => BoostTraining::<[i64; 2]>::new(request, prepared, observer).run(),
        false => BoostTraining::<i64>::new(request, prepared, observer).run(),
    }
}

/// A training in progress.
struct BoostTraining<'a, C: Cell> {
    request: &'a TrainRequest,
    observer: &'a mut dyn Observer,
    prepared: PreparedBoosting,
    worker: Box<dyn BoostWorker<C>>,
    /// The root histogram of the next tree, if it follows from the last tree.
    root: Option<CarriedRoot<C>>,
    begun: Instant,
    /// Seconds spent in earlier runs of this training.
    before: f64,
}

/// Why training stopped.
enum StopReason {
    Complete,
    Early(BestRound),
    NoSplit,
}

impl<'a, C: BackendCell> BoostTraining<'a, C> {
    fn new(
        request: &'a TrainRequest,
        mut prepared: PreparedBoosting,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let worker = prepared.worker(request);
        let before = prepared.log.last().map_or(0.0, |entry| entry.seconds);
        BoostTraining { request, observer, prepared, worker, root: None, begun: Instant::now(), before }
    }

    fn run(mut self) -> Result<Outcome> {
        let parameters = &self.request.parameters;
        self.replay()?;
        self.observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // from now on there is something to save
        }
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let mut gradients = self.worker.update_gradients(self.prepared.model.rounds + 1)?;
        if !gradients.are_finite() {
            return Err(prepare::invalid_start(self.request));
        }
        let spin_guard = self.request.backend.is_none().then(SpinGuard::new); // otherwise another process holds the rows
        let mut stop = self.stopped_early().map_or(StopReason::Complete, StopReason::Early);
        while self.prepared.model.rounds < parameters.num_trees && matches!(stop, StopReason::Complete) {
            let round = self.prepared.model.rounds + 1;
            let trees = self.prepared.model.trees.len();
            spin_guard.iter().for_each(SpinGuard::wake);
            let done = interrupt::check().and_then(|()| self.do_round(round, &mut gradients));
            if let (Err(Error::Interrupted), Some(checkpoints)) = (&done, &mut checkpoints) {
                // A cluster may be interrupted within a round, whose tree is then not in the log.
                self.prepared.model.trees.truncate(trees);
                checkpoints.write(&self.prepared.model, self.prepared.start_trees, &self.prepared.log)?;
                return Err(checkpoints.stopped(self.prepared.model.rounds));
            }
            if !done? {
                stop = StopReason::NoSplit;
                break;
            }
            self.prepared.model.rounds = round;
            if let Some(best) = self.stopped_early() {
                stop = StopReason::Early(best);
            }
            if let Some(checkpoints) = &mut checkpoints
                && checkpoints.is_due(round)
            {
                checkpoints.write(&self.prepared.model, self.prepared.start_trees, &self.prepared.log)?;
            }
        }
        self.finish(stop)
    }

    /// Runs one round; false if no split was possible.
    fn do_round(&mut self, round: u32, gradients: &mut GradientSummary) -> Result<bool> {
        if !self.grow_tree(round, gradients)? {
            return Ok(false);
        }
        *gradients = self.worker.update_gradients(round + 1)?;
        if !gradients.are_finite() {
            return Err(prepare::diverged(round));
        }
        self.take_metrics(round, gradients)?;
        Ok(true)
    }

    /// Grows a tree and adds it to all scores; false if no split was possible.
    fn grow_tree(&mut self, round: u32, gradients: &GradientSummary) -> Result<bool> {
        let parameters = &self.request.parameters;
        let PreparedBoosting { data, traits, validation, model, .. } = &mut self.prepared;
        let tree = u64::from(round);
        let scale = gradients.scale(data.row_count());
        let choice = FeatureChoice::draw(parameters, &data.binning.layout, tree);
        let groups = choice.groups(&data.binning.layout);
        let all_groups = groups.len() == data.binning.layout.groups.len();
        self.worker.start_tree(&TreeStart { tree, scale, groups, limit: None })?;
        let rules = SplitRules {
            min_data: parameters.min_data_in_leaf as i64,
            min_weight: parameters.min_sum_hessian,
            min_gain: parameters.min_gain,
            lambda: parameters.lambda_l2,
            scale,
        };
        let context =
            GrowContext { data, rules, choice: &choice, histogram_bytes: self.request.histogram_bytes() };
        let limits = limits(parameters);
        let in_units = traits.values_in_units(parameters, &scale);
        let carries = in_units && all_groups && carrying_pays(data, limits) && self.worker.moves_by_leaves();
        let given = self.root.take().filter(|root| carries && root.scale == scale);
        if given.is_some() {
            tracing::debug!("tree {tree}: root histogram derived from the previous tree");
        }
        let histograms = match carries {
            true => KeptHistograms::for_carry(given.map(|root| root.histogram)),
            false => KeptHistograms::default(),
        };
        let mut finder = finder(parameters, histograms);
        let grown = grow(&context, limits, &mut *self.worker, &mut *finder)?;
        let cover = if traits.residuals { Cover::Weight } else { Cover::Rows };
        let coded = CodedTree::of_grown(&grown, &rules, parameters.learning_rate, in_units, cover);
        let draws = parameters.objective == ObjectiveName::XeNdcg
            || traits.remembers
            || parameters.bagging_fraction < 1.0
            || parameters.queries_per_tree.is_some()
            || parameters.feature_fraction < 1.0
            || parameters.features_per_node.of(model.features.len()) < model.features.len();
        if coded.is_leaf() && !draws {
            return Ok(false); // the next round would be the same
        }
        self.worker.add_grown(&coded)?;
        if carries && round < parameters.num_trees {
            let units = coded.in_units(scale.gradient);
            self.root = CarriedRoot::after(&grown, &units, finder.kept(), &context, &mut *self.worker)?;
        }
        let tree = coded.to_model();
        for set in validation {
            set.add(&coded, &tree)?;
        }
        model.trees.push(tree);
        Ok(true)
    }

    /// Adds the metrics of the round to the log.
    fn take_metrics(&mut self, round: u32, gradients: &GradientSummary) -> Result<()> {
        let seconds = self.before + self.begun.elapsed().as_secs_f64();
        let entry = |split: &str, metric: &Metric, value: f64| LogEntry {
            round,
            split: split.to_owned(),
            metric: metric.to_string(),
            value,
            seconds,
        };
        let first = self.prepared.log.len();
        let mut entries = Vec::new();
        if self.prepared.traits.residuals {
            entries.push(entry("train", &Metric::Rmse, gradients.rmse()));
        } else {
            let means = self.worker.metrics()?;
            entries.extend(means.iter().map(|mean| entry("train", &mean.metric(), mean.value())));
        }
        for set in &self.prepared.validation {
            if let Some(row) = set.not_finite() {
                return Err(prepare::diverged_on(&set.name, row, round));
            }
            let means: Vec<Mean> = set.evaluate();
            entries.extend(means.iter().map(|mean| entry(&set.name, &mean.metric(), mean.value())));
        }
        self.prepared.log.extend(entries);
        self.observer.round(round, self.request.parameters.num_trees, &self.prepared.log[first..]);
        Ok(())
    }

    /// Adds the trees of the checkpoint to all scores, in order.
    fn replay(&mut self) -> Result<()> {
        let begun = Instant::now();
        let PreparedBoosting { data, validation, model, start_trees, .. } = &mut self.prepared;
        let trees = &model.trees[*start_trees..];
        let meter = match trees.len() {
            0 => unwatched(),
            count => self.observer.begin("replaying trees", count as u64, "trees"),
        };
        for (round, tree) in (1..).zip(trees) {
            let coded = CodedTree::of_model(tree, &data.binning).ok_or_else(|| {
                Error::usage("the checkpoint's trees do not fit the data", "start over without --resume")
            })?;
            self.worker.add_earlier(round, &coded)?;
            for set in validation.iter_mut() {
                set.add(&coded, tree)?;
            }
            meter.advance(1);
        }
        self.prepared.seconds.load += begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// The best round, if early stopping is due.
    fn stopped_early(&self) -> Option<BestRound> {
        let patience = self.request.parameters.early_stopping_rounds?;
        let best = self.best()?;
        (self.prepared.model.rounds >= best.round + patience).then_some(best)
    }

    fn best(&self) -> Option<BestRound> {
        self.request.parameters.early_stopping_rounds?;
        let set = self.prepared.validation.first()?;
        BestRound::of(&self.prepared.log, &set.name, self.request.parameters.metrics.first()?)
    }

    fn finish(mut self, stop: StopReason) -> Result<Outcome> {
        let best = self.best();
        let model = &mut self.prepared.model;
        match stop {
            _ if model.trees[self.prepared.start_trees..].iter().all(|tree| tree.nodes.len() == 1) => {
                return Err(no_split(self.request, &self.prepared.data));
            }
            StopReason::Complete => {
                if let Some(best) = best.filter(|best| best.round < model.rounds) {
                    self.observer.note(&format!("the best round is {} of {}", best.round, model.rounds));
                }
            }
            StopReason::Early(best) => {
                let text = format!("stopped early: the best round is {} of {}", best.round, model.rounds);
                self.observer.note(&text);
            }
            StopReason::NoSplit => {
                let text = format!("stopped after {} trees: no further split has a gain", model.rounds);
                self.observer.note(&text);
            }
        }
        if let Some(best) = best {
            model.trees.truncate(self.prepared.start_trees + best.round as usize);
        }
        self.prepared.seconds.train = self.begun.elapsed().as_secs_f64();
        Ok(Outcome {
            model: self.prepared.model,
            written: None,
            log: self.prepared.log,
            best,
            out_of_bag: None,
            strength: None,
            seconds: self.prepared.seconds,
        })
    }
}

fn limits(parameters: &Parameters) -> TreeLimits {
    TreeLimits {
        depth: parameters.max_depth.unwrap_or(u32::MAX),
        order: match parameters.num_leaves {
            Some(leaves) => Order::BestFirst { leaves },
            None => Order::Levels,
        },
    }
}

fn finder<C: Cell>(parameters: &Parameters, kept: KeptHistograms<C>) -> Box<dyn SplitFinder<C>> {
    match parameters.candidates {
        Candidates::Static => Box::new(StaticBins::new(kept)),
        Candidates::Streaming => {
            let rules = StreamingRules {
                centroids: parameters.max_bin as usize,
                grouped: parameters.value_groups > 0,
                workers: parameters.workers as usize,
            };
            Box::new(StreamingSplits::new(rules, kept))
        }
        Candidates::Exact => Box::new(ExactSplits),
        Candidates::Random => unreachable!("rejected by the settings of boosting"),
    }
}
