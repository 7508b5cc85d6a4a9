//! The size of steps, for learners that follow a gradient.

use super::super::keys::{Key, KeyKind, Reals};
use super::Section;

/// The size of steps.
pub(crate) static LEARNING_RATE: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "learning_rate",
    aliases: &["eta", "shrinkage_rate", "lr"],
    kind: KeyKind::Real {
        range: Reals { zero: false, most: 10.0 },
        set: |raw, value| raw.learning_rate = value,
        get: |raw| raw.learning_rate,
    },
    default: "0.06",
    neutral: Some("1.0"),
    help: "Shrinkage factor applied to the leaf values of each tree, or size of the steps of a net",
    ..Key::PLAIN
}];
