//! Checks the gains of labels, for objectives and listwise trees that sum gains.

use super::LabelProblem;
use planetree_data::source::LabelledRows;
use planetree_metric::Gain;

/// Rejects labels whose gain is undefined, negative or above 1e30.
pub(crate) fn check_gains(gain: &Gain, rows: &[LabelledRows]) -> Result<(), LabelProblem> {
    let unfit = |label: &&f32| !gain.fits(**label) || gain.of(**label) < 0.0;
    match rows.iter().flat_map(|rows| &rows.labels).find(unfit) {
        None => Ok(()),
        Some(label) => Err(LabelProblem::new(
            format_args!(
                "the label {label} has no gain in label_gain = {gain}, or its gain is below 0 or above 1e30"
            ),
            "set label_gain to linear, a table or an expression that gives every label a gain from 0 to 1e30",
        )),
    }
}
