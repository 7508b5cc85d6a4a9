//! Which parts of a model a format can carry, and why not.

use crate::model::{Branch, Combine, FeatureNormalisation, Model, Normalisation, Part};

/// The parts of a model that a format supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartSupport {
    /// Any trees, also pairwise models, normalised parts and groups of parts.
    AllTrees,
    /// Sums and means of trees without normalisation. Several such parts are folded into one ensemble.
    TreeSums,
    /// The same, but without a branch for missing values, which are 0.
    ZeroMissingTreeSums,
    /// Sums of linear functions without normalisation by query.
    LinearSums,
}

/// Returns the first part of a model that is not supported: its label, why not, and what to do about it.
pub(super) fn problem_in(model: &Model, support: PartSupport) -> Option<(String, String, &'static str)> {
    let problem = |(number, part): (usize, &Part)| {
        let (problem, remedy) = support.problem(part, model)?;
        Some((model.part_label(number), problem, remedy))
    };
    model.parts.iter().enumerate().find_map(problem)
}

impl PartSupport {
    /// Returns why a part is not supported and what to do about it, or `None` if it is supported.
    fn problem(self, part: &Part, model: &Model) -> Option<(String, &'static str)> {
        const REMEDY: &str = "export with --format json, or export a model without this part";
        if self == PartSupport::LinearSums {
            let Some(function) = part.family.linear() else {
                return Some((
                    format!("is not a sum of weighted features (its kind is {})", part.family.kind()),
                    "use another --kind, or export a model without this part",
                ));
            };
            if function.normalisation == FeatureNormalisation::Query {
                return Some((
                    "normalises features over the documents of a query".to_owned(),
                    "train with normalise_features=z, minmax or none",
                ));
            }
        } else if part.family.trees().is_none() {
            return Some((
                format!("has no trees (its kind is {})", part.family.kind()),
                "use --kind linear where the format has it, score rows with `planetree predict`, or export a model that \
                 consists of trees",
            ));
        }
        if self == PartSupport::AllTrees {
            return None;
        }
        if part.family.trees().is_some_and(|ensemble| ensemble.normalisation == FeatureNormalisation::Query) {
            return Some((
                "normalises features over the documents of a query".to_owned(),
                "export with --format json, or train with normalise_features=none",
            ));
        }
        if part.family.trees().is_some_and(|ensemble| ensemble.combine == Combine::Wins) {
            return Some((
                "is a pairwise model, which compares the documents of a query".to_owned(),
                "export with --format json, or train with another preset, such as rf-point",
            ));
        }
        if part.normalisation != Normalisation::None {
            let name = part.normalisation.name();
            return Some((format!("is normalised over the documents of a query ({name})"), REMEDY));
        }
        let has_middle = || {
            let splits = part.family.trees().into_iter().flat_map(|ensemble| ensemble.splits());
            splits
                .filter(|split| model.features[split.feature as usize].fill.is_none())
                .any(|split| split.missing == Branch::Middle)
        };
        if self == PartSupport::ZeroMissingTreeSums && has_middle() {
            return Some((
                "has splits with a branch of their own for missing values".to_owned(),
                "train with missing=zero, or use a format in which values can be missing",
            ));
        }
        None
    }
}
