//! What the learners that optimise a ranking metric have in common.

use super::super::raw::RawParameters;
use super::super::sections::RawRanking;
use super::{LearnerConfig, LearnerSpec, Refusal};
use planetree_metric::Metric;
use planetree_model::model::FeatureNormalisation;

/// Parameters of a learner that optimises a ranking metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRanker<O> {
    /// The metric to optimise.
    pub metric: Metric,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// How much the metric must change; see the parameters of each learner.
    pub tolerance: f64,
    /// The parameters that only this learner has.
    pub own: O,
}

/// The parameters that only one learner of a ranking metric has.
pub(crate) trait RankerParameters: Clone + Send + Sync + 'static {
    /// The learner.
    const SPEC: &'static LearnerSpec;
    /// Whether a training run with another seed gives another model.
    const DRAWS: bool;

    /// Sets the values of the parameters.
    fn write(&self, raw: &mut RawRanking);
}

impl<O> MetricRanker<O> {
    /// Takes the parameters of all learners of a ranking metric, and adds those of one.
    pub(super) fn of(raw: &RawParameters, own: O) -> Self {
        let RawRanking { metric, tolerance, .. } = raw.ranking;
        MetricRanker { metric, normalisation: raw.normalisation, tolerance, own }
    }
}

impl<O: RankerParameters> LearnerConfig for MetricRanker<O> {
    fn spec(&self) -> &'static LearnerSpec {
        O::SPEC
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.normalisation = self.normalisation;
        raw.ranking.metric = self.metric;
        raw.ranking.tolerance = self.tolerance;
        self.own.write(&mut raw.ranking);
    }

    fn draws(&self) -> bool {
        O::DRAWS
    }

    fn refuses_to_follow(&self) -> Option<Refusal> {
        self.refuses_start_model()
    }

    fn refuses_start_model(&self) -> Option<Refusal> {
        Some(Refusal {
            problem: "a ranker of train_metric cannot continue from the scores of another model",
            remedy: "train it by itself, and combine models with `planetree blend`",
        })
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        Some(Refusal {
            problem: "a ranker of train_metric has no probabilities of classes",
            remedy: "use another ensemble",
        })
    }
}
