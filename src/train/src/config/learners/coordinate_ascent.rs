//! Coordinate Ascent: parameters and their keys.

use super::super::Parameters;
use super::super::keys::{Key, KeyKind};
use super::super::sections::{RawRanking, Section};
use super::adarank::ADARANK;
use super::{LearnerParameters, LearnerSpec, MetricRanker, RankerParameters};

/// The parameters that only Coordinate Ascent has. The tolerance is the minimum gain of a sweep over all features; with
/// less, the restart ends.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateAscentOptions {
    /// Number of steps of a line search in each direction.
    pub line_steps: u32,
}

/// Parameters of Coordinate Ascent.
pub(crate) type CoordinateAscentParameters = MetricRanker<CoordinateAscentOptions>;

/// Training parameters of Coordinate Ascent.
pub(crate) type CoordinateAscentSettings = Parameters<CoordinateAscentParameters>;

/// Coordinate Ascent.
pub(super) static COORDINATE_ASCENT: LearnerSpec = LearnerSpec {
    name: "coordinate-ascent",
    aliases: &["coordinate_ascent"],
    noun: "Coordinate Ascent",
    summary: "line searches of one weight at a time",
    own: Some(&SECTION),
    no_custom_objective: Some("Coordinate Ascent optimises train_metric"),
    parameters: |raw| {
        let own = CoordinateAscentOptions { line_steps: raw.ranking.line_steps };
        LearnerParameters::CoordinateAscent(MetricRanker::of(raw, own))
    },
    ..ADARANK
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

impl RankerParameters for CoordinateAscentOptions {
    const SPEC: &'static LearnerSpec = &COORDINATE_ASCENT;
    const DRAWS: bool = true;

    fn write(&self, raw: &mut RawRanking) {
        raw.line_steps = self.line_steps;
    }
}
