//! AdaRank: parameters and their keys.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind};
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, RANKING, Section};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal};
use planetree_metric::Metric;
use planetree_model::model::FeatureNormalisation;

/// Parameters of AdaRank.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaRankParameters {
    /// The metric to optimise.
    pub metric: Metric,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// Training ends when a round lowers the metric by at least this much.
    pub tolerance: f64,
    /// Maximum number of rounds in a row that select the same feature.
    pub max_repeats: u32,
}

/// Training parameters of AdaRank.
pub(crate) type AdaRankSettings = Parameters<AdaRankParameters>;

/// AdaRank.
pub(super) static ADARANK: LearnerSpec = LearnerSpec {
    name: "adarank",
    aliases: &[],
    noun: "AdaRank",
    summary: "boosting of features for a ranking metric",
    own: Some(&SECTION),
    uses: &[&RANKING, &NORMALISATION],
    records: &[],
    objectives: &[],
    no_custom_objective: Some("AdaRank optimises train_metric"),
    replaces_rounds: true,
    parameters,
};

/// The parameters that only AdaRank uses.
static SECTION: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "max_repeats",
    kind: KeyKind::Whole {
        range: 1..=1_000_000,
        set: |raw, value| raw.ranking.max_repeats = value as u32,
        get: |raw| u64::from(raw.ranking.max_repeats),
    },
    default: "5",
    help: "AdaRank: maximum rounds in a row that select the same feature",
    ..Key::PLAIN
}];

fn parameters(raw: &RawParameters) -> LearnerParameters {
    LearnerParameters::AdaRank(AdaRankParameters {
        metric: raw.ranking.metric,
        normalisation: raw.normalisation,
        tolerance: raw.ranking.tolerance,
        max_repeats: raw.ranking.max_repeats,
    })
}

/// Why a learner that optimises a metric cannot continue from other scores.
pub(super) const NO_START: Refusal = Refusal {
    problem: "a ranker of train_metric cannot continue from the scores of another model",
    remedy: "train it by itself, and combine models with `planetree blend`",
};

/// Why a learner that optimises a metric cannot learn classes.
pub(super) const NO_CLASSES: Refusal = Refusal {
    problem: "a ranker of train_metric has no probabilities of classes",
    remedy: "use another ensemble",
};

impl LearnerConfig for AdaRankParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &ADARANK
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.normalisation = self.normalisation;
        raw.ranking.metric = self.metric;
        raw.ranking.tolerance = self.tolerance;
        raw.ranking.max_repeats = self.max_repeats;
    }

    fn refuses_to_follow(&self) -> Option<Refusal> {
        Some(NO_START)
    }

    fn refuses_start_model(&self) -> Option<Refusal> {
        Some(NO_START)
    }

    fn refuses_classes(&self) -> Option<Refusal> {
        Some(NO_CLASSES)
    }
}
