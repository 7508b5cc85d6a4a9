//! Trains a net, epoch by epoch.

use super::jobs::{NetGradients, NetMetrics, NetTarget};
use super::optimiser::OptimiserState;
use super::query::gradient_count;
use super::start::{batches, initial_layers};
use crate::config::NetSettings;
use crate::linear::{LinearJobs, SumScale};
use planetree_base::error::Result;
use planetree_base::wire::malformed;
use planetree_metric::{Mean, Metric};
use planetree_model::model::{NetFunction, NetInput, NetLayer};
use serde::{Deserialize, Serialize};

/// What nets are trained on.
pub(super) struct NetProblem<'a> {
    /// The parameters.
    pub settings: &'a NetSettings,
    /// The features and the objective.
    pub target: NetTarget,
    /// Runs jobs on the rows.
    pub jobs: LinearJobs<'a>,
    /// The numbers of the queries that can have gradients.
    pub queries: Vec<u64>,
    /// The bias of the output before the first epoch. `None` if training starts from scores, to which a net before its
    /// first epoch adds nothing.
    pub output: Option<f64>,
    /// Whether the bias of the output is trained. The loss of most objectives depends on differences of scores only, so that
    /// its gradient is nothing but rounding errors, which Adam would follow.
    pub trains_output: bool,
    /// The metrics to log, without values.
    pub metrics: Vec<Mean>,
}

/// A net in training.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TrainedNet {
    restart: u32,
    /// The weights.
    pub layers: Vec<NetLayer>,
    optimiser: OptimiserState,
    /// The bound that sums of gradients are rounded by. It follows from the largest gradient of a query so far.
    bound: f64,
}

impl TrainedNet {
    /// Returns whether the optimiser has a state for every weight.
    pub(super) fn is_valid(&self) -> bool {
        self.bound.is_finite() && self.optimiser.fits(gradient_count(&self.layers))
    }
}

/// A bound is raised by this factor beyond what is needed, so that it is raised rarely.
const MARGIN: f64 = 16.0;

/// Weights beyond this have diverged, long before they overflow.
const LARGEST_WEIGHT: f64 = 1e30;

/// Gradients beyond this have diverged: Adam adds up their squares.
const LARGEST_GRADIENT: f64 = 1e150;

impl NetProblem<'_> {
    /// Returns a net before the first epoch.
    pub(super) fn start(&self, restart: u32) -> TrainedNet {
        let features: Vec<u32> = self.target.plan.features.iter().map(|planned| planned.feature).collect();
        let layers = initial_layers(self.settings, restart, &features, self.output);
        let optimiser = OptimiserState::new(&self.settings.learner, gradient_count(&layers));
        TrainedNet { restart, layers, optimiser, bound: 1.0 }
    }

    /// Trains a net for an epoch. Returns false if a weight, a score or a gradient is no longer finite, or is about to
    /// overflow.
    pub(super) fn epoch(&self, net: &mut TrainedNet, epoch: u32) -> Result<bool> {
        let parameters = &self.settings.learner;
        for batch in batches(self.settings, net.restart, epoch, &self.queries) {
            let Some(mut gradient) = self.gradient(net, batch, epoch)? else { return Ok(false) };
            let mut place = 0;
            for layer in &net.layers {
                place += layer.biases.len();
                for weight in &layer.weights {
                    gradient[place] -= parameters.lambda_l2 * weight;
                    place += 1;
                }
            }
            if let Some(last) = net.layers.last().filter(|_| !self.trains_output) {
                let bias = gradient.len() - last.weights.len() - 1;
                gradient[bias] = 0.0;
            }
            net.optimiser.steps(parameters.learning_rate, &mut gradient);
            let weights =
                net.layers.iter_mut().flat_map(|layer| layer.biases.iter_mut().chain(&mut layer.weights));
            let mut is_finite = true;
            for (weight, step) in weights.zip(&gradient) {
                *weight += step;
                is_finite &= weight.abs() <= LARGEST_WEIGHT;
            }
            if !is_finite {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the mean of the gradients of a batch's queries, or `None` if it is not finite or too large.
    fn gradient(&self, net: &mut TrainedNet, batch: Vec<u64>, epoch: u32) -> Result<Option<Vec<f64>>> {
        let count = batch.len() as f64;
        let mut job = NetGradients {
            target: self.target.clone(),
            layers: net.layers.clone(),
            batch,
            round: epoch,
            bound: net.bound,
        };
        loop {
            let totals = self.jobs.run(&job)?;
            if totals.sums.count() != gradient_count(&net.layers) {
                return Err(malformed());
            }
            if totals.largest > LARGEST_GRADIENT {
                return Ok(None);
            }
            let needed = totals.largest * count;
            // The same comparison as in the job, which leaves out larger terms.
            if totals.largest <= job.bound / count {
                let scale = SumScale::of_bound(job.bound);
                let mean = |sum: usize| totals.sums.value(sum, scale) / count;
                return Ok(Some((0..totals.sums.count()).map(mean).collect()));
            }
            (net.bound, job.bound) = (needed * MARGIN, needed * MARGIN);
        }
    }

    /// Returns the metrics of the training rows, or `None` if a score is not finite.
    pub(super) fn means(&self, layers: &[NetLayer]) -> Result<Option<Vec<Mean>>> {
        let job = NetMetrics { target: self.target.clone(), layers: layers.to_vec() };
        let found = self.jobs.run(&job)?;
        let metrics: Vec<Metric> = self.metrics.iter().map(Mean::metric).collect();
        let means = found.means.total(&metrics)?;
        Ok(found.is_finite.then_some(means))
    }

    /// Returns the net of a model with these weights.
    pub(super) fn function(&self, layers: &[NetLayer]) -> NetFunction {
        let plan = &self.target.plan;
        let inputs = plan.features.iter().map(|planned| NetInput {
            feature: planned.feature,
            centre: planned.centre,
            spread: planned.spread,
            mean: planned.mean,
            deviation: planned.deviation,
        });
        let inputs = inputs.collect();
        NetFunction::new(plan.normalisation, self.target.activation, inputs, layers.to_vec(), plan.weight)
    }
}
