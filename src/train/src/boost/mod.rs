//! Gradient boosting: each round fits a tree to the gradients of all rows and adds it to the scores.

mod gradients;
mod local_worker;
mod prepare;
#[cfg(test)]
mod rankboost_tests;
mod spin_guard;
mod whole_scores;

pub use {gradients::RowGradients, local_worker::LocalWorker, local_worker::WorkerState};

use crate::bins::{MissingSides, STRIDE};
use crate::config::{BoostCandidates, BoostSettings, CostParameters, LeafStep, SplitBy, StreamingParameters};
use crate::driver::{
    BackendCell, BoostWorker, DataSize, GradientSummary, Learner, LearnerOutputs, LogValue, MemberInput,
    Observer, PartSettings, PartUpdate, Scores, SplitCosts, StageContext, StartScores, TrainRequest,
    TreeStart, diverged_on, misfit, no_split,
};
use crate::tree::{
    CarriedRoot, Cell, CodedTree, Cover, Divisor, ExactSplits, FeatureChoice, GrowContext, KeptHistograms,
    LeafRule, Order, RootShapes, Scale, SplitFinder, SplitRules, StaticBins, StreamingRules, StreamingSplits,
    TreeLimits, WorkerBounds, carrying_pays, grow,
};
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_metric::Metric;
use planetree_model::model::{Family, PartFamily, Tree};
use prepare::PreparedBoosting;
use spin_guard::SpinGuard;
use std::borrow::Cow;
use std::sync::Arc;

impl PartSettings for BoostSettings {
    fn learner<'a>(
        &'a self,
        context: &StageContext<'a>,
        input: &'a MemberInput,
        start: Option<StartScores>,
        observer: &mut dyn Observer,
    ) -> Result<(PartFamily, Box<dyn Learner + 'a>)> {
        let parameters = self;
        prepare::note_workers(parameters, &input.data.rows, observer);
        let prepared = prepare::prepare(context, parameters, input, start)?;
        let start = PartFamily::Trees(prepared.start.clone());
        let request = context.request;
        let mut costs = {
            // Every tree knows all earlier ones.
            let parameters = CostParameters { batch: Some(1), ..parameters.learner.tree.costs };
            SplitCosts::new(request.costs.as_ref(), parameters, context.features, &request.place())?
        };
        if let Some(costs) = &mut costs {
            costs.pay(prepared.start.used_features().into_iter());
        }
        Ok(match prepared.traits.weighted {
            true => (start, Box::new(BoostLearner::<[i64; 2]>::new(context, parameters, prepared, costs)?)),
            false => (start, Box::new(BoostLearner::<i64>::new(context, parameters, prepared, costs)?)),
        })
    }

    fn bytes_per_row(&self, request: &TrainRequest, members: u64) -> u64 {
        members * prepare::bytes_per_row(request, self)
    }

    fn working_bytes(&self, _request: &TrainRequest, size: &DataSize) -> u64 {
        /// Bytes of a cell of a histogram.
        const CELL: u64 = 24;
        /// Histograms of a node, its sibling and its parent.
        const NODES: u64 = 3;
        // Each thread adds up the rows of a node on its own. A feature has room for the largest number of bins.
        match self.learner.candidates {
            BoostCandidates::Static { .. } => (size.threads + NODES) * size.features * STRIDE as u64 * CELL,
            BoostCandidates::Streaming(_) | BoostCandidates::Exact => 0,
        }
    }

    fn logs_error(&self, request: &TrainRequest) -> bool {
        request.is_squared_error(self)
    }
}

/// Grows one tree per round from the gradients of the current scores.
struct BoostLearner<'a, C: Cell> {
    request: &'a TrainRequest,
    parameters: &'a BoostSettings,
    prepared: PreparedBoosting,
    worker: Box<dyn BoostWorker<C>>,
    /// Maximum size of the histograms that are kept.
    histogram_bytes: usize,
    /// Whether no other part is trained at the same time.
    is_alone: bool,
    /// The summary of the gradients for the next tree.
    gradients: GradientSummary,
    /// The root histogram of the next tree, if it could be derived from the previous tree.
    root: Option<CarriedRoot<C>>,
    /// What features cost the next tree. `None` if they are free.
    costs: Option<SplitCosts>,
    /// The rows of each worker, for streaming candidates.
    bounds: Arc<WorkerBounds>,
    /// The bins of roots, for streaming candidates on the same rows without weights in every round.
    shapes: Option<Arc<RootShapes>>,
    /// Keeps threads spinning between steps. `None` if other parts or processes use the threads.
    spin_guard: Option<SpinGuard>,
}

impl<'a, C: BackendCell> BoostLearner<'a, C> {
    fn new(
        context: &StageContext<'a>,
        parameters: &'a BoostSettings,
        mut prepared: PreparedBoosting,
        costs: Option<SplitCosts>,
    ) -> Result<Self> {
        let request = context.request;
        let workers = workers(&parameters.learner.candidates);
        let is_streaming = matches!(parameters.learner.candidates, BoostCandidates::Streaming(_));
        let has_same_rows = !prepared.traits.weighted && !parameters.learner.tree.sampling.leaves_out();
        let features = prepared.data.binning.features.len();
        Ok(BoostLearner {
            shapes: (is_streaming && has_same_rows).then(|| Arc::new(RootShapes::new(features))),
            bounds: Arc::new(WorkerBounds::divide(&prepared.data.rows, workers)),
            worker: prepared.worker(request, parameters)?,
            request,
            parameters,
            prepared,
            histogram_bytes: request.histogram_bytes() / context.members,
            is_alone: context.members == 1,
            gradients: GradientSummary::default(),
            root: None,
            costs,
            spin_guard: None,
        })
    }

    /// Grows a tree and adds it to all scores. Returns `None` if no split was possible.
    fn grow_tree(&mut self, round: u32) -> Result<Option<Tree>> {
        let parameters = self.parameters;
        let PreparedBoosting { data, traits, validation, coupled, .. } = &mut self.prepared;
        let tree = u64::from(round);
        let scale = self.gradients.scale(data.row_count());
        let choice =
            FeatureChoice::draw(&parameters.learner.tree, parameters.seed, &data.binning.layout, tree);
        let groups = choice.groups(&data.binning.layout);
        let all_groups = groups.len() == data.binning.layout.groups.len();
        self.worker.start_tree(&TreeStart { tree, scale, groups, limit: None })?;
        let rules = split_rules(parameters, traits.residuals, scale);
        let penalties = self.costs.as_ref().map(SplitCosts::penalties);
        let (histogram_bytes, penalties) = (self.histogram_bytes, penalties.as_deref());
        let monotone = parameters.learner.tree.monotone.in_order();
        let context = GrowContext { data, rules, choice: &choice, histogram_bytes, penalties, monotone };
        let limits = limits(parameters);
        let in_units = traits.values_in_units(parameters, &scale);
        let carries =
            in_units && all_groups && carrying_pays(data, &rules, limits) && self.worker.moves_by_leaves();
        let given = self.root.take().filter(|root| carries && root.scale == scale);
        if given.is_some() {
            tracing::debug!("tree {tree}: root histogram derived from the previous tree");
        }
        let histograms = match carries {
            true => KeptHistograms::for_carry(given.map(|root| root.histogram)),
            false => KeptHistograms::default(),
        };
        let mut finder = finder(parameters, &self.bounds, self.shapes.as_ref(), histograms);
        let grown = grow(&context, limits, &mut *self.worker, &mut *finder)?;
        let cover = if traits.residuals { Cover::Weight } else { Cover::Rows };
        let coded = CodedTree::of_grown(&grown, &rules, parameters.learner.learning_rate, in_units, cover);
        let features = data.binning.features.len();
        // A class whose gradients cannot be split now may be split after other classes have moved.
        let draws = coupled.is_some()
            || traits.draws
            || traits.remembers
            || parameters.learner.tree.sampling.leaves_out()
            || parameters.learner.tree.feature_fraction < 1.0
            || parameters.learner.tree.features_per_node.of(features) < features;
        if coded.is_leaf() && !draws {
            return Ok(None); // later rounds would not find a split either
        }
        self.worker.add_grown(&coded)?;
        if carries && round < parameters.num_trees {
            let units = coded.in_units(scale.gradient);
            self.root = CarriedRoot::after(&grown, &units, finder.kept(), &context, &mut *self.worker)?;
        }
        let tree = coded.to_model();
        if let Some(costs) = &mut self.costs {
            costs.add_tree(round, &tree);
        }
        for set in validation {
            set.add(&coded, &tree)?;
        }
        Ok(Some(tree))
    }
}

impl<C: BackendCell> Learner for BoostLearner<'_, C> {
    fn replay(&mut self, part: &PartFamily, meter: &dyn Meter) -> Result<()> {
        let PreparedBoosting { data, validation, start, .. } = &mut self.prepared;
        let trees =
            part.trees().into_iter().flat_map(|ensemble| ensemble.trees.iter().skip(start.trees.len()));
        for (round, tree) in (1..).zip(trees) {
            let coded = CodedTree::of_model(tree, &data.binning).ok_or_else(misfit)?;
            self.worker.add_earlier(round, &coded)?;
            if let Some(costs) = &mut self.costs {
                costs.add_tree(round, tree);
            }
            for set in validation.iter_mut() {
                set.add(&coded, tree)?;
            }
            meter.advance(1);
        }
        Ok(())
    }

    fn start(&mut self, round: u32) -> Result<()> {
        if self.prepared.coupled.is_some() {
            return self.worker.settle();
        }
        self.gradients = self.worker.update_gradients(round)?;
        if !self.gradients.are_finite() {
            return Err(prepare::invalid_start(self.request));
        }
        self.spin_guard = (self.is_alone && self.request.backend.is_none()).then(SpinGuard::new);
        Ok(())
    }

    fn couple(&mut self, round: u32, odds: Option<Scores>) -> Result<()> {
        if let Some(odds) = odds {
            self.worker.set_odds(odds);
        }
        self.gradients = self.worker.update_gradients(round)?;
        match self.gradients.are_finite() {
            true => Ok(()),
            false if round == 1 => Err(prepare::invalid_start(self.request)),
            false => Err(prepare::diverged(round - 1)),
        }
    }

    fn round(&mut self, round: u32) -> Result<Option<PartUpdate>> {
        self.spin_guard.iter().for_each(SpinGuard::wake);
        let Some(tree) = self.grow_tree(round)? else { return Ok(None) };
        if self.prepared.coupled.is_some() {
            self.worker.settle()?; // gradients follow when the other classes have their trees
            return Ok(Some(PartUpdate::Tree(tree)));
        }
        self.gradients = self.worker.update_gradients(round + 1)?;
        if !self.gradients.are_finite() {
            return Err(prepare::diverged(round));
        }
        Ok(Some(PartUpdate::Tree(tree)))
    }

    fn evaluate(&mut self, round: u32) -> Result<Vec<LogValue>> {
        let mut values = Vec::new();
        if self.prepared.traits.residuals {
            let (split, value) = ("train".to_owned(), self.gradients.rmse());
            values.push(LogValue { split, metric: Metric::Rmse, value });
        } else {
            values.extend(LogValue::of_means("train", &self.worker.metrics()?));
        }
        for set in &self.prepared.validation {
            if let Some(row) = set.data.not_finite(set.scores()) {
                return Err(diverged_on(&set.data.name, row, round));
            }
            values.extend(LogValue::of_means(&set.data.name, &set.evaluate()));
        }
        Ok(values)
    }

    fn training_scores(&self) -> Option<&Scores> {
        self.worker.scores()
    }

    fn validation_scores(&self, set: usize, _round: u32) -> Result<Cow<'_, Scores>> {
        Ok(Cow::Borrowed(self.prepared.validation[set].scores()))
    }

    fn leaves_threads_idle(&self) -> bool {
        self.request.backend.is_none()
    }

    fn can_stream(&self) -> bool {
        false
    }

    fn finish(&mut self, _last: u32) -> LearnerOutputs {
        LearnerOutputs::default()
    }

    fn warning(&self) -> Option<String> {
        self.costs.as_ref()?.warning()
    }

    fn no_split(&self) -> Error {
        no_split(self.request, &self.parameters.learner.tree, &self.prepared.data)
    }
}

/// Returns the rules by which splits are found and leaves get their values. `residuals` says whether the gradients are
/// those of the squared error.
fn split_rules(parameters: &BoostSettings, residuals: bool, scale: Scale) -> SplitRules {
    let learner = &parameters.learner;
    let newton = Divisor::Weight { lambda: learner.lambda_l2 };
    // The gradients of the squared error are weighted residuals, and least squares with weights divides by their sum.
    let least_squares = if residuals { Divisor::Weight { lambda: 0.0 } } else { Divisor::Rows };
    SplitRules {
        min_data: learner.tree.min_data_in_leaf as i64,
        min_to_split: learner.tree.min_data_to_split as i64,
        min_weight: learner.min_sum_hessian,
        min_gain: learner.tree.min_gain,
        missing: MissingSides::of(parameters.missing),
        split: match learner.split_by {
            SplitBy::Newton => newton,
            SplitBy::Gradient => least_squares,
            SplitBy::Sum => Divisor::One,
        },
        leaf: match learner.leaf {
            LeafStep::Newton => LeafRule::Quotient(newton),
            LeafStep::Mean => LeafRule::Quotient(least_squares),
            LeafStep::WeakRanker => LeafRule::WeakRanker,
        },
        scale,
    }
}

fn limits(parameters: &BoostSettings) -> TreeLimits {
    TreeLimits {
        depth: parameters.learner.tree.max_depth.unwrap_or(u32::MAX),
        order: match parameters.learner.num_leaves {
            Some(leaves) => Order::BestFirst { leaves },
            None => Order::Levels,
        },
    }
}

fn finder<C: Cell>(
    parameters: &BoostSettings,
    bounds: &Arc<WorkerBounds>,
    shapes: Option<&Arc<RootShapes>>,
    kept: KeptHistograms<C>,
) -> Box<dyn SplitFinder<C>> {
    match parameters.learner.candidates {
        BoostCandidates::Static { .. } => Box::new(StaticBins::new(kept)),
        BoostCandidates::Streaming(streaming) => {
            let rules = streaming_rules(streaming);
            Box::new(StreamingSplits::new(rules, bounds.clone(), kept, shapes.cloned()))
        }
        BoostCandidates::Exact => Box::new(ExactSplits),
    }
}

/// Returns the number of workers that build histograms of their own, which is 1 unless candidates are streaming.
fn workers(candidates: &BoostCandidates) -> usize {
    match candidates {
        BoostCandidates::Streaming(streaming) => streaming.workers as usize,
        BoostCandidates::Static { .. } | BoostCandidates::Exact => 1,
    }
}

/// Converts the parameters of streaming candidates to the rules of their histograms.
pub fn streaming_rules(parameters: StreamingParameters) -> StreamingRules {
    StreamingRules {
        centroids: parameters.max_bin as usize,
        grouped: parameters.value_groups > 0,
        workers: parameters.workers as usize,
    }
}
