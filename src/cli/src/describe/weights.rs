//! Describes the weights of linear parts.

use super::short;
use planetree_model::model::{LinearTerm, Model, PartFamily};
use std::fmt::Write;

/// Returns a table of the largest weights of each linear part, sorted by the standard deviation of the terms. Returns an
/// empty text if there is no linear part.
pub(super) fn weights_as_text(model: &Model, top: usize) -> String {
    let mut text = String::new();
    for (number, part) in model.parts.iter().enumerate() {
        let PartFamily::Linear(function) = &part.family else { continue };
        let mut terms: Vec<&LinearTerm> = function.terms.iter().filter(|term| term.weight != 0.0).collect();
        // The sort is stable, so equal terms stay in column order.
        terms.sort_by(|one, other| other.gain.total_cmp(&one.gain));
        terms.truncate(top);
        let name = |term: &LinearTerm| model.features[term.feature as usize].name.as_str();
        let width = terms.iter().map(|term| name(term).chars().count()).max().unwrap_or(0).clamp(7, 40);
        let _ = writeln!(
            text,
            "\nweights of {}, features normalised by {}",
            model.part_label(number),
            function.normalisation.name()
        );
        let _ = writeln!(text, "{:<width$} {:>24} {:>14}", "feature", "weight", "mean");
        for term in terms {
            let _ = writeln!(text, "{:<width$} {:>24} {:>14}", name(term), term.weight, short(term.mean));
        }
    }
    text
}
