//! Whether training can add up what labels are worth.

use crate::config::Parameters;
use planetree_base::error::{Error, Result};
use planetree_data::source::Rows;

/// Refuses labels that `label_gain` has no gain for, or one below 0 or too large; `place` is what the rows are of.
pub fn check_gains(parameters: &Parameters, rows: &[Rows], place: &str) -> Result<()> {
    let gain = &parameters.label_gain;
    let unfit = |label: &&f32| !gain.fits(**label) || gain.of(**label) < 0.0;
    match rows.iter().flat_map(|rows| &rows.labels).find(unfit) {
        None => Ok(()),
        Some(label) => Err(Error::place(
            place,
            format_args!(
                "the label {label} has no gain in label_gain = {gain}, or one below 0 or above 1e30"
            ),
            "choose a gain that has a value for every label: label_gain=linear, a table, an expression",
        )),
    }
}
