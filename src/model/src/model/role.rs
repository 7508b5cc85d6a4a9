//! The role of a part in a model that is trained as several parts.

use serde::{Deserialize, Serialize};

/// The role of a part in a model that was trained in stages, averaged over runs or made of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRole {
    /// The stage that the part was trained in, from 1.
    pub stage: u32,
    /// The run of the part, from 1.
    pub run: u32,
    /// The class that the part estimates. `None` if the model has no classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassBounds>,
    /// The grade whose score the part computes, in a model of classes that are coupled by a softmax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<i32>,
}

/// A boundary between two neighbouring grades. A part estimates the probability that the label is at most the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClassBounds {
    /// The lower grade.
    pub at_most: i32,
    /// The next higher grade.
    pub next: i32,
}
