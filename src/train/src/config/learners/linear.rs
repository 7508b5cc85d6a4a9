//! Linear models: parameters.

use super::super::Parameters;
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, OBJECTIVE, ObjectiveName, RELEVANCE};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal, svm};
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
    /// Half the squared hinge loss of binary relevance.
    Hinge {
        /// Minimum label that counts as relevant.
        relevant_from: f32,
        /// Number of nonrelevant documents that are drawn for each relevant one. `None` uses all of them.
        undersample: Option<f64>,
    },
}

/// L2 regularisation of the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinearPenalty {
    /// The sum of the losses of all rows plus half this number times the sum of the squared weights is minimised.
    Lambda(f64),
    /// This number times the mean loss plus half the sum of the squared weights is minimised. `None` if several numbers
    /// are tried.
    Cost(Option<f64>),
}

/// Parameters of linear models.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearParameters {
    /// The loss.
    pub loss: LinearLoss,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// L2 regularisation of the weights.
    pub penalty: LinearPenalty,
}

/// Training parameters of a linear model.
pub type LinearSettings = Parameters<LinearParameters>;

/// Linear models.
pub(super) static LINEAR: LearnerSpec = LearnerSpec {
    name: "linear",
    aliases: &["gblinear"],
    noun: "a linear model",
    summary: "weighted sum of features",
    own: None,
    uses: &[&OBJECTIVE, &RELEVANCE, &NORMALISATION],
    records: &[],
    omits: &[],
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
        penalty: LinearPenalty::Lambda(raw.objective.lambda_l2),
    })
}

impl LearnerConfig for LinearParameters {
    fn spec(&self) -> &'static LearnerSpec {
        match self.loss {
            LinearLoss::Squared | LinearLoss::Logistic { .. } => &LINEAR,
            LinearLoss::Hinge { .. } => &svm::SVM,
        }
    }

    fn write(&self, raw: &mut RawParameters) {
        match self.penalty {
            LinearPenalty::Lambda(lambda) => raw.objective.lambda_l2 = lambda,
            LinearPenalty::Cost(cost) => raw.svm.cost = cost,
        }
        raw.normalisation = self.normalisation;
        raw.objective.name = match &self.loss {
            LinearLoss::Squared => ObjectiveName::Squared,
            LinearLoss::Hinge { relevant_from, undersample } => {
                raw.objective.relevant_from = *relevant_from;
                raw.svm.undersample = undersample.unwrap_or_default();
                ObjectiveName::Squared
            }
            LinearLoss::Logistic { relevant_from } => {
                raw.objective.relevant_from = *relevant_from;
                ObjectiveName::Logistic
            }
        };
    }

    fn draws(&self) -> bool {
        matches!(self.loss, LinearLoss::Hinge { undersample: Some(_), .. })
    }

    fn needs_validation(&self) -> Option<Refusal> {
        (self.penalty == LinearPenalty::Cost(None)).then_some(svm::NO_VALIDATION)
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        (self.loss != LinearLoss::Squared).then_some(Refusal {
            remedy: match self.penalty {
                LinearPenalty::Lambda(_) => "set objective=squared",
                LinearPenalty::Cost(_) => svm::NO_CLASSES.remedy,
            },
            ..svm::NO_CLASSES
        })
    }
}
