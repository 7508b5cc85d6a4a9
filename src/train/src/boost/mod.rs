//! Boosting: each round grows a tree on the gradients of all rows and adds it to every score.

mod awake;
mod gradients;
mod prepare;
mod share;
mod whole_scores;

pub use {gradients::Gradients, share::Share, share::ShareState};

use crate::config::{Candidates, ObjectiveName, Parameters};
use crate::driver::{
    BestRound, Checkpoints, Crew, FleetCell, GradientSummary, LogEntry, Observer, Outcome, TrainRequest,
    TreeStart, no_split,
};
use crate::tree::{
    CarriedRoot, Cell, CodedTree, Cover, ExactSplits, FeatureChoice, Ground, KeptHistograms, Order,
    SplitFinder, SplitRules, StaticBins, StreamingRules, StreamingSplits, TreeLimits, carrying_pays, grow,
};
use awake::Awake;
use planetree_base::error::{Error, Result};
use planetree_base::progress::unwatched;
use planetree_base::storage::interrupt;
use planetree_metric::{Mean, Metric};
use prepare::Prepared;
use std::time::Instant;

/// Trains a boosted model.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    let prepared = prepare::prepare(request, observer)?;
    match prepared.manner.weighted {
        true => Training::<[i64; 2]>::new(request, prepared, observer).run(),
        false => Training::<i64>::new(request, prepared, observer).run(),
    }
}

/// A training under way.
struct Training<'a, C: Cell> {
    request: &'a TrainRequest,
    observer: &'a mut dyn Observer,
    prepared: Prepared,
    /// Whoever holds the rows.
    crew: Box<dyn Crew<C>>,
    /// The root of the next tree, if the last one told it.
    root: Option<CarriedRoot<C>>,
    begun: Instant,
    /// Seconds that earlier runs of this training took.
    before: f64,
}

/// Why the rounds ended.
enum Ended {
    Complete,
    Early(BestRound),
    NoSplit,
}

impl<'a, C: FleetCell> Training<'a, C> {
    fn new(request: &'a TrainRequest, mut prepared: Prepared, observer: &'a mut dyn Observer) -> Self {
        let crew = prepared.crew(request);
        let before = prepared.log.last().map_or(0.0, |entry| entry.seconds);
        Training { request, observer, prepared, crew, root: None, begun: Instant::now(), before }
    }

    fn run(mut self) -> Result<Outcome> {
        let parameters = &self.request.parameters;
        self.replay()?;
        self.observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // there is something to save from now on
        }
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let mut gradients = self.crew.update_gradients(self.prepared.model.rounds + 1)?;
        if !gradients.are_finite() {
            return Err(prepare::unfit_start(self.request));
        }
        let awake = self.request.fleet.is_none().then(Awake::new); // else the rows are elsewhere
        let mut ended = self.stopped_early().map_or(Ended::Complete, Ended::Early);
        while self.prepared.model.rounds < parameters.num_trees && matches!(ended, Ended::Complete) {
            let round = self.prepared.model.rounds + 1;
            let trees = self.prepared.model.trees.len();
            awake.iter().for_each(Awake::wake);
            let done = interrupt::check().and_then(|()| self.do_round(round, &mut gradients));
            if let (Err(Error::Interrupted), Some(checkpoints)) = (&done, &mut checkpoints) {
                // A cluster may be interrupted amid a round, whose tree is then not in the log.
                self.prepared.model.trees.truncate(trees);
                checkpoints.write(&self.prepared.model, self.prepared.start_trees, &self.prepared.log)?;
                return Err(checkpoints.stopped(self.prepared.model.rounds));
            }
            if !done? {
                ended = Ended::NoSplit;
                break;
            }
            self.prepared.model.rounds = round;
            if let Some(best) = self.stopped_early() {
                ended = Ended::Early(best);
            }
            if let Some(checkpoints) = &mut checkpoints
                && checkpoints.is_due(round)
            {
                checkpoints.write(&self.prepared.model, self.prepared.start_trees, &self.prepared.log)?;
            }
        }
        self.finish(ended)
    }

    /// Does all of a round; false if no split was possible.
    fn do_round(&mut self, round: u32, gradients: &mut GradientSummary) -> Result<bool> {
        if !self.grow_tree(round, gradients)? {
            return Ok(false);
        }
        *gradients = self.crew.update_gradients(round + 1)?;
        if !gradients.are_finite() {
            return Err(prepare::diverged(round));
        }
        self.take_metrics(round, gradients)?;
        Ok(true)
    }

    /// Grows a tree and adds it to all scores; false if no split was possible.
    fn grow_tree(&mut self, round: u32, gradients: &GradientSummary) -> Result<bool> {
        let parameters = &self.request.parameters;
        let Prepared { data, manner, validation, model, .. } = &mut self.prepared;
        let tree = u64::from(round);
        let scale = gradients.scale(data.row_count());
        let choice = FeatureChoice::draw(parameters, &data.binning.layout, tree);
        let groups = choice.groups(&data.binning.layout);
        let all_groups = groups.len() == data.binning.layout.groups.len();
        self.crew.start_tree(&TreeStart { tree, scale, groups, limit: None })?;
        let rules = SplitRules {
            min_data: parameters.min_data_in_leaf as i64,
            min_weight: parameters.min_sum_hessian,
            min_gain: parameters.min_gain,
            lambda: parameters.lambda_l2,
            scale,
        };
        let ground = Ground { data, rules, choice: &choice, histogram_bytes: self.request.histogram_bytes() };
        let limits = limits(parameters);
        let in_units = manner.values_in_units(parameters, &scale);
        let carries = in_units && all_groups && carrying_pays(data, limits) && self.crew.moves_by_leaves();
        let given = self.root.take().filter(|root| carries && root.scale == scale);
        if given.is_some() {
            tracing::debug!("tree {tree}: its root comes from the tree before it");
        }
        let histograms = match carries {
            true => KeptHistograms::to_the_end(given.map(|root| root.histogram)),
            false => KeptHistograms::default(),
        };
        let mut finder = finder(parameters, histograms);
        let grown = grow(&ground, limits, &mut *self.crew, &mut *finder)?;
        let cover = if manner.residuals { Cover::Weight } else { Cover::Rows };
        let coded = CodedTree::of_grown(&grown, &rules, parameters.learning_rate, in_units, cover);
        let draws = parameters.objective == ObjectiveName::XeNdcg
            || manner.remembers
            || parameters.bagging_fraction < 1.0
            || parameters.queries_per_tree.is_some()
            || parameters.feature_fraction < 1.0
            || parameters.features_per_node.of(model.features.len()) < model.features.len();
        if coded.is_leaf() && !draws {
            return Ok(false); // the next round would find the same
        }
        self.crew.add_grown(&coded)?;
        if carries && round < parameters.num_trees {
            let units = coded.in_units(scale.gradient);
            self.root = CarriedRoot::after(&grown, &units, finder.kept(), &ground, &mut *self.crew)?;
        }
        let tree = coded.to_model();
        for set in validation {
            set.add(&coded, &tree)?;
        }
        model.trees.push(tree);
        Ok(true)
    }

    /// Writes the round's values into the log.
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
        if self.prepared.manner.residuals {
            entries.push(entry("train", &Metric::Rmse, gradients.rmse()));
        } else {
            let means = self.crew.metrics()?;
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

    /// Adds the trees of earlier rounds to all scores, in their order.
    fn replay(&mut self) -> Result<()> {
        let begun = Instant::now();
        let Prepared { data, validation, model, start_trees, .. } = &mut self.prepared;
        let trees = &model.trees[*start_trees..];
        let meter = match trees.len() {
            0 => unwatched(),
            count => self.observer.begin("adding the trees so far", count as u64, "trees"),
        };
        for (round, tree) in (1..).zip(trees) {
            let coded = CodedTree::of_model(tree, &data.binning).ok_or_else(|| {
                Error::usage("the checkpoint's trees do not fit the data", "start anew without --resume")
            })?;
            self.crew.add_earlier(round, &coded)?;
            for set in validation.iter_mut() {
                set.add(&coded, tree)?;
            }
            meter.advance(1);
        }
        self.prepared.seconds.load += begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// The best round, if it is too long ago.
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

    fn finish(mut self, ended: Ended) -> Result<Outcome> {
        let best = self.best();
        let model = &mut self.prepared.model;
        match ended {
            _ if model.trees[self.prepared.start_trees..].iter().all(|tree| tree.nodes.len() == 1) => {
                return Err(no_split(self.request, &self.prepared.data));
            }
            Ended::Complete => {
                if let Some(best) = best.filter(|best| best.round < model.rounds) {
                    self.observer.note(&format!("the best round is {} of {}", best.round, model.rounds));
                }
            }
            Ended::Early(best) => {
                let text = format!("stopped early: the best round is {} of {}", best.round, model.rounds);
                self.observer.note(&text);
            }
            Ended::NoSplit => {
                let text = format!("stopped after {} trees: no further split gains anything", model.rounds);
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
        Candidates::Random => unreachable!("the settings of boosting refuse it"),
    }
}
