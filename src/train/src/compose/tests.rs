//! Compares the log of a training run with the scores of the model.

use crate::fixtures::{dataset, documents, request};
use crate::{Silent, train};
use planetree_data::source::LabelledData;
use planetree_model::predict::scores_of;

/// A class estimates the probability of the lower grade. Alone, it must not be logged in place of the model's score.
#[test]
fn two_grades_are_judged_by_the_score_of_the_model() {
    let room = tempfile::tempdir().unwrap();
    let mut documents = documents(41, 60);
    documents.iter_mut().for_each(|document| document.label = f64::from(u8::from(document.label > 1.0)));
    let data = dataset(room.path(), "data", &documents, 50);
    let source = LabelledData::open(&data, None).unwrap();
    for preset in ["gbrt", "rf", "linear"] {
        let set = ["target=ordinal", "num_trees=3", "metric=rmse"];
        let request = request(&data, preset, &set).validate("valid", data.clone());
        let outcome = train(&request, &mut Silent).unwrap();
        let scores = source.readers().flat_map(|reader| scores_of(reader, &outcome.model).unwrap());
        let errors = scores.zip(&documents).map(|(score, document)| (score - document.label).powi(2));
        let expected = (errors.sum::<f64>() / documents.len() as f64).sqrt();
        for split in ["train", "valid"] {
            let logged = outcome.log.iter().rfind(|entry| entry.split == split);
            // Only boosting has the scores of the training rows at hand.
            let Some(logged) = logged else {
                assert!(split == "train" && preset != "gbrt", "{preset}, {split}");
                continue;
            };
            assert!((logged.value - expected).abs() < 1e-6, "{preset}, {split}: {} {expected}", logged.value);
        }
    }
}
