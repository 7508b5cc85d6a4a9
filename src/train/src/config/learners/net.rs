//! Nets: parameters, their keys and checks.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind, Written};
use super::super::raw::RawParameters;
use super::super::sections::{
    LEARNING_RATE, NORMALISATION, OBJECTIVE, ObjectiveName, ObjectiveParameters, PAIRWISE, RELEVANCE, Section,
};
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::super::words::{NamedEnum, word};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal};
use planetree_base::error::Result;
use planetree_model::model::{Activation, FeatureNormalisation};

/// How the weights of a net are changed after a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Optimiser {
    /// Adam (Kingma & Ba 2015).
    #[default]
    Adam,
    /// The gradient times the learning rate.
    Sgd,
}

impl NamedEnum for Optimiser {
    const ALL: &'static [(&'static str, Self)] = &[("adam", Optimiser::Adam), ("sgd", Optimiser::Sgd)];
}

impl NamedEnum for Activation {
    const ALL: &'static [(&'static str, Self)] =
        &[("tanh", Activation::Tanh), ("relu", Activation::Relu), ("logistic", Activation::Logistic)];

    const ALIASES: &'static [(&'static str, Self)] = &[("sigmoid", Activation::Logistic)];
}

/// Parameters of nets.
#[derive(Debug, Clone, PartialEq)]
pub struct NetParameters {
    /// Training objective.
    pub objective: ObjectiveParameters,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// Number of units of each hidden layer.
    pub hidden: Vec<u32>,
    /// The function of hidden units.
    pub activation: Activation,
    /// How weights are changed after a batch.
    pub optimiser: Optimiser,
    /// Size of the steps.
    pub learning_rate: f64,
    /// Half this number times the sum of the squared weights is added to the mean loss of a query.
    pub lambda_l2: f64,
    /// Number of queries per batch; `None` puts all queries in one batch.
    pub batch_queries: Option<u32>,
    /// Number of nets that are trained from different initial weights.
    pub restarts: u32,
}

/// Training parameters of a net.
pub(crate) type NetSettings = Parameters<NetParameters>;

/// Parameters of nets, before validation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawNet {
    /// Number of units of each hidden layer.
    pub hidden: Vec<u32>,
    /// The function of hidden units.
    pub activation: Activation,
    /// How weights are changed after a batch.
    pub optimiser: Optimiser,
    /// Number of queries per batch; `None` puts all queries in one batch.
    pub batch_queries: Option<u32>,
    /// Number of nets that are trained from different initial weights.
    pub restarts: u32,
}

/// Nets.
pub(super) static NET: LearnerSpec = LearnerSpec {
    name: "net",
    aliases: &["neural-net", "mlp"],
    noun: "a net",
    summary: "feed-forward neural net",
    own: Some(&SECTION),
    uses: &[&OBJECTIVE, &RELEVANCE, &PAIRWISE, &NORMALISATION, &LEARNING_RATE],
    records: &[],
    omits: &[],
    objectives: &[
        ObjectiveName::RankNet,
        ObjectiveName::LambdaRank,
        ObjectiveName::ListNet,
        ObjectiveName::XeNdcg,
        ObjectiveName::GbRank,
        ObjectiveName::Squared,
        ObjectiveName::Logistic,
        ObjectiveName::QueryRmse,
    ],
    no_custom_objective: Some("nets use the objectives of planetree"),
    replaces_rounds: true,
    parameters,
};

/// The parameters that only nets use.
static SECTION: Section = Section { keys: KEYS, check, ..Section::PLAIN };

/// Maximum number of hidden layers.
const MOST_LAYERS: usize = 8;
/// Maximum number of units of a hidden layer.
const MOST_UNITS: u32 = 4096;

static KEYS: &[Key] = &[
    Key {
        name: "hidden_layers",
        aliases: &["hidden_layer_sizes", "hidden"],
        kind: KeyKind::Custom {
            expected: |_| "none, or the sizes of at most 8 layers such as 10 or 32,16, each from 1 to 4096",
            set: set_hidden,
            get: |raw| match raw.net.hidden.as_slice() {
                [] => "\"none\"".to_owned(),
                sizes => {
                    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
                    format!("\"{}\"", sizes.join(","))
                }
            },
        },
        default: "10",
        help: "Nets: units of each hidden layer, such as 10 or 32,16; none for a linear model",
        ..Key::PLAIN
    },
    Key {
        name: "activation",
        kind: word!(net.activation),
        default: "tanh",
        help: "Nets: function of hidden units",
        ..Key::PLAIN
    },
    Key {
        name: "optimiser",
        aliases: &["optimizer", "solver"],
        kind: word!(net.optimiser),
        default: "adam",
        help: "Nets: steps by Adam, or by the plain gradient (sgd)",
        ..Key::PLAIN
    },
    Key {
        name: "batch_queries",
        aliases: &["batch_size"],
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |raw, value| raw.net.batch_queries = value,
            get: |raw| raw.net.batch_queries,
        },
        default: "32",
        help: "Nets: queries per step, drawn again in every epoch; 0 takes all queries at once",
        ..Key::PLAIN
    },
    Key {
        name: "restarts",
        kind: KeyKind::Whole {
            range: 1..=1000,
            set: |raw, value| raw.net.restarts = value as u32,
            get: |raw| u64::from(raw.net.restarts),
        },
        default: "1",
        help: "Nets: train this many nets from different initial weights side by side, and keep the best one after each epoch",
        ..Key::PLAIN
    },
];

fn set_hidden(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    raw.net.hidden = hidden(written.text).ok_or(None)?;
    Ok(())
}

fn hidden(text: &str) -> Option<Vec<u32>> {
    if text.eq_ignore_ascii_case("none") {
        return Some(Vec::new());
    }
    let size = |size: &str| size.trim().parse().ok().filter(|size| (1..=MOST_UNITS).contains(size));
    let sizes: Vec<u32> = text.split(',').map(size).collect::<Option<_>>()?;
    (sizes.len() <= MOST_LAYERS).then_some(sizes)
}

/// Rejects the correction of position bias, which is learned from round to round.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.learner.name == NET.name && raw.objective.unbiased {
        return Err(settings.fault(
            "unbiased",
            "a net does not correct for position bias",
            "remove it, or set ensemble=boost",
        ));
    }
    Ok(())
}

fn parameters(raw: &RawParameters) -> LearnerParameters {
    let RawNet { hidden, activation, optimiser, batch_queries, restarts } = raw.net.clone();
    LearnerParameters::Net(NetParameters {
        objective: raw.objective.parameters(),
        normalisation: raw.normalisation,
        hidden,
        activation,
        optimiser,
        learning_rate: raw.learning_rate,
        lambda_l2: raw.objective.lambda_l2,
        batch_queries,
        restarts,
    })
}

impl LearnerConfig for NetParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &NET
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.objective.write(&self.objective);
        raw.objective.lambda_l2 = self.lambda_l2;
        raw.normalisation = self.normalisation;
        raw.learning_rate = self.learning_rate;
        raw.net = RawNet {
            hidden: self.hidden.clone(),
            activation: self.activation,
            optimiser: self.optimiser,
            batch_queries: self.batch_queries,
            restarts: self.restarts,
        };
    }

    fn draws(&self) -> bool {
        true
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        (self.objective != ObjectiveParameters::Squared).then_some(Refusal {
            problem: "classes are learned by squared error on 0 and 1",
            remedy: "set objective=squared",
        })
    }
}
