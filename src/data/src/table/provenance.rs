//! Provenance of predictions, from the metadata of their file.

/// Metadata key of the fingerprints of the datasets whose rows have scores.
pub const DATASET: &str = "planetree.dataset";
/// Metadata key of the fingerprints of the datasets that the model was trained on.
pub const TRAINED_ON: &str = "planetree.trained_on";

/// Note on metrics of rows that the model was trained on.
pub const TRAINING_ROWS_NOTE: &str =
    "the model was trained on these rows; its metrics on them do not show how well it generalises";

/// Whether predictions are of rows that their model was trained on, according to the metadata of their file.
pub fn are_of_training_rows<'m>(metadata: impl Fn(&str) -> Option<&'m str>) -> bool {
    let (Some(datasets), Some(trained_on)) = (metadata(DATASET), metadata(TRAINED_ON)) else { return false };
    datasets.split(',').any(|dataset| trained_on.split(',').any(|other| other == dataset))
}
