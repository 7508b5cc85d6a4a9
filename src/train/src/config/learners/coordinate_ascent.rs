//! Coordinate Ascent: parameters and their keys.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind};
use super::super::raw::RawParameters;
use super::super::sections::{NORMALISATION, RANKING, Section};
use super::adarank::{NO_CLASSES, NO_START};
use super::{LearnerConfig, LearnerParameters, LearnerSpec, Refusal};
use planetree_metric::Metric;
use planetree_model::model::FeatureNormalisation;

/// Parameters of Coordinate Ascent.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateAscentParameters {
    /// The metric to optimise.
    pub metric: Metric,
    /// How features are normalised.
    pub normalisation: FeatureNormalisation,
    /// Minimum gain of a sweep over all features; with less, the restart ends.
    pub tolerance: f64,
    /// Number of steps of a line search in each direction.
    pub line_steps: u32,
}

/// Training parameters of Coordinate Ascent.
pub(crate) type CoordinateAscentSettings = Parameters<CoordinateAscentParameters>;

/// Coordinate Ascent.
pub(super) static COORDINATE_ASCENT: LearnerSpec = LearnerSpec {
    name: "coordinate-ascent",
    aliases: &["coordinate_ascent"],
    noun: "Coordinate Ascent",
    summary: "line searches of one weight at a time",
    own: Some(&SECTION),
    uses: &[&RANKING, &NORMALISATION],
    records: &[],
    objectives: &[],
    no_custom_objective: Some("Coordinate Ascent optimises train_metric"),
    replaces_rounds: true,
    parameters,
};

/// The parameters that only Coordinate Ascent uses.
static SECTION: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "line_steps",
    kind: KeyKind::Whole {
        range: 1..=60,
        set: |raw, value| raw.ranking.line_steps = value as u32,
        get: |raw| u64::from(raw.ranking.line_steps),
    },
    default: "25",
    help: "Coordinate Ascent: steps of a line search in each direction, each twice as long as the one before",
    ..Key::PLAIN
}];

fn parameters(raw: &RawParameters) -> LearnerParameters {
    LearnerParameters::CoordinateAscent(CoordinateAscentParameters {
        metric: raw.ranking.metric,
        normalisation: raw.normalisation,
        tolerance: raw.ranking.tolerance,
        line_steps: raw.ranking.line_steps,
    })
}

impl LearnerConfig for CoordinateAscentParameters {
    fn spec(&self) -> &'static LearnerSpec {
        &COORDINATE_ASCENT
    }

    fn write(&self, raw: &mut RawParameters) {
        raw.normalisation = self.normalisation;
        raw.ranking.metric = self.metric;
        raw.ranking.tolerance = self.tolerance;
        raw.ranking.line_steps = self.line_steps;
    }

    fn draws(&self) -> bool {
        true
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
