//! Compares RankBoost with a slow twin, round by round.

use crate::config::load;
use crate::fixtures::{Document, FEATURES, dataset, documents};
use crate::{Silent, TrainRequest, train};

/// Documents with few values per feature, so that there is a bin per value.
fn coarse_documents() -> Vec<Document> {
    let mut all = documents(61, 60);
    for document in &mut all {
        for (place, feature) in document.features.iter_mut().enumerate() {
            *feature = feature.map(|value| (value / 10f32.powi(place as i32)).round().clamp(-2.0, 5.0));
        }
    }
    all
}

/// The value of a feature. A missing value is 0.
fn value(document: &Document, feature: usize) -> f32 {
    document.features[feature].unwrap_or_default()
}

#[test]
fn rounds_are_those_of_the_slow_twin() {
    const ROUNDS: usize = 25;
    let room = tempfile::tempdir().unwrap();
    let all = coarse_documents();
    // Rows have the same weight within a query and everywhere.
    let all: Vec<Document> = all.into_iter().map(|document| Document { weight: 1.0, ..document }).collect();
    let data = dataset(room.path(), "data", &all, 40);
    let settings = [format!("num_trees={ROUNDS}")];
    let request = TrainRequest::new(data, load(Some("rankboost"), None, &settings).unwrap());
    let model = train(&request, &mut Silent).unwrap().model;
    let trees = &model.parts[0].family.trees().unwrap().trees;
    assert_eq!(trees.len(), ROUNDS);
    let mut scores = vec![0.0; all.len()];
    for (round, tree) in trees.iter().enumerate() {
        // The weights of all pairs, and the potential of each document.
        let (mut potentials, mut pairs) = (vec![0.0; all.len()], 0.0);
        for better in 0..all.len() {
            for worse in 0..all.len() {
                if all[better].query == all[worse].query && all[better].label > all[worse].label {
                    let weight = f64::exp(scores[worse] - scores[better]);
                    potentials[better] += weight;
                    potentials[worse] -= weight;
                    pairs += weight;
                }
            }
        }
        let advantage = |feature: usize, threshold: f32| -> f64 {
            let selected = all.iter().zip(&potentials).filter(|(row, _)| value(row, feature) > threshold);
            selected.map(|(_, potential)| potential).sum()
        };
        let thresholds = (-5..=12).map(|half| half as f32 / 2.0 + 0.25);
        let best = thresholds
            .flat_map(|threshold| (0..FEATURES).map(move |feature| (feature, threshold)))
            .map(|(feature, threshold)| advantage(feature, threshold).abs())
            .fold(0.0, f64::max);
        let split = tree.nodes[0].split.as_ref().unwrap();
        let found = advantage(split.feature as usize, split.threshold);
        assert!(found.abs() >= best * (1.0 - 1e-5), "round {round}: {found} is not {best}");
        let weight = 0.5 * ((pairs + found) / (pairs - found)).ln();
        let [left, right] = [split.left, split.right].map(|node| tree.nodes[node as usize].value);
        assert!(left == 0.0 && (right - weight).abs() < 1e-5, "round {round}: {left} {right} {weight}");
        for (row, score) in all.iter().zip(&mut scores) {
            *score += if value(row, split.feature as usize) > split.threshold { right } else { 0.0 };
        }
    }
    let is_negative = |tree: &&planetree_model::model::Tree| tree.nodes[2].value < 0.0;
    assert!(trees.iter().filter(is_negative).count() > 0, "features that lower the rank are used, too");
}
