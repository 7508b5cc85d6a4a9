//! AdaRank: parameters and their keys.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind};
use super::super::sections::{NORMALISATION, RANKING, RawRanking, Section};
use super::{LearnerParameters, LearnerSpec, MetricRanker, RankerParameters};

/// The parameters that only AdaRank has. Training ends when a round lowers the metric by at least the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct AdaRankOptions {
    /// Maximum number of rounds in a row that select the same feature.
    pub max_repeats: u32,
}

/// Parameters of AdaRank.
pub(crate) type AdaRankParameters = MetricRanker<AdaRankOptions>;

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
    omits: &[],
    objectives: &[],
    no_custom_objective: Some("AdaRank optimises train_metric"),
    replaces_rounds: true,
    parameters: |raw| {
        let own = AdaRankOptions { max_repeats: raw.ranking.max_repeats };
        LearnerParameters::AdaRank(MetricRanker::of(raw, own))
    },
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

impl RankerParameters for AdaRankOptions {
    const SPEC: &'static LearnerSpec = &ADARANK;
    const DRAWS: bool = false;

    fn write(&self, raw: &mut RawRanking) {
        raw.max_repeats = self.max_repeats;
    }
}
