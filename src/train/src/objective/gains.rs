//! Gains of labels, for objectives and listwise trees that add them up.

use super::LabelProblem;
use planetree_data::source::LabelledRows;
use planetree_metric::Gain;

/// Rejects labels without a finite, non-negative gain.
pub fn check_gains(gain: &Gain, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
    let unfit = |label: &&f32| !gain.fits(**label) || gain.of(**label) < 0.0;
    match rows.iter().flat_map(|rows| &rows.labels).find(unfit) {
        None => Ok(()),
        Some(label) => Err(LabelProblem::new(
            format_args!(
                "the label {label} has no gain in label_gain = {gain}, or one below 0 or above 1e30"
            ),
            "choose a gain that has a value for every label: label_gain=linear, a table, an expression",
        )),
    }
}
