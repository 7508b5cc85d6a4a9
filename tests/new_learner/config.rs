//! Feature votes: parameters.

use super::super::Parameters;
use super::super::sections::{NORMALISATION, RANKING, RawRanking};
use super::{LearnerParameters, LearnerSpec, MetricRanker, RankerParameters};

/// Feature votes have no parameters of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct VotesOptions;

/// Parameters of feature votes.
pub(crate) type VotesParameters = MetricRanker<VotesOptions>;

/// Training parameters of feature votes.
pub(crate) type VotesSettings = Parameters<VotesParameters>;

/// Feature votes.
pub(super) static VOTES: LearnerSpec = LearnerSpec {
    name: "votes",
    aliases: &[],
    noun: "feature votes",
    summary: "features weighted by their own metric",
    own: None,
    uses: &[&RANKING, &NORMALISATION],
    records: &[],
    omits: &[],
    objectives: &[],
    no_custom_objective: Some("feature votes use train_metric"),
    replaces_rounds: true,
    parameters: |raw| LearnerParameters::Votes(MetricRanker::of(raw, VotesOptions)),
};

impl RankerParameters for VotesOptions {
    const SPEC: &'static LearnerSpec = &VOTES;
    const DRAWS: bool = false;

    fn write(&self, _raw: &mut RawRanking) {}
}
