//! Describes the weights of linear parts and the layers of nets.

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

/// Returns a line about the layers of each net. Returns an empty text if there is no net.
pub(super) fn layers_as_text(model: &Model) -> String {
    let mut text = String::new();
    for (number, part) in model.parts.iter().enumerate() {
        let PartFamily::Net(net) = &part.family else { continue };
        let sizes = net.sizes();
        let hidden = &sizes[..sizes.len().saturating_sub(1)];
        let hidden: Vec<String> =
            hidden.iter().map(|units| format!(" -> {units} {}", net.activation.name())).collect();
        let _ = writeln!(
            text,
            "\nlayers of {}: {} features normalised by {}{} -> 1",
            model.part_label(number),
            net.inputs.len(),
            net.normalisation.name(),
            hidden.concat(),
        );
    }
    text
}
