//! The size of steps, for learners that follow a gradient.

use super::super::keys::{Key, Reals};
use super::super::words::real;
use super::Section;

/// The size of steps.
pub(crate) static LEARNING_RATE: Section = Section { keys: KEYS, ..Section::PLAIN };

static KEYS: &[Key] = &[Key {
    name: "learning_rate",
    aliases: &["eta", "shrinkage_rate", "lr"],
    kind: real!(learning_rate, Reals { zero: false, most: 10.0 }),
    default: "0.06",
    neutral: Some("1.0"),
    help: "Shrinkage factor applied to the leaf values of each tree, or size of the steps of a net",
    ..Key::PLAIN
}];
