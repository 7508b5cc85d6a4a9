//! Forests: every tree is grown from the labels, on rows and features of its own, and their mean counts. Trees
//! know nothing of each other, so they grow side by side and are added in their order.

mod block;
mod criterion;
mod cut;
mod features;
mod grower;
mod large;
mod listwise;
mod outside;
mod point;
mod route;
mod sample;
mod tree;
mod view;

use crate::bins::{BinnedData, Rows};
use crate::config::{FeatureCount, Parameters};
use crate::error::{Error, Result};
use crate::metric::Mean;
use crate::model::{Ensemble, Model, ModelFeature, Tree};
use crate::storage::interrupt;
use crate::train::{
    BestRound, Checkpoints, LogEntry, Observer, Opened, Outcome, PhaseSeconds, Scores, TrainRequest,
    ValidationSet, find_checkpoint, no_split, open,
};
use grower::{Task, TreeGrower, grower};
use outside::Outside;
use rayon::prelude::*;
use route::Router;
use std::time::Instant;
use tree::GrownTree;
use view::{Lanes, View};

/// What the log calls the rows that a tree did not see.
const OUT_OF_BAG: &str = "oob";

/// What a training keeps of a row beside its codes: its label twice, and for every thread its place twice.
fn bytes_per_row() -> u64 {
    8 + 4 + 8 * rayon::current_num_threads() as u64
}

/// Trains a forest.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    if request.start.is_some() {
        return Err(Error::usage(
            "a forest starts from nothing: its trees do not build on each other",
            "leave --start-model out, or set ensemble=boost",
        ));
    }
    let opened = open(request, None, bytes_per_row(), observer)?;
    let begun = Instant::now();
    let parameters = &request.parameters;
    sample::check(parameters, &opened.data.rows, &mut |text| observer.note(text))?;
    note_clipped(parameters, opened.source.features(), observer);
    let model = new_model(request, &opened);
    let mut forest = Forest {
        request,
        data: &opened.data,
        lanes: Lanes::of(&opened.data.binning.layout),
        validation: validation_sets(request, &opened)?,
        outside: if request.out_of_bag { Some(Outside::new(parameters, &opened.data.rows)?) } else { None },
        model,
        log: Vec::new(),
        begun,
        before: 0.0,
    };
    if let Some(resumed) = find_checkpoint(request, &forest.model, observer)? {
        let configuration = std::mem::take(&mut forest.model.configuration);
        forest.model = Model { configuration, ..resumed.model };
        forest.log = resumed.log;
        forest.before = forest.log.last().map_or(0.0, |entry| entry.seconds);
        forest.replay()?;
    }
    let mut seconds = opened.seconds;
    seconds.load += begun.elapsed().as_secs_f64();
    forest.begun = Instant::now();
    forest.run(seconds, observer)
}

/// Says once what is asked for in vain.
fn note_clipped(parameters: &Parameters, features: usize, observer: &mut dyn Observer) {
    if let FeatureCount::Count(count) = parameters.features_per_node
        && count > features
    {
        let text =
            format!("features_per_node = {count}: there are {features}, and every node looks at all of them");
        observer.note(&text);
    }
}

fn new_model(request: &TrainRequest, opened: &Opened) -> Model {
    let features = opened.source.names().iter().zip(&opened.data.binning.features);
    Model {
        ensemble: Ensemble::Bag,
        base_score: 0.0,
        base_feature: None,
        features: features.map(|(name, bins)| ModelFeature { name: name.clone(), fill: bins.fill }).collect(),
        trees: Vec::new(),
        configuration: request.parameters.to_toml(),
        data: opened.data_used(request),
        rounds: 0,
    }
}

fn validation_sets(request: &TrainRequest, opened: &Opened) -> Result<Vec<ValidationSet>> {
    let named = request.validation.iter().zip(&opened.validation);
    let sets = named.map(|(named, source)| {
        let cuts = opened.options.max_bin.is_some();
        let start = |rows: &[Rows]| Ok(Scores::constant(rows, 0.0));
        ValidationSet::load(&named.name, source, &opened.data.binning, cuts, &request.parameters, &start)
    });
    sets.collect()
}

/// A training under way.
struct Forest<'a> {
    request: &'a TrainRequest,
    data: &'a BinnedData,
    lanes: Lanes,
    validation: Vec<ValidationSet>,
    outside: Option<Outside>,
    model: Model,
    log: Vec<LogEntry>,
    begun: Instant,
    /// Seconds that earlier runs of this training took.
    before: f64,
}

impl Forest<'_> {
    fn run(mut self, mut seconds: PhaseSeconds, observer: &mut dyn Observer) -> Result<Outcome> {
        observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // there is something to save from now on
        }
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let grown = self.add_trees(&mut checkpoints, observer);
        if let (Err(Error::Interrupted), Some(checkpoints)) = (&grown, &mut checkpoints) {
            checkpoints.write(&self.model, 0, &self.log)?;
            return Err(checkpoints.stopped(self.model.rounds));
        }
        grown?;
        let best = self.finish(observer)?;
        seconds.train = self.begun.elapsed().as_secs_f64();
        let out_of_bag = self.outside.as_ref().map(Outside::scores);
        Ok(Outcome { model: self.model, log: self.log, best, out_of_bag, seconds })
    }

    /// Grows trees until there are enough, some at a time.
    fn add_trees(
        &mut self,
        checkpoints: &mut Option<Checkpoints>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let parameters = &self.request.parameters;
        let grower = grower(parameters, self.data)?;
        while self.model.rounds < parameters.num_trees && self.stopped_early().is_none() {
            interrupt::check()?;
            for tree in self.grow_some(&*grower)? {
                self.add(&tree)?;
                self.take_metrics(&tree, observer)?;
                if let Some(checkpoints) = checkpoints
                    && checkpoints.is_due(self.model.rounds)
                {
                    checkpoints.write(&self.model, 0, &self.log)?;
                }
                if self.stopped_early().is_some() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next trees, as many as grow well together.
    fn grow_some(&self, grower: &dyn TreeGrower) -> Result<Vec<GrownTree>> {
        let parameters = &self.request.parameters;
        let first = self.model.rounds + 1;
        let last = (first + 4 * rayon::current_num_threads() as u32 - 1).min(parameters.num_trees);
        let draw = |tree| Task { tree, rows: sample::draw(parameters, &self.data.rows, tree) };
        let tasks = (u64::from(first)..=u64::from(last)).into_par_iter().map(draw);
        grower.grow_together(tasks.collect())
    }

    /// Adds a tree to the model and to all scores.
    fn add(&mut self, tree: &GrownTree) -> Result<()> {
        let number = self.model.rounds + 1;
        let as_model = tree.to_model();
        self.add_scores(number, tree, &as_model)?;
        self.model.trees.push(as_model);
        self.model.rounds = number;
        Ok(())
    }

    fn add_scores(&mut self, number: u32, tree: &GrownTree, as_model: &Tree) -> Result<()> {
        if let Some(outside) = &mut self.outside {
            outside.add(number.into(), tree, &self.request.parameters, self.data, &self.lanes)?;
        }
        for set in &mut self.validation {
            let values = values_of(set, tree, as_model, &self.lanes)?;
            set.add_all(&values);
        }
        Ok(())
    }

    /// Adds the trees of a checkpoint to all scores, in their order.
    fn replay(&mut self) -> Result<()> {
        let trees = std::mem::take(&mut self.model.trees);
        for (number, tree) in (1..).zip(&trees) {
            let grown = GrownTree::of_model(tree, &self.data.binning).ok_or_else(|| {
                Error::usage("the checkpoint's trees do not fit the data", "start anew without --resume")
            })?;
            self.add_scores(number, &grown, tree)?;
        }
        self.model.trees = trees;
        Ok(())
    }

    /// Writes the round's values into the log.
    fn take_metrics(&mut self, tree: &GrownTree, observer: &mut dyn Observer) -> Result<()> {
        let parameters = &self.request.parameters;
        let round = self.model.rounds;
        let seconds = self.before + self.begun.elapsed().as_secs_f64();
        let first = self.log.len();
        let log = &mut self.log;
        let mut enter = |split: &str, means: Vec<Mean>| {
            log.extend(means.iter().map(|mean| LogEntry {
                round,
                split: split.to_owned(),
                metric: mean.metric().to_string(),
                value: mean.value(),
                seconds,
            }));
        };
        if let Some(outside) = &self.outside {
            enter(OUT_OF_BAG, outside.evaluate(parameters, &self.data.rows)?);
        }
        for set in &self.validation {
            enter(&set.name, set.evaluate_mean(round));
            if parameters.forest.tree_strength {
                let values = values_of(set, tree, &tree.to_model(), &self.lanes)?;
                enter(&format!("{}.tree", set.name), set.evaluate_others(&values));
            }
        }
        observer.round(round, parameters.num_trees, &self.log[first..]);
        Ok(())
    }

    /// The best round, if it is too long ago.
    fn stopped_early(&self) -> Option<BestRound> {
        let patience = self.request.parameters.early_stopping_rounds?;
        let best = self.best()?;
        (self.model.rounds >= best.round + patience).then_some(best)
    }

    fn best(&self) -> Option<BestRound> {
        self.request.parameters.early_stopping_rounds?;
        let set = self.validation.first()?;
        BestRound::of(&self.log, &set.name, self.request.parameters.metrics.first()?)
    }

    /// Keeps the trees up to the best round, if there is one.
    fn finish(&mut self, observer: &mut dyn Observer) -> Result<Option<BestRound>> {
        if self.model.trees.iter().all(|tree| tree.nodes.len() == 1) {
            return Err(no_split(self.request, self.data));
        }
        let best = self.best();
        if let Some(best) = best.filter(|best| best.round < self.model.rounds) {
            let stopped = if self.stopped_early().is_some() { "stopped early: " } else { "" };
            observer.note(&format!("{stopped}the best round is {} of {}", best.round, self.model.rounds));
            self.model.trees.truncate(best.round as usize);
        }
        Ok(best)
    }
}

/// What a tree says of every row of a validation set.
fn values_of(set: &ValidationSet, tree: &GrownTree, as_model: &Tree, lanes: &Lanes) -> Result<Scores> {
    set.values(as_model, |data, partition| {
        let codes = data.all_codes(partition)?;
        let view = View::of(data, partition, &codes, lanes);
        let rows: Vec<u32> = (view.first..view.first + view.rows).collect();
        let mut values = Vec::with_capacity(rows.len());
        Router::new(tree, &data.binning, lanes).each_value(&view, &rows, |_, value| values.push(value));
        Ok(values)
    })
}
