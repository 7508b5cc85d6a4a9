//! Gradient boosting: each round fits a tree to the gradients of all rows and adds it to the scores.

mod gradients;
mod local_worker;
mod prepare;
mod spin_guard;
mod whole_scores;

pub use {gradients::RowGradients, local_worker::LocalWorker, local_worker::WorkerState};

use crate::config::{BoostCandidates, BoostSettings, LeafStep, SplitBy, StreamingParameters};
use crate::driver::{
    BackendCell, BoostWorker, GradientSummary, Learner, LearnerOutputs, LogValue, Observer, Outcome,
    TrainRequest, TreeStart, misfit, no_split,
};
use crate::tree::{
    CarriedRoot, Cell, CodedTree, Cover, Divisor, ExactSplits, FeatureChoice, GrowContext, KeptHistograms,
    Order, Scale, SplitFinder, SplitRules, StaticBins, StreamingRules, StreamingSplits, TreeLimits,
    carrying_pays, grow,
};
use planetree_base::error::{Error, Result};
use planetree_base::progress::Meter;
use planetree_metric::Metric;
use planetree_model::model::Tree;
use prepare::PreparedBoosting;
use spin_guard::SpinGuard;

/// Trains a boosted model.
pub fn train(
    request: &TrainRequest,
    parameters: &BoostSettings,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let (training, prepared) = prepare::prepare(request, parameters, observer)?;
    match prepared.traits.weighted {
        true => training.run(&mut BoostLearner::<[i64; 2]>::new(request, parameters, prepared), observer),
        false => training.run(&mut BoostLearner::<i64>::new(request, parameters, prepared), observer),
    }
}

/// Grows one tree per round from the gradients of the current scores.
struct BoostLearner<'a, C: Cell> {
    request: &'a TrainRequest,
    parameters: &'a BoostSettings,
    prepared: PreparedBoosting,
    worker: Box<dyn BoostWorker<C>>,
    /// The summary of the gradients for the next tree.
    gradients: GradientSummary,
    /// The root histogram of the next tree, if it could be derived from the previous tree.
    root: Option<CarriedRoot<C>>,
    /// Keeps threads spinning between steps. `None` if other processes hold the rows.
    spin_guard: Option<SpinGuard>,
}

impl<'a, C: BackendCell> BoostLearner<'a, C> {
    fn new(request: &'a TrainRequest, parameters: &'a BoostSettings, mut prepared: PreparedBoosting) -> Self {
        let worker = prepared.worker(request, parameters);
        let gradients = GradientSummary::default();
        BoostLearner { request, parameters, prepared, worker, gradients, root: None, spin_guard: None }
    }

    /// Grows a tree and adds it to all scores. Returns `None` if no split was possible.
    fn grow_tree(&mut self, round: u32) -> Result<Option<Tree>> {
        let parameters = self.parameters;
        let PreparedBoosting { data, traits, validation, .. } = &mut self.prepared;
        let tree = u64::from(round);
        let scale = self.gradients.scale(data.row_count());
        let choice =
            FeatureChoice::draw(&parameters.learner.tree, parameters.seed, &data.binning.layout, tree);
        let groups = choice.groups(&data.binning.layout);
        let all_groups = groups.len() == data.binning.layout.groups.len();
        self.worker.start_tree(&TreeStart { tree, scale, groups, limit: None })?;
        let rules = split_rules(parameters, traits.residuals, scale);
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
        let coded = CodedTree::of_grown(&grown, &rules, parameters.learner.learning_rate, in_units, cover);
        let features = data.binning.features.len();
        let draws = traits.draws
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
        for set in validation {
            set.add(&coded, &tree)?;
        }
        Ok(Some(tree))
    }
}

impl<C: BackendCell> Learner for BoostLearner<'_, C> {
    fn replay(&mut self, trees: &[Tree], meter: &dyn Meter) -> Result<()> {
        let PreparedBoosting { data, validation, .. } = &mut self.prepared;
        for (round, tree) in (1..).zip(trees) {
            let coded = CodedTree::of_model(tree, &data.binning).ok_or_else(misfit)?;
            self.worker.add_earlier(round, &coded)?;
            for set in validation.iter_mut() {
                set.add(&coded, tree)?;
            }
            meter.advance(1);
        }
        Ok(())
    }

    fn start(&mut self, round: u32) -> Result<()> {
        self.gradients = self.worker.update_gradients(round)?;
        if !self.gradients.are_finite() {
            return Err(prepare::invalid_start(self.request));
        }
        self.spin_guard = self.request.backend.is_none().then(SpinGuard::new);
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<Option<Tree>> {
        self.spin_guard.iter().for_each(SpinGuard::wake);
        let Some(tree) = self.grow_tree(round)? else { return Ok(None) };
        self.gradients = self.worker.update_gradients(round + 1)?;
        if !self.gradients.are_finite() {
            return Err(prepare::diverged(round));
        }
        Ok(Some(tree))
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
            if let Some(row) = set.not_finite() {
                return Err(prepare::diverged_on(&set.name, row, round));
            }
            values.extend(LogValue::of_means(&set.name, &set.evaluate()));
        }
        Ok(values)
    }

    fn can_stream(&self) -> bool {
        false
    }

    fn finish(&mut self, _last: u32) -> LearnerOutputs {
        LearnerOutputs::default()
    }

    fn no_split(&self) -> Error {
        no_split(self.request, &self.prepared.data)
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
        split: match learner.split_by {
            SplitBy::Newton => newton,
            SplitBy::Gradient => least_squares,
        },
        leaf: match learner.leaf {
            LeafStep::Newton => newton,
            LeafStep::Mean => least_squares,
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

fn finder<C: Cell>(parameters: &BoostSettings, kept: KeptHistograms<C>) -> Box<dyn SplitFinder<C>> {
    match parameters.learner.candidates {
        BoostCandidates::Static { .. } => Box::new(StaticBins::new(kept)),
        BoostCandidates::Streaming(streaming) => {
            Box::new(StreamingSplits::new(streaming_rules(streaming), kept))
        }
        BoostCandidates::Exact => Box::new(ExactSplits),
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
