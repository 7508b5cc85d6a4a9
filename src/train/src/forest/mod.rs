//! Random forests: every tree is grown from the labels on sampled rows and features; scores are means over trees. Trees
//! are independent, so they grow in parallel and are added in order.

mod block;
mod criterion;
mod cut;
mod features;
mod grower;
mod large;
mod listwise;
mod out_of_bag;
mod point;
mod route;
mod sample;
mod view;

use crate::bins::BinnedData;
use crate::config::{CriterionName, FeatureCount, Parameters, Sampling};
use crate::driver::{
    BestRound, Checkpoints, ForestTree, LogEntry, ModelSize, Observer, OpenedData, Outcome, PhaseSeconds,
    Scores, TrainRequest, TreeGrower, TreeStrength, ValidationSet, check_gains, find_checkpoint, no_split,
    open, value_of, warn_of_leakage,
};
use grower::grower;
use listwise::{NdcgVariant, SplitOrder};
use out_of_bag::OutOfBag;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Location, interrupt};
use planetree_data::source::{Rows, Source};
use planetree_metric::Mean;
use planetree_model::model::{Ensemble, Model, ModelWriter, Origin, Tree};
use planetree_model::predict::wins;
use route::ForestRouter;
use std::time::Instant;
use view::{CodeLanes, PartitionView};

/// Name of the out-of-bag split in the log.
const OUT_OF_BAG: &str = "oob";

/// Trees that share one scan of memory-mapped data.
fn trees_in_a_scan() -> u32 {
    8.max(rayon::current_num_threads() as u32)
}

/// Memory per row besides its codes: its label twice, and its index twice for every growing tree, or for listwise trees
/// its document and its rank; with out-of-bag scores, its score and number of trees.
fn bytes_per_row(request: &TrainRequest) -> u64 {
    let at_a_time = if request.parameters.forest.is_listwise() {
        listwise::BYTES_PER_ROW * rayon::current_num_threads() as u64
    } else {
        0
    };
    let out_of_bag = if request.out_of_bag { 8 + 4 + 16 } else { 0 };
    4 + 8 + 8 * u64::from(trees_in_a_scan()) + at_a_time + out_of_bag
}

/// Grows the trees of a forest with these numbers.
pub fn grow_trees(
    parameters: &Parameters,
    data: &BinnedData,
    trees: std::ops::Range<u32>,
) -> Result<Vec<ForestTree>> {
    /// Memory limit of sums and copied rows, in bytes; the data are in memory anyway.
    const ROOM: usize = 1 << 30;
    let draw = |tree: u32| sample::draw(parameters, &data.rows, tree.into());
    grower(parameters, data, ROOM)?.grow_batch(trees, &draw)
}

/// Trains a forest.
pub fn train(request: &TrainRequest, observer: &mut dyn Observer) -> Result<Outcome> {
    if request.start.is_some() {
        return Err(Error::usage(
            "a forest cannot continue from a model: its trees are independent",
            "remove --start-model, or set ensemble=boost",
        ));
    }
    check_strength(request)?;
    let mut opened = open(request, None, bytes_per_row(request), observer)?;
    let begun = Instant::now();
    let parameters = &request.parameters;
    sample::check(parameters, &opened.data.rows, &mut |text| observer.note(text))?;
    note_clipped(parameters, opened.source.features(), observer);
    let model = new_model(request, &opened)?;
    let mut validation = validation_sets(request, &opened)?;
    warn_of_leakage(std::mem::take(&mut opened.seen), &mut validation, &mut opened.validation, observer);
    let mut forest = ForestTraining {
        request,
        data: &opened.data,
        lanes: match parameters.forest.pairs_per_document {
            None => Some(CodeLanes::of(&opened.data.binning.layout)),
            Some(_) => None,
        },
        validation,
        out_of_bag: out_of_bag(request, &opened)?,
        file: model_file(request, &model)?,
        size: ModelSize::default(),
        model,
        log: Vec::new(),
        strength: request.strength.then(Vec::new),
        begun,
        before: 0.0,
        writing: 0.0,
    };
    if request.strength {
        check_gains(parameters, &opened.data.rows, "the training data")?;
        for set in &forest.validation {
            check_gains(parameters, set.rows(), &set.name)?;
        }
    }
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

/// Tree strength needs rankings of whole queries, by codes.
fn check_strength(request: &TrainRequest) -> Result<()> {
    let parameters = &request.parameters;
    let draws = parameters.bagging_fraction < 1.0 || parameters.forest.bootstrap;
    let problem = match request.strength {
        false => return Ok(()),
        true if parameters.forest.pairs_per_document.is_some() => {
            "trees trained on pairs do not rank single documents"
        }
        true if parameters.max_bin == 0 => "tree strength needs bins",
        true if draws && parameters.bagging_by == Sampling::Rows => {
            "the rows of a tree are not whole queries"
        }
        true => return Ok(()),
    };
    Err(Error::usage(
        problem,
        "remove --strength, or sample queries and set candidates=static and pairs_per_document=0",
    ))
}

/// Notes a parameter that exceeds the number of features.
fn note_clipped(parameters: &Parameters, features: usize, observer: &mut dyn Observer) {
    if let FeatureCount::Count(count) = parameters.features_per_node
        && count > features
    {
        let text = format!(
            "features_per_node = {count}: there are only {features} features, so every node uses all of them"
        );
        observer.note(&text);
    }
}

fn new_model(request: &TrainRequest, opened: &OpenedData) -> Result<Model> {
    Ok(Model {
        ensemble: match request.parameters.forest.pairs_per_document {
            None => Ensemble::Bag,
            Some(_) => Ensemble::Wins,
        },
        base_score: 0.0,
        base_feature: None,
        features: opened.model_features(),
        trees: Vec::new(),
        configuration: request.parameters.to_toml(),
        data: opened.data_used(request)?,
        rounds: 0,
        origin: Origin::default(),
    })
}

fn validation_sets(request: &TrainRequest, opened: &OpenedData) -> Result<Vec<ValidationSet>> {
    let named = request.validation.iter().zip(&opened.validation);
    named.map(|(named, source)| load(&named.name, source, request, opened)).collect()
}

fn load(name: &str, source: &Source, request: &TrainRequest, opened: &OpenedData) -> Result<ValidationSet> {
    let pairs = request.parameters.forest.pairs_per_document.is_some();
    let cuts = opened.options.max_bin.is_some() && !pairs;
    let start = |rows: &[Rows]| Ok(Scores::constant(rows, 0.0));
    ValidationSet::load(name, source, &opened.data.binning, cuts, &request.parameters, &start)
}

/// Empty out-of-bag scores, if requested.
fn out_of_bag(request: &TrainRequest, opened: &OpenedData) -> Result<Option<OutOfBag>> {
    let parameters = &request.parameters;
    if !request.out_of_bag {
        return Ok(None);
    }
    let all = parameters.bagging_fraction >= 1.0 && parameters.queries_per_tree.is_none();
    if all && !parameters.forest.bootstrap {
        return Err(Error::usage(
            "every tree uses all rows: there are no out-of-bag rows",
            "set query_fraction, bagging_fraction or bootstrap, or remove --oob",
        ));
    }
    let documents = match parameters.forest.pairs_per_document {
        None => None,
        Some(_) if parameters.bagging_by == Sampling::Rows => {
            return Err(Error::usage(
                "with pairs, out-of-bag scores need whole queries",
                "set bagging_by=queries, or remove --oob",
            ));
        }
        Some(_) => Some(load(OUT_OF_BAG, &opened.source, request, opened)?),
    };
    OutOfBag::new(parameters, &opened.data.rows, documents).map(Some)
}

/// The file to stream trees to, if none is needed again by a checkpoint or early stopping. Deep trees are large, and
/// then need not be kept in memory.
fn model_file(request: &TrainRequest, model: &Model) -> Result<Option<ModelWriter>> {
    match &request.stream_to {
        Some(location @ Location::Local(_))
            if request.checkpoint.is_none() && request.parameters.early_stopping_rounds.is_none() =>
        {
            ModelWriter::create(location, &model.features).map(Some)
        }
        _ => Ok(None),
    }
}

/// A training in progress.
struct ForestTraining<'a> {
    request: &'a TrainRequest,
    data: &'a BinnedData,
    /// Positions of features in a row of codes; `None` for pairs, which have no codes of single rows.
    lanes: Option<CodeLanes>,
    validation: Vec<ValidationSet>,
    out_of_bag: Option<OutOfBag>,
    /// The file that trees are streamed to; `None` keeps them in memory.
    file: Option<ModelWriter>,
    model: Model,
    size: ModelSize,
    log: Vec<LogEntry>,
    /// Strength of the trees so far, if requested.
    strength: Option<Vec<TreeStrength>>,
    begun: Instant,
    /// Seconds spent in earlier runs of this training.
    before: f64,
    /// Seconds spent writing trees.
    writing: f64,
}

impl ForestTraining<'_> {
    fn run(mut self, mut seconds: PhaseSeconds, observer: &mut dyn Observer) -> Result<Outcome> {
        observer.phase("training");
        if self.request.checkpoint.is_some() {
            interrupt::be_orderly(); // from now on there is something to save
        }
        let mut checkpoints = self.request.checkpoint.as_ref().map(Checkpoints::new);
        let grown = self.add_trees(&mut checkpoints, observer);
        if let (Err(Error::Interrupted), Some(checkpoints)) = (&grown, &mut checkpoints) {
            checkpoints.write(&self.model, 0, &self.log)?;
            return Err(checkpoints.stopped(self.model.rounds));
        }
        grown?;
        let best = self.finish(observer)?;
        seconds.train = self.begun.elapsed().as_secs_f64() - self.writing;
        let out_of_bag = self.out_of_bag.as_ref().map(OutOfBag::scores);
        let written = match self.file.take() {
            None => None,
            Some(file) => {
                file.finish(&self.model, &[])?;
                Some(self.size)
            }
        };
        let mut strength = self.strength;
        if let (Some(courses), Some(best)) = (&mut strength, best) {
            courses.retain(|course| course.tree <= best.round); // trees kept in the model
        }
        Ok(Outcome { model: self.model, written, log: self.log, best, out_of_bag, strength, seconds })
    }

    /// Grows trees in batches until there are enough.
    fn add_trees(
        &mut self,
        checkpoints: &mut Option<Checkpoints>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let parameters = &self.request.parameters;
        let grower = match &self.request.backend {
            None => grower(parameters, self.data, self.request.histogram_bytes())?,
            Some(backend) => backend.grower(parameters, self.data)?,
        };
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

    /// The next batch of trees.
    fn grow_some(&self, grower: &dyn TreeGrower) -> Result<Vec<ForestTree>> {
        let parameters = &self.request.parameters;
        let first = self.model.rounds + 1;
        let batch_size = grower.batch_size().unwrap_or_else(|| self.batch_size());
        let last = (first + batch_size - 1).min(parameters.num_trees);
        let draw = |tree: u32| sample::draw(parameters, &self.data.rows, tree.into());
        grower.grow_batch(first..last + 1, &draw)
    }

    /// Number of trees per batch.
    fn batch_size(&self) -> u32 {
        match self.data.is_in_memory() {
            // Several per thread, so that few threads wait for the last tree.
            true => 4 * rayon::current_num_threads() as u32,
            false => trees_in_a_scan(),
        }
    }

    /// Adds a tree to the model and to all scores.
    fn add(&mut self, tree: &ForestTree) -> Result<()> {
        let number = self.model.rounds + 1;
        let as_model = tree.to_model();
        self.add_scores(number, tree, &as_model)?;
        self.model.rounds = number;
        self.size.add(&as_model);
        match &mut self.file {
            None => self.model.trees.push(as_model),
            Some(file) => {
                let begun = Instant::now();
                file.write_tree(&as_model)?;
                self.writing += begun.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }

    fn add_scores(&mut self, number: u32, tree: &ForestTree, as_model: &Tree) -> Result<()> {
        self.add_strength(number, tree)?;
        if let Some(out_of_bag) = &mut self.out_of_bag {
            out_of_bag.add(number.into(), tree, &self.request.parameters, self.data)?;
        }
        for set in &mut self.validation {
            let values = values_of(set, tree, as_model, self.lanes.as_ref())?;
            set.add_all(&values);
        }
        Ok(())
    }

    /// Adds the trees of the checkpoint to all scores, in order.
    fn replay(&mut self) -> Result<()> {
        let trees = std::mem::take(&mut self.model.trees);
        for (number, tree) in (1..).zip(&trees) {
            let grown = ForestTree::of_model(tree, &self.data.binning).ok_or_else(|| {
                Error::usage("the checkpoint's trees do not fit the data", "start over without --resume")
            })?;
            self.add_scores(number, &grown, tree)?;
            self.size.add(tree);
        }
        self.model.trees = trees;
        Ok(())
    }

    /// Adds the metrics of the round to the log.
    fn take_metrics(&mut self, tree: &ForestTree, observer: &mut dyn Observer) -> Result<()> {
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
        if let Some(out_of_bag) = &self.out_of_bag {
            enter(OUT_OF_BAG, out_of_bag.evaluate(parameters, out_of_bag.rows(self.data))?);
        }
        for set in &self.validation {
            enter(&set.name, set.evaluate_mean(round));
            if parameters.forest.tree_strength {
                let values = values_of(set, tree, &tree.to_model(), self.lanes.as_ref())?;
                enter(&format!("{}.tree", set.name), set.evaluate_others(&values));
            }
        }
        observer.round(round, parameters.num_trees, &self.log[first..]);
        Ok(())
    }

    /// Computes the strength of a tree on its own rows and on every validation set.
    fn add_strength(&mut self, number: u32, tree: &ForestTree) -> Result<()> {
        let Some(courses) = &mut self.strength else { return Ok(()) };
        let parameters = &self.request.parameters;
        // Without a chosen order of splits, level by level is the usual one.
        let order = match parameters.forest.criterion {
            CriterionName::Ndcg => SplitOrder::AsGrown,
            _ => SplitOrder::Breadth,
        };
        let variant = NdcgVariant::of(parameters);
        let mut enter = |split: &str, data: &BinnedData, rows: &[u32]| {
            let values = listwise::strength(tree, order, (data, rows), &variant)?;
            courses.push(TreeStrength { tree: number, split: split.to_owned(), values });
            Ok(())
        };
        enter("train", self.data, &sample::draw(parameters, &self.data.rows, number.into()))?;
        for set in &self.validation {
            if let Some(data) = set.coded() {
                enter(&set.name, data, &(0..data.row_count() as u32).collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// The best round, if early stopping is due.
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
        if self.size.leaves == self.size.trees {
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

/// The predictions of a tree for a validation set: by codes, or (without lanes) by wins.
fn values_of(
    set: &ValidationSet,
    tree: &ForestTree,
    as_model: &Tree,
    lanes: Option<&CodeLanes>,
) -> Result<Scores> {
    let Some(lanes) = lanes else { return Ok(wins_of(set, as_model)) };
    set.values(as_model, |data, partition| {
        let codes = data.all_codes(partition)?;
        let view = PartitionView::of(data, partition, &codes, lanes);
        let rows: Vec<u32> = (view.first..view.first + view.rows).collect();
        let mut values = Vec::with_capacity(rows.len());
        ForestRouter::new(tree, &data.binning, lanes).each_value(&view, &rows, |_, value| values.push(value));
        Ok(values)
    })
}

/// The fraction of wins of every document against others of its query, by one tree.
fn wins_of(set: &ValidationSet, tree: &Tree) -> Scores {
    set.by_query(|documents, width| {
        wins(documents, width, |rows, chances| {
            let rows = rows.chunks_exact(width).zip(chances);
            rows.for_each(|(row, chance)| *chance = value_of(tree, row));
        })
    })
}
