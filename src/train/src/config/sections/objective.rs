//! Objectives and their parameters.

use super::super::keys::{Key, KeyKind, NOT_NEGATIVE, Reals, Written};
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::super::words::{NamedEnum, real, word};
use super::Section;
use planetree_base::error::Result;
use planetree_metric::{Gain, Metric};

/// Training objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveName {
    /// Regression on the labels with squared error.
    Squared,
    /// Classification as relevant or not, with log loss.
    Logistic,
    /// Pairwise ranking with logistic loss.
    RankNet,
    /// RankNet with each pair weighted by how much a metric changes when the two documents are swapped.
    LambdaRank,
    /// Pairwise ranking with squared hinge loss.
    GbRank,
    /// Listwise cross entropy that bounds NDCG.
    XeNdcg,
    /// Listwise cross entropy between the softmax of the labels and the softmax of the scores.
    ListNet,
    /// Squared error after subtracting the mean error of each query, so that only differences within a query count.
    QueryRmse,
    /// Pairwise ranking with exponential loss.
    RankBoost,
    /// Multinomial log loss of the grades, with a part per grade.
    SoftmaxClasses,
}

impl NamedEnum for ObjectiveName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("squared", ObjectiveName::Squared),
        ("logistic", ObjectiveName::Logistic),
        ("ranknet", ObjectiveName::RankNet),
        ("lambdarank", ObjectiveName::LambdaRank),
        ("gbrank", ObjectiveName::GbRank),
        ("xendcg", ObjectiveName::XeNdcg),
        ("listnet", ObjectiveName::ListNet),
        ("query_rmse", ObjectiveName::QueryRmse),
        ("rankboost", ObjectiveName::RankBoost),
        ("softmax_classes", ObjectiveName::SoftmaxClasses),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("regression", ObjectiveName::Squared),
        ("regression_l2", ObjectiveName::Squared),
        ("l2", ObjectiveName::Squared),
        ("mse", ObjectiveName::Squared),
        ("mean_squared_error", ObjectiveName::Squared),
        ("squared_error", ObjectiveName::Squared),
        ("reg:squarederror", ObjectiveName::Squared),
        ("binary", ObjectiveName::Logistic),
        ("binary:logistic", ObjectiveName::Logistic),
        ("rank:pairwise", ObjectiveName::RankNet),
        ("rank:ndcg", ObjectiveName::LambdaRank),
        ("lambdamart", ObjectiveName::LambdaRank),
        ("rank_xendcg", ObjectiveName::XeNdcg),
        ("xe_ndcg", ObjectiveName::XeNdcg),
        ("xe_ndcg_mart", ObjectiveName::XeNdcg),
        ("softmax", ObjectiveName::ListNet),
        ("querysoftmax", ObjectiveName::ListNet),
        ("queryrmse", ObjectiveName::QueryRmse),
        ("multiclass", ObjectiveName::SoftmaxClasses),
        ("multi:softprob", ObjectiveName::SoftmaxClasses),
        ("multi:softmax", ObjectiveName::SoftmaxClasses),
        ("mcrank", ObjectiveName::SoftmaxClasses),
    ];
}

/// Parameters of objectives, before validation.
#[derive(Debug, Clone, PartialEq)]
pub struct RawObjective {
    /// The objective.
    pub name: ObjectiveName,
    /// The metric that LambdaRank optimises.
    pub lambda_metric: Metric,
    /// Uses only pairs with at least one of this many top-scored documents; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Steepness of the sigmoid in the pairwise loss.
    pub sigma: f64,
    /// Whether pair weights are divided by the score distance, and the gradients of a query are normalised by their
    /// total.
    pub lambda_norm: bool,
    /// Score difference that GBRANK requires between the two documents of a pair.
    pub margin: f64,
    /// Gain of each label, for LambdaRank and listwise trees.
    pub label_gain: Gain,
    /// Minimum label that counts as relevant.
    pub relevant_from: f32,
    /// Whether labels are clicks and the objective corrects for position bias.
    pub unbiased: bool,
    /// Regularisation of the position bias; larger values weaken the correction.
    pub bias_norm: f64,
    /// L2 regularisation of leaf values or weights.
    pub lambda_l2: f64,
}

impl Default for RawObjective {
    fn default() -> Self {
        RawObjective {
            name: ObjectiveName::Squared,
            lambda_metric: Metric::Ndcg(None),
            truncation_level: None,
            sigma: 0.0,
            lambda_norm: false,
            margin: 0.0,
            label_gain: Gain::Exp2,
            relevant_from: 0.0,
            unbiased: false,
            bias_norm: 0.0,
            lambda_l2: 0.0,
        }
    }
}

/// Loss of a document pair as a function of the score difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairwiseLoss {
    /// Logistic loss of RankNet and LambdaRank.
    Logistic {
        /// Steepness of the sigmoid.
        sigma: f64,
        /// Whether labels are clicks and the objective corrects for position bias.
        unbiased: bool,
        /// Regularisation of the position bias; larger values weaken the correction.
        bias_norm: f64,
    },
    /// Squared hinge loss of GBRANK.
    Hinge {
        /// Score difference that is required between the two documents of a pair.
        margin: f64,
    },
}

/// Parameters of pairwise objectives.
#[derive(Debug, Clone, PartialEq)]
pub struct PairwiseParameters {
    /// Loss of a pair.
    pub loss: PairwiseLoss,
    /// Metric that LambdaRank optimises; `None` weights all pairs equally.
    pub metric: Option<Metric>,
    /// Uses only pairs with at least one of this many top-scored documents; `None` uses all pairs.
    pub truncation_level: Option<u32>,
    /// Whether pair weights are divided by the score distance, and the gradients of a query are normalised by their
    /// total.
    pub normalised: bool,
    /// Gain of each label.
    pub label_gain: Gain,
    /// Minimum label that counts as relevant.
    pub relevant_from: f32,
}

/// The objective of boosting; see [`ObjectiveName`].
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectiveParameters {
    /// Squared error.
    Squared,
    /// Log loss of binary relevance.
    Logistic {
        /// Minimum label that counts as relevant.
        relevant_from: f32,
    },
    /// RankNet, LambdaRank and GBRANK.
    Pairwise(PairwiseParameters),
    /// Listwise cross entropy that bounds NDCG.
    XeNdcg,
    /// Listwise cross entropy between the softmax of the labels and the softmax of the scores.
    ListNet,
    /// Squared error after subtracting the mean error of each query.
    QueryRmse,
    /// Exponential loss of pairs.
    RankBoost,
    /// Multinomial log loss of the grades.
    SoftmaxClasses,
}

impl ObjectiveParameters {
    /// Returns the name of the objective.
    pub fn name(&self) -> ObjectiveName {
        match self {
            ObjectiveParameters::Squared => ObjectiveName::Squared,
            ObjectiveParameters::Logistic { .. } => ObjectiveName::Logistic,
            ObjectiveParameters::Pairwise(pairwise) => match (pairwise.loss, pairwise.metric) {
                (PairwiseLoss::Hinge { .. }, _) => ObjectiveName::GbRank,
                (PairwiseLoss::Logistic { .. }, None) => ObjectiveName::RankNet,
                (PairwiseLoss::Logistic { .. }, Some(_)) => ObjectiveName::LambdaRank,
            },
            ObjectiveParameters::XeNdcg => ObjectiveName::XeNdcg,
            ObjectiveParameters::ListNet => ObjectiveName::ListNet,
            ObjectiveParameters::QueryRmse => ObjectiveName::QueryRmse,
            ObjectiveParameters::RankBoost => ObjectiveName::RankBoost,
            ObjectiveParameters::SoftmaxClasses => ObjectiveName::SoftmaxClasses,
        }
    }
}

impl RawObjective {
    /// Returns the parameters of the chosen objective.
    pub fn parameters(&self) -> ObjectiveParameters {
        let pairwise = |loss: PairwiseLoss, metric: Option<Metric>| {
            ObjectiveParameters::Pairwise(PairwiseParameters {
                loss,
                metric,
                truncation_level: self.truncation_level,
                normalised: self.lambda_norm,
                label_gain: self.label_gain.clone(),
                relevant_from: self.relevant_from,
            })
        };
        let logistic =
            PairwiseLoss::Logistic { sigma: self.sigma, unbiased: self.unbiased, bias_norm: self.bias_norm };
        match self.name {
            ObjectiveName::Squared => ObjectiveParameters::Squared,
            ObjectiveName::Logistic => ObjectiveParameters::Logistic { relevant_from: self.relevant_from },
            ObjectiveName::RankNet => pairwise(logistic, None),
            ObjectiveName::LambdaRank => pairwise(logistic, Some(self.lambda_metric)),
            ObjectiveName::GbRank => pairwise(PairwiseLoss::Hinge { margin: self.margin }, None),
            ObjectiveName::XeNdcg => ObjectiveParameters::XeNdcg,
            ObjectiveName::ListNet => ObjectiveParameters::ListNet,
            ObjectiveName::QueryRmse => ObjectiveParameters::QueryRmse,
            ObjectiveName::RankBoost => ObjectiveParameters::RankBoost,
            ObjectiveName::SoftmaxClasses => ObjectiveParameters::SoftmaxClasses,
        }
    }

    /// Sets the objective and its parameters.
    pub fn write(&mut self, objective: &ObjectiveParameters) {
        self.name = objective.name();
        match objective {
            ObjectiveParameters::Logistic { relevant_from } => self.relevant_from = *relevant_from,
            ObjectiveParameters::Pairwise(pairwise) => {
                match pairwise.loss {
                    PairwiseLoss::Hinge { margin } => self.margin = margin,
                    PairwiseLoss::Logistic { sigma, unbiased, bias_norm } => {
                        (self.sigma, self.unbiased, self.bias_norm) = (sigma, unbiased, bias_norm);
                    }
                }
                self.truncation_level = pairwise.truncation_level;
                self.lambda_norm = pairwise.normalised;
                if let Some(metric) = pairwise.metric {
                    self.lambda_metric = metric;
                    self.label_gain = pairwise.label_gain.clone();
                    self.relevant_from = pairwise.relevant_from;
                }
            }
            ObjectiveParameters::Squared
            | ObjectiveParameters::XeNdcg
            | ObjectiveParameters::ListNet
            | ObjectiveParameters::QueryRmse
            | ObjectiveParameters::RankBoost
            | ObjectiveParameters::SoftmaxClasses => {}
        }
    }
}

/// The objective and its regularisation.
pub(crate) static OBJECTIVE: Section = Section { keys: OBJECTIVE_KEYS, ..Section::PLAIN };

/// Which labels are relevant, for objectives that need to know.
pub(crate) static RELEVANCE: Section = Section { keys: RELEVANCE_KEYS, depends: true, ..Section::PLAIN };

/// Parameters of pairwise objectives. Some apply to listwise trees, too.
pub(crate) static PAIRWISE: Section = Section { keys: PAIRWISE_KEYS, depends: true, check };

static OBJECTIVE_KEYS: &[Key] = &[
    Key {
        name: "objective",
        aliases: &["objective_type", "application", "app", "loss"],
        kind: word!(objective.name),
        default: "squared",
        help: "Training objective: regression on the labels, a pairwise or listwise ranking loss, or a classification of the grades",
        ..Key::PLAIN
    },
    Key {
        name: "lambda_l2",
        aliases: &["lambda", "reg_lambda", "l2_regularization"],
        kind: real!(objective.lambda_l2, NOT_NEGATIVE),
        default: "0.0",
        help: "L2 regularisation of leaf values, or of the weights of a linear model or net",
        ..Key::PLAIN
    },
];

static RELEVANCE_KEYS: &[Key] = &[Key {
    name: "relevant_from",
    kind: KeyKind::Real {
        range: Reals { zero: true, most: 1e30 },
        set: |raw, value| raw.objective.relevant_from = value as f32,
        get: |raw| f64::from(raw.objective.relevant_from),
    },
    default: "1.0",
    help: "Minimum label that counts as relevant, for the logistic objective and for LambdaRank on binary metrics such as MAP",
    ..Key::PLAIN
}];

static PAIRWISE_KEYS: &[Key] = &[
    Key {
        name: "lambda_metric",
        aliases: &["lambdarank_target"],
        kind: KeyKind::Metric {
            set: |raw, metric| raw.objective.lambda_metric = metric,
            get: |raw| raw.objective.lambda_metric,
        },
        default: "ndcg",
        help: "LambdaRank only: metric whose change under a swap weights each pair; any metric except rmse",
        ..Key::PLAIN
    },
    Key {
        name: "truncation_level",
        aliases: &["lambdarank_truncation_level", "lambdarank_num_pair_per_sample", "max_position"],
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |raw, value| raw.objective.truncation_level = value,
            get: |raw| raw.objective.truncation_level,
        },
        default: "30",
        help: "Pairwise objectives: use pairs with at least one document in the top K by score; 0 uses all pairs",
        ..Key::PLAIN
    },
    Key {
        name: "sigma",
        aliases: &["sigmoid"],
        kind: real!(objective.sigma, Reals { zero: false, most: 1000.0 }),
        default: "1.0",
        help: "RankNet and LambdaRank: steepness of the sigmoid in the pairwise loss",
        ..Key::PLAIN
    },
    Key {
        name: "lambda_norm",
        aliases: &["lambdarank_norm", "lambdarank_normalization"],
        kind: KeyKind::Flag {
            set: |raw, value| raw.objective.lambda_norm = value,
            get: |raw| raw.objective.lambda_norm,
        },
        default: "true",
        help: "Pairwise objectives: normalise pair weights by score distance, and the gradients of each query by their total",
        ..Key::PLAIN
    },
    Key {
        name: "margin",
        aliases: &["tau"],
        kind: real!(objective.margin, Reals { zero: false, most: 1e6 }),
        default: "1.0",
        help: "GBRANK: required score margin between the two documents of a pair",
        ..Key::PLAIN
    },
    Key {
        name: "label_gain",
        aliases: &["gain"],
        kind: KeyKind::Custom {
            expected: |_| "exp2, linear, a table such as 0,1,3,7,15, or an expression",
            set: set_label_gain,
            get: |raw| format!("\"{}\"", raw.objective.label_gain),
        },
        default: "exp2",
        help: "LambdaRank on NDCG and listwise trees: gain of each label, as exp2, linear, a table such as 0,1,3,7,15, or an expression",
        ..Key::PLAIN
    },
    Key {
        name: "unbiased",
        aliases: &["lambdarank_unbiased"],
        kind: KeyKind::Flag {
            set: |raw, value| raw.objective.unbiased = value,
            get: |raw| raw.objective.unbiased,
        },
        default: "false",
        help: "RankNet and LambdaRank: treat labels as clicks and correct for position bias, using the position column",
        ..Key::PLAIN
    },
    Key {
        name: "bias_norm",
        aliases: &["lambdarank_bias_norm"],
        kind: real!(objective.bias_norm, NOT_NEGATIVE),
        default: "1.0",
        help: "Unbiased only: regularisation of the position bias; larger values weaken the correction",
        ..Key::PLAIN
    },
];

fn set_label_gain(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    // Lists from TOML are separated by commas, but gain tables by colons.
    raw.objective.label_gain =
        Gain::parse(&written.text.replace(',', ":")).map_err(|problem| ValueError {
            problem,
            remedy: "write exp2, linear, a table such as 0,1,3,7,15, or an expression such as 3^l-1"
                .to_owned(),
        })?;
    Ok(())
}

/// Rejects parameters that belong to other objectives if the user set them. Values from presets are reset to the
/// default without an error.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    use ObjectiveName::{GbRank, LambdaRank, Logistic, RankNet};
    let objective = raw.objective.name;
    let belongs: [(&str, &[ObjectiveName]); 9] = [
        ("lambda_metric", &[LambdaRank]),
        ("truncation_level", &[LambdaRank, RankNet, GbRank]),
        ("sigma", &[LambdaRank, RankNet]),
        ("lambda_norm", &[LambdaRank, RankNet, GbRank]),
        ("margin", &[GbRank]),
        ("label_gain", &[LambdaRank]),
        ("relevant_from", &[LambdaRank, Logistic]),
        ("unbiased", &[LambdaRank, RankNet]),
        ("bias_norm", &[LambdaRank, RankNet]),
    ];
    for (name, objectives) in belongs {
        let Some(key) = Key::named(name).filter(|_| !objectives.contains(&objective)) else { continue };
        if raw.learner.has_own(name) || (name == "label_gain" && raw.is_listwise()) {
            continue;
        }
        let given = key.print(raw);
        key.reset(raw);
        if settings.is_chosen(name) && given != key.print(raw) {
            let names: Vec<&str> = objectives.iter().map(|objective| objective.name()).collect();
            return Err(settings.fault(
                name,
                &format!("objective {} does not use {name}", objective.name()),
                &format!("remove it, or set objective={}", names.join(" or objective=")),
            ));
        }
    }
    if objective == LambdaRank && raw.objective.lambda_metric == Metric::Rmse {
        return Err(settings.fault(
            "lambda_metric",
            &format!("{} does not depend on the ranking", raw.objective.lambda_metric),
            "set lambda_metric=ndcg, err or map, for example",
        ));
    }
    Ok(())
}
