//! Trains nets by the driver: start models, classes and divergence.

use crate::fixtures::{Notes, dataset, documents, request};
use crate::{LogEntry, Outcome, Silent, TrainRequest, train};
use planetree_base::storage::Location;
use planetree_model::model::Model;

fn value_of(outcome: &Outcome, split: &str, round: u32) -> f64 {
    let is_entry = |entry: &&LogEntry| entry.split == split && entry.round == round;
    outcome.log.iter().find(is_entry).unwrap().value
}

#[test]
fn round_0_is_the_start_model_alone() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(21, 40), 1 << 20);
    let valid = dataset(room.path(), "valid", &documents(22, 30), 1 << 20);
    let start = request(&data, "lambdamart", &["num_trees=4", "min_data_in_leaf=5", "missing=zero"]);
    let start = train(&start.validate("valid", valid.clone()), &mut Silent).unwrap();
    for (preset, set) in [("ranknet-net", &["num_trees=2", "restarts=2"][..]), ("ranksvm", &["svm_c=1"])] {
        let request = TrainRequest { start: Some(start.model.clone()), ..request(&data, preset, set) };
        let outcome = train(&request.validate("valid", valid.clone()), &mut Silent).unwrap();
        let ndcg = |outcome: &Outcome, split: &str, round: u32| {
            let is_entry =
                |entry: &&LogEntry| entry.split == split && entry.round == round && entry.metric == "ndcg@10";
            outcome.log.iter().find(is_entry).map(|entry| entry.value)
        };
        for split in ["train", "valid"] {
            let expected = ndcg(&start, split, 4);
            assert!(expected.is_some());
            assert_eq!(ndcg(&outcome, split, 0), expected, "{preset}, {split}");
        }
    }
}

#[test]
fn a_part_that_does_not_improve_the_start_model_is_left_out() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(26, 40), 1 << 20);
    // Every query is ranked perfectly, so no round can be better.
    let set = ["num_trees=80", "min_data_in_leaf=1", "learning_rate=0.3", "missing=zero"];
    let start = train(&request(&data, "lambdamart", &set), &mut Silent).unwrap().model;
    for preset in ["ranknet-net", "linear"] {
        let set = ["metric=ndcg@10", "early_stopping_rounds=1"];
        let request = TrainRequest { start: Some(start.clone()), ..request(&data, preset, &set) };
        let outcome = train(&request.validate("valid", data.clone()), &mut Silent).unwrap();
        assert_eq!(outcome.best.map(|best| best.round), Some(0), "{preset}");
        let families =
            |model: &Model| -> Vec<_> { model.parts.iter().map(|part| part.family.clone()).collect() };
        assert!(families(&outcome.model) == families(&start), "{preset}");
    }
}

#[test]
fn restarts_of_a_class_are_compared_by_its_labels() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(23, 40), 1 << 20);
    let set = [
        "objective=squared",
        "target=ordinal",
        "restarts=8",
        "num_trees=1",
        "learning_rate=0.0001",
        "metric=ndcg@10",
    ];
    let parts = |request: TrainRequest| -> Vec<_> {
        let Model { parts, .. } = train(&request, &mut Silent).unwrap().model;
        parts.into_iter().map(|part| part.family).collect()
    };
    // Without a validation set, the training data decide, whose labels are those of the class.
    let by_training = parts(request(&data, "ranknet-net", &set));
    let by_validation = parts(request(&data, "ranknet-net", &set).validate("valid", data.clone()));
    assert!(by_validation == by_training);
}

/// Trains two nets that may diverge, and returns the notes. There are none if both diverge in the first epoch.
fn notes_of_divergence(data: &Location, two: &str, seed: u32, epochs: u32) -> Vec<String> {
    let (seed, epochs) = (format!("seed={seed}"), format!("num_trees={epochs}"));
    let set = [
        "objective=squared",
        "optimiser=sgd",
        "learning_rate=0.5",
        "hidden_layers=none",
        "normalise_features=z",
        "batch_queries=8",
        "metric=rmse",
        two,
        &seed,
        &epochs,
    ];
    let mut notes = Notes::default();
    match train(&request(data, "ranknet-net", &set), &mut notes) {
        Ok(_) => notes.0,
        Err(_) => Vec::new(),
    }
}

#[test]
fn the_divergence_of_one_of_several_nets_is_reported() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(24, 30), 1 << 20);
    let notes = |seed: u32, epochs: u32| notes_of_divergence(&data, "runs=2", seed, epochs);
    let epochs = |notes: &[String]| -> Vec<u32> {
        let after = notes.iter().filter_map(|note| note.split("the net diverged in epoch ").nth(1));
        after.map(|text| text.split(':').next().unwrap().parse().unwrap()).collect()
    };
    let (seed, earlier, later) = (0..40)
        .find_map(|seed| match epochs(&notes(seed, 500))[..] {
            [one, other] if one != other => Some((seed, one.min(other), one.max(other))),
            _ => None,
        })
        .expect("two runs diverge in different epochs");
    // The other net goes on to the last round, so training does not end because of the divergence.
    assert_eq!(epochs(&notes(seed, later - 1)), [earlier]);
}

#[test]
fn the_divergence_of_a_restart_is_reported() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(24, 30), 1 << 20);
    let notes = |seed: u32, epochs: u32| notes_of_divergence(&data, "restarts=2", seed, epochs);
    let last = |notes: &[String]| -> Option<u32> {
        let after = notes.iter().find_map(|note| note.split("the net diverged in epoch ").nth(1))?;
        after.split(':').next()?.parse().ok()
    };
    let one = "1 of 2 restarts diverged";
    let found = (0..40).find_map(|seed| {
        // Training ends when the last restart diverges; the other one may have diverged before.
        let before = last(&notes(seed, 500))?.checked_sub(1).filter(|before| *before > 0)?;
        notes(seed, before).into_iter().find(|note| note.contains(one))
    });
    assert!(found.is_some_and(|note| note.contains("lower learning_rate")));
}

#[test]
fn a_net_that_diverges_alone_says_so_once() {
    let room = tempfile::tempdir().unwrap();
    let data = dataset(room.path(), "data", &documents(25, 30), 1 << 20);
    let set = [
        "objective=squared",
        "optimiser=sgd",
        "learning_rate=2",
        "hidden_layers=none",
        "normalise_features=z",
        "batch_queries=0",
        "metric=rmse",
        "num_trees=400",
    ];
    let mut notes = Notes::default();
    let outcome = train(&request(&data, "ranknet-net", &set), &mut notes).unwrap();
    let said = notes.0.iter().filter(|note| note.contains("the net diverged in epoch")).count();
    assert_eq!(said, 1, "{:?}", notes.0);
    let last = outcome.model.rounds as u32;
    assert!((1..last).all(|round| value_of(&outcome, "train", round) >= value_of(&outcome, "train", last)));
}
