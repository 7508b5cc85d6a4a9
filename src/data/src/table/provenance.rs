//! Determines the origin of predictions from the metadata of their file.

/// Metadata key under which the fingerprints of the predicted datasets are stored.
pub const DATASET: &str = "planetree.dataset";
/// Metadata key under which the fingerprints of the training datasets are stored.
pub const TRAINED_ON: &str = "planetree.trained_on";

/// Note for the user if metrics are computed on rows that the model was trained on.
pub const TRAINING_ROWS_NOTE: &str =
    "the model was trained on these rows; its metrics on them do not show how well it generalises";

/// Checks whether predictions were made for rows that the model was trained on. `metadata` returns the value of a key
/// in the metadata of the predictions' file.
pub fn are_of_training_rows<'m>(metadata: impl Fn(&str) -> Option<&'m str>) -> bool {
    let (Some(datasets), Some(trained_on)) = (metadata(DATASET), metadata(TRAINED_ON)) else { return false };
    datasets.split(',').any(|dataset| trained_on.split(',').any(|other| other == dataset))
}
