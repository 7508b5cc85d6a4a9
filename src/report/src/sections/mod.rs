//! Lists the sections of a report. To add a section, add a file to this directory and a line to the table
//! [`SECTIONS`].

mod by_trees;
mod comparison;
mod costs;
mod curves;
mod data;
mod dependence;
mod depth;
mod disputed;
mod features;
mod folds;
mod grades;
mod learning;
mod paper;
mod permutation;
mod queries;
mod search;
mod segments;
mod shap;
mod steps;
mod strength;
mod summary;
mod trees;
mod trend;
mod trials;

pub(crate) use summary::hero;

use super::html::Html;
use super::material::Material;
use super::page::Page;
use planetree_base::error::Result;

/// The result of rendering a section.
pub(crate) enum Content {
    /// The section has content.
    Shown(Html),
    /// The section has no content. The text tells the reader why.
    Absent(String),
    /// The section does not apply to these runs and is omitted.
    Nothing,
}

/// A section of a report.
pub(crate) struct ReportSection {
    /// The id of the section's element, which links refer to.
    pub id: &'static str,
    /// The heading of the section.
    pub title: &'static str,
    /// A one-sentence description below the heading, or an empty string.
    pub lead: &'static str,
    /// The function that renders the section.
    pub make: fn(&Material, &mut Page) -> Result<Content>,
}

/// All sections, in the order of the page.
pub(crate) const SECTIONS: &[ReportSection] = &[
    ReportSection { id: "summary", title: "Summary", lead: "", make: summary::make },
    ReportSection {
        id: "paper",
        title: "As in the paper",
        lead: "The paper's figures beside those of this run, and whether its findings hold.",
        make: paper::make,
    },
    ReportSection {
        id: "curves",
        title: "Curves",
        lead: "Metrics as a function of one varied parameter, everything else being equal.",
        make: curves::make,
    },
    ReportSection {
        id: "costs",
        title: "Costs",
        lead: "The cost of scoring a document: 1 per tree, and every feature when it is first used.",
        make: costs::make,
    },
    ReportSection {
        id: "comparison",
        title: "Comparison",
        lead: "Is one ranking significantly better than another? Systems are compared per query on the same queries.",
        make: comparison::make,
    },
    ReportSection {
        id: "trend",
        title: "Trend",
        lead: "The metrics of each run, in the order of the command line.",
        make: trend::make,
    },
    ReportSection {
        id: "learning",
        title: "Learning curves",
        lead: "Each metric after every boosting round; the best round on each validation set is marked.",
        make: learning::make,
    },
    ReportSection {
        id: "by-trees",
        title: "Number of trees",
        lead: "The metric of the first trees of each model, on the data that it ranks.",
        make: by_trees::make,
    },
    ReportSection {
        id: "strength",
        title: "Strength of trees",
        lead: "How well single trees of a forest rank as they grow: expected NDCG after each split, averaged over all orders of ties.",
        make: strength::make,
    },
    ReportSection {
        id: "depth",
        title: "NDCG by depth",
        lead: "NDCG of the top k documents, for each k.",
        make: depth::make,
    },
    ReportSection {
        id: "search",
        title: "Find a query",
        lead: "Search all queries by id or text.",
        make: search::make,
    },
    ReportSection {
        id: "queries",
        title: "Queries",
        lead: "Distribution of the metric over queries, and the worst and best queries with their documents.",
        make: queries::make,
    },
    ReportSection {
        id: "segments",
        title: "Segments",
        lead: "The metric within groups of queries, from the columns of the display table.",
        make: segments::make,
    },
    ReportSection {
        id: "grades",
        title: "Labels, ranks and scores",
        lead: "Ranks and scores of the documents of each label.",
        make: grades::make,
    },
    ReportSection {
        id: "disputed",
        title: "Disputed labels",
        lead: "Documents that score above documents of the same query with better labels: the model or the label is wrong.",
        make: disputed::make,
    },
    ReportSection {
        id: "features",
        title: "Feature importance",
        lead: "Features used by the model's splits: reduction of the loss (gain), training documents split (cover), and number of splits.",
        make: features::make,
    },
    ReportSection {
        id: "contributions",
        title: "Contributions",
        lead: "What the features add to and take from the scores of documents (Shapley values).",
        make: shap::make,
    },
    ReportSection {
        id: "permutation",
        title: "Permutation importance",
        lead: "How much worse the ranking gets if the values of one feature are shuffled among all documents.",
        make: permutation::make,
    },
    ReportSection {
        id: "dependence",
        title: "Partial dependence",
        lead: "The mean score of the documents if all of them had the same value of a feature.",
        make: dependence::make,
    },
    ReportSection {
        id: "trees",
        title: "Trees",
        lead: "Every node with its condition, gain, number of training documents (cover) and value.",
        make: trees::make,
    },
    ReportSection {
        id: "folds",
        title: "Cross-validation",
        lead: "Each fold is tested on queries that its model was not trained on.",
        make: folds::make,
    },
    ReportSection {
        id: "trials",
        title: "Search",
        lead: "Trials are ranked by their validation parts; the test parts are not used for ranking.",
        make: trials::make,
    },
    ReportSection {
        id: "data",
        title: "Data",
        lead: "Labels and features of the datasets, and how much the distributions of features differ between them.",
        make: data::make,
    },
    ReportSection {
        id: "steps",
        title: "Time and memory",
        lead: "Run time and peak memory of each step.",
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
