//! The sections of a report, in their order. A new one is a file and a line here.

mod comparison;
mod curves;
mod depth;
mod features;
mod folds;
mod grades;
mod learning;
mod queries;
mod steps;
mod strength;
mod summary;
mod trees;
mod trials;

pub use summary::hero;

use super::html::Html;
use super::material::Material;
use super::page::Page;
use planetree_base::error::Result;

/// What a section comes to.
pub enum Content {
    /// There is something to see.
    Shown(Html),
    /// There would be, but for a reason that the reader should know.
    Absent(String),
    /// It is about something that these runs are not about.
    Nothing,
}

/// A section of a report.
pub struct Section {
    /// The name that links have for it.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it is about, in a sentence.
    pub lead: &'static str,
    /// Makes it.
    pub make: fn(&Material, &mut Page) -> Result<Content>,
}

/// All sections.
pub const SECTIONS: &[Section] = &[
    Section { id: "summary", title: "Summary", lead: "", make: summary::make },
    Section {
        id: "curves",
        title: "Curves",
        lead: "How good rankings are by a number that was varied, everything else being the same.",
        make: curves::make,
    },
    Section {
        id: "comparison",
        title: "Comparison",
        lead: "Is one ranking better than another, or was it luck? Systems are compared query by query on the same queries.",
        make: comparison::make,
    },
    Section {
        id: "learning",
        title: "Learning curves",
        lead: "Each metric after every round of the training; the best round of a validation set is marked.",
        make: learning::make,
    },
    Section {
        id: "strength",
        title: "Strength of trees",
        lead: "How good single trees of a forest rank while they grow: expected NDCG after each split, ties in every order.",
        make: strength::make,
    },
    Section {
        id: "depth",
        title: "NDCG by depth",
        lead: "How good the first k documents are, for every k.",
        make: depth::make,
    },
    Section {
        id: "queries",
        title: "Queries",
        lead: "How the metric is spread over queries, and the queries at either end with their documents.",
        make: queries::make,
    },
    Section {
        id: "grades",
        title: "Labels, ranks and scores",
        lead: "Where documents of each label end up, and what scores they get.",
        make: grades::make,
    },
    Section {
        id: "features",
        title: "Feature importance",
        lead: "What the model's splits rely on: the loss they removed (gain), the documents they decided on (cover), how many there are.",
        make: features::make,
    },
    Section {
        id: "trees",
        title: "Trees",
        lead: "Every node with its question, what the split gained, how many training documents came there, and its value.",
        make: trees::make,
    },
    Section {
        id: "folds",
        title: "Cross-validation",
        lead: "Every fold is tested on queries that its model has not seen.",
        make: folds::make,
    },
    Section {
        id: "trials",
        title: "Search",
        lead: "Trials are ranked by the validation parts; the test parts have no say in it.",
        make: trials::make,
    },
    Section {
        id: "steps",
        title: "Time and memory",
        lead: "What each step of the run took.",
        make: steps::make,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_names_of_their_own() {
        let mut ids: Vec<&str> = SECTIONS.iter().map(|section| section.id).collect();
        assert_eq!(ids[0], "summary");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), SECTIONS.len());
    }
}
