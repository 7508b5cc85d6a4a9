//! Linear models: parameters.

use super::super::Parameters;
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, OBJECTIVE, ObjectiveName, RELEVANCE};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal};
use planetree_model::model::FeatureNormalisation;
use serde::{Deserialize, Serialize};

/// The loss of a linear model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LinearLoss {
    /// Half the squared error.
    Squared,
    /// Log loss of binary relevance.
    Logistic {
        /// Minimum label that counts as relevant.
        relevant_from: f32,
    },
}

/// Parameters of linear models.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearParameters {
    /// The loss.
    pub loss: LinearLoss,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// L2 regularisation of the weights: the loss includes half this number times the sum of their squares.
    pub lambda_l2: f64,
}

/// Training parameters of a linear model.
pub type LinearSettings = Parameters<LinearParameters>;

/// Linear models.
pub static LINEAR: LearnerSpec = LearnerSpec {
    name: "linear",
    aliases: &["gblinear"],
    noun: "a linear model",
    summary: "weighted sum of features",
    own: None,
    uses: &[&OBJECTIVE, &RELEVANCE, &NORMALISATION],
    records: &[],
    objectives: &[ObjectiveName::Squared, ObjectiveName::Logistic],
    no_custom_objective: Some("linear models have objectives of their own"),
    replaces_rounds: true,
    parameters,
};

fn parameters(raw: &RawParameters) -> LearnerParameters {
    LearnerParameters::Linear(LinearParameters {
        loss: match raw.objective.name {
            ObjectiveName::Logistic => LinearLoss::Logistic { relevant_from: raw.objective.relevant_from },
            _ => LinearLoss::Squared,
        },
        normalisation: raw.normalisation,
        lambda_l2: raw.objective.lambda_l2,
    })
}

impl LearnerConfig for LinearParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &LINEAR
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.objective.lambda_l2 = self.lambda_l2;
        raw.normalisation = self.normalisation;
        raw.objective.name = match &self.loss {
            LinearLoss::Squared => ObjectiveName::Squared,
            LinearLoss::Logistic { relevant_from } => {
                raw.objective.relevant_from = *relevant_from;
                ObjectiveName::Logistic
            }
        };
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        (self.loss != LinearLoss::Squared).then_some(Refusal {
            problem: "classes are learned by squared error on 0 and 1",
            remedy: "set objective=squared",
        })
    }
}
