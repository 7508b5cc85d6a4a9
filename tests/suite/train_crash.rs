//! A training that was killed or interrupted, and resumed, produces the same bytes as an undisturbed one.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use std::fs;
use std::path::Path;

fn data(directory: &Path, queries: usize) {
    dataset(directory, "data", &graded(31, queries, 30), "--partition-rows 2000");
    dataset(directory, "vali", &graded(32, 60, 30), "");
    dataset(directory, "other", &graded(33, 30, 30), "");
}

#[test]
fn a_training_killed_at_five_moments_ends_in_the_same_bytes() {
    let room = room();
    data(room.path(), 200);
    for arguments in [
        "--data data --set num_trees=60 --set max_depth=6",
        "--preset pgbrt --data data --valid vali --set num_trees=40 --set bagging_fraction=0.5",
        "--preset gbrt --data data --valid vali --valid other --set num_trees=40 --set missing=learned",
        "--data data --valid vali --set num_trees=400 --set early_stopping_rounds=20 --set learning_rate=0.1",
    ] {
        killed_and_resumed(room.path(), arguments, 5);
        let left: Vec<String> =
            names_in(room.path()).into_iter().filter(|name| !name.contains("txt")).collect();
        assert_eq!(left, ["data", "other", "vali"], "{arguments}: files of killed runs remain");
    }
}

#[test]
fn predictions_of_a_checkpoint_say_that_training_has_not_ended() {
    let room = room();
    data(room.path(), 20);
    stop_at_checkpoint(room.path(), "--data data --set learning_rate=0.01");
    let stderr = run(room.path(), "predict --model c --data vali --output p").ok().stderr;
    let note = "note: c is the checkpoint of a training that has not ended: ";
    assert!(stderr.contains(note) && stderr.contains(" trees so far\n"), "{stderr}");
    train(room.path(), "--data data --model m --set num_trees=2");
    let stderr = run(room.path(), "predict --model m --data vali --output p").ok().stderr;
    assert!(!stderr.contains("checkpoint"), "{stderr}");
}

#[test]
fn a_resumed_training_continues_its_log() {
    let room = room();
    data(room.path(), 20);
    assert_resumes_with_the_same_log(room.path(), "--data data --valid vali --set learning_rate=0.01");
    let log = table_of(&room.path().join("rounds"));
    let seconds = log.column_by_name("seconds").unwrap().as_primitive::<Float64Type>();
    assert!(
        seconds.values().is_sorted(),
        "the time of a round is before that of an earlier one: {seconds:?}"
    );
}

#[test]
fn an_interrupt_leaves_a_checkpoint_to_resume_from() {
    let room = room();
    data(room.path(), 100);
    let settings = "--data data --set num_trees=100000 --set max_depth=6";
    let before = names_in(room.path());
    let log = tempfile::NamedTempFile::new().unwrap();
    let stderr = || fs::read_to_string(log.path()).unwrap();
    for (options, left) in [("", &[][..]), ("--checkpoint c", &["c"])] {
        let mut child = start(room.path(), &format!("train {settings} --model m {options}"), log.path());
        wait_for("ten rounds", || stderr().contains("[10] "));
        signal(&child, "-INT");
        assert_eq!(child.wait().unwrap().code(), Some(1), "{}", stderr());
        assert!(stderr().contains("error: interrupted"), "{}", stderr());
        let mut names = names_in(room.path());
        names.retain(|name| !before.contains(name));
        assert_eq!(names, left, "{options}");
    }
    let rounds = rounds_in(room.path(), "c");
    assert!(rounds >= 10, "{rounds} rounds");
    let shorter = format!("--data data --set max_depth=6 --set num_trees={}", rounds + 2);
    train(room.path(), &format!("{shorter} --model whole"));
    let ran = run(room.path(), &format!("train {shorter} --model m --checkpoint c --resume")).ok();
    assert!(ran.stderr.contains(&format!("resuming from round {rounds} of c")), "{}", ran.stderr);
    assert_same_bytes(room.path(), "m", "whole", &shorter);
}

#[test]
fn a_damaged_or_unrelated_checkpoint_is_refused() {
    let room = room();
    data(room.path(), 10);
    let rounds = stop_at_checkpoint(room.path(), "--data data --set learning_rate=0.01");
    let more = format!("--set learning_rate=0.01 --set num_trees={}", rounds + 2);
    let settings = &*format!("--data data {more}");
    let good = fs::read(room.path().join("c")).unwrap();
    train(room.path(), &format!("{settings} --model m"));
    let model = fs::read(room.path().join("m")).unwrap();
    fs::remove_file(room.path().join("m")).unwrap();
    let expected_names = names_in(room.path());
    let refused = |bytes: &[u8], arguments: &str, problem: &str| {
        fs::write(room.path().join("c"), bytes).unwrap();
        let ran = run(room.path(), &format!("train {arguments} --model m --checkpoint c --resume"));
        assert_refused(arguments, &ran, 1, &["error: c: ", problem, "\n  help: "]);
        assert_eq!(names_in(room.path()), expected_names);
        assert!(fs::read(room.path().join("c")).unwrap() == bytes, "a refused checkpoint was changed");
    };
    for length in [0, 1, 11, good.len() / 2, good.len() - 1] {
        refused(&good[..length], settings, "");
    }
    for place in (4..good.len()).step_by(good.len() / 40) {
        let mut flipped = good.clone();
        flipped[place] ^= 0x10;
        refused(&flipped, settings, "");
    }
    refused(b"my notes", settings, "");
    refused(&model, settings, "this is a model, not a checkpoint");
    let deeper = format!("{settings} --set max_depth=3");
    refused(&good, &deeper, "from a different training run: it has max_depth = 5");
    refused(
        &good,
        &format!("--data other {more}"),
        "from a different training run: the training data differ",
    );
    refused(&good, &format!("{settings} --valid vali"), "a different training");
    let fewer = format!("--data data --set learning_rate=0.01 --set num_trees={}", rounds - 1);
    refused(&good, &fewer, "rounds already");
    // The undamaged one is still accepted.
    fs::write(room.path().join("c"), &good).unwrap();
    train(room.path(), &format!("{settings} --model m --checkpoint c --resume"));
    assert!(fs::read(room.path().join("m")).unwrap() == model);
}
