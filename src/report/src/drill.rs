//! Defines what the page contains for explaining ranked documents: the contributions of the features to the scores of
//! the first documents of a query. Scripts draw them: why a document is here, why it is above another one, and what
//! its rank would be with other values.

use super::documents::QueryList;
use super::html::shortened;
use super::insight::Insight;
use super::material::Material;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of categories of a feature whose names are in the page.
const WORDS: usize = 100;

/// The features of a system's model.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainedSystem {
    /// Index of the model, which the trees of the page refer to.
    pub model: usize,
    /// Name of the model.
    pub name: String,
    /// The expected score, to which the contributions of a document are added.
    pub expected: f64,
    /// Names of the features that scores depend on.
    pub features: Vec<String>,
    /// Categories of categorical features, by the index of the feature.
    pub words: BTreeMap<usize, Vec<String>>,
}

impl ExplainedSystem {
    /// Describes the model of a system.
    pub(crate) fn of(material: &Material, insight: &Insight) -> Self {
        let named = &material.models[insight.model];
        let features = || insight.features.iter().map(|feature| &named.model.features[*feature as usize]);
        let words = features().enumerate().filter(|(_, feature)| (1..=WORDS).contains(&feature.words.len()));
        ExplainedSystem {
            model: insight.model,
            name: shortened(&named.name),
            expected: short_number(insight.expected, 8),
            features: features().map(|feature| shortened(&feature.name)).collect(),
            words: words
                .map(|(place, feature)| (place, feature.words.iter().map(|word| shortened(word)).collect()))
                .collect(),
        }
    }
}

/// The first documents of a query.
#[derive(Debug, Serialize)]
pub(crate) struct Drill {
    /// Index of the system among those that are explained on the page.
    pub system: usize,
    /// Scores of the listed documents in ranked order, for the rank of a changed score.
    pub scores: Vec<f64>,
    /// The explained documents in ranked order.
    pub documents: Vec<DrillDocument>,
}

/// An explained document.
#[derive(Debug, Serialize)]
pub(crate) struct DrillDocument {
    rank: u32,
    name: String,
    score: f64,
    /// Values of the features. `None` if missing.
    values: Vec<Option<f32>>,
    /// Contributions of the features.
    contributions: Vec<f64>,
}

impl Drill {
    /// Returns the explained documents of a query, if there are any.
    pub(crate) fn of(
        material: &Material,
        system: usize,
        insight: &Insight,
        (query, list): (&str, &QueryList),
    ) -> Option<Self> {
        let explained = insight.queries.get(query).filter(|explained| !explained.is_empty())?;
        let documents = list.first.iter().zip(explained).map(|(document, row)| {
            let id = document.id.as_deref();
            let title = id.and_then(|id| material.display.title(query, id)).or(id);
            DrillDocument {
                rank: document.rank,
                name: title.map_or_else(String::new, shortened),
                score: short_number(document.score, 8),
                values: row.values.iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect(),
                contributions: row.contributions.iter().map(|value| short_number(*value, 4)).collect(),
            }
        });
        Some(Drill {
            system,
            scores: list.first.iter().map(|document| short_number(document.score, 8)).collect(),
            documents: documents.collect(),
        })
    }
}

/// Rounds a number to a few significant digits, which keeps the page small.
fn short_number(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value) // a formatted number can always be parsed
}
