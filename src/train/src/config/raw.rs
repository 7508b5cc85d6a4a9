//! Holds the values of all parameters as they were parsed, by section. [`Parameters`] contains only those of the chosen
//! learner.

use super::learners::{LEARNERS, LearnerSpec, RawBoost, RawForest, RawNet, RawSvm};
use super::sections::{RawCandidates, RawListwise, RawObjective, RawRanking, blank_shared, blank_tree};
use super::{Parameters, TreeParameters, keys};
use planetree_model::model::FeatureNormalisation;

/// The values of all parameters. To add a learner with parameters of its own, add a field for them.
#[derive(Debug, Clone, PartialEq)]
pub struct RawParameters {
    /// The learner.
    pub learner: &'static LearnerSpec,
    /// Parameters of all learners.
    pub shared: Parameters<()>,
    /// Parameters of objectives.
    pub objective: RawObjective,
    /// Parameters for growing trees.
    pub tree: TreeParameters,
    /// Parameters of candidate splits.
    pub candidates: RawCandidates,
    /// Parameters of boosting.
    pub boost: RawBoost,
    /// Parameters of forests.
    pub forest: RawForest,
    /// Parameters of listwise trees.
    pub listwise: RawListwise,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// Shrinkage factor of trees, or size of the steps of nets.
    pub learning_rate: f64,
    /// Parameters of nets.
    pub net: RawNet,
    /// Parameters of SVMs.
    pub svm: RawSvm,
    /// Parameters of learners that optimise a ranking metric.
    pub ranking: RawRanking,
}

impl Default for RawParameters {
    /// Returns placeholder values, all of which are overwritten from the table of parameters.
    fn default() -> Self {
        RawParameters {
            learner: LEARNERS[0],
            shared: blank_shared(),
            objective: RawObjective::default(),
            tree: blank_tree(),
            candidates: RawCandidates::default(),
            boost: RawBoost::default(),
            forest: RawForest::default(),
            listwise: RawListwise::default(),
            normalisation: FeatureNormalisation::None,
            learning_rate: 0.0,
            net: RawNet::default(),
            svm: RawSvm::default(),
            ranking: RawRanking::default(),
        }
    }
}

impl RawParameters {
    /// Returns parameters with every value at its default.
    pub fn with_defaults() -> Self {
        let mut raw = RawParameters::default();
        keys::keys().filter(|key| !key.default.is_empty()).for_each(|key| key.reset(&mut raw));
        raw
    }

    /// Converts to the parameters of the chosen learner. Validation has already rejected combinations that no learner
    /// supports.
    pub fn into_parameters(self) -> Parameters {
        let parameters = self.shared.with((self.learner.parameters)(&self));
        let metrics = parameters.metrics.iter().map(|metric| parameters.convention.meant(*metric)).collect();
        Parameters { metrics, ..parameters }
    }

    /// Converts parameters back, to print them. Parameters that the learner does not use have their neutral values.
    pub fn of(parameters: &Parameters) -> Self {
        let learner = parameters.learner.config();
        let mut raw = RawParameters {
            learner: learner.spec(),
            shared: parameters.with(()),
            ..RawParameters::with_defaults()
        };
        raw.learner.foreign().for_each(|key| key.neutralise(&mut raw));
        learner.write(&mut raw);
        raw
    }
}
