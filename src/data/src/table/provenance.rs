//! Which data predictions are of, by the metadata of their file.

/// The metadata key of the fingerprints of the datasets whose rows have scores.
pub const DATASET: &str = "planetree.dataset";
/// The metadata key of the fingerprints of the datasets that the model was trained on.
pub const TRAINED_ON: &str = "planetree.trained_on";

/// What is said of scores of rows that the model was trained on.
pub const SEEN_ROWS: &str =
    "the model was trained on these very rows; their metrics do not tell how good it is on others";

/// Whether predictions are of rows that their model was trained on, by the metadata of their file.
pub fn are_of_training_rows<'m>(metadata: impl Fn(&str) -> Option<&'m str>) -> bool {
    let (Some(datasets), Some(trained_on)) = (metadata(DATASET), metadata(TRAINED_ON)) else { return false };
    datasets.split(',').any(|dataset| trained_on.split(',').any(|other| other == dataset))
}
