//! Killed and resumed, a training ends in the bytes of one that nobody disturbed.

use crate::learning::*;
use crate::support::*;
use planetree::random::Stream;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Kills a training a number of times and lets it finish; says how many runs went on from a checkpoint, one at
/// least. Both models are removed.
pub fn killed_and_resumed(directory: &Path, arguments: &str, kills: u64) -> usize {
    let begun = Instant::now();
    train(directory, &format!("{arguments} --model whole"));
    let usual = begun.elapsed();
    let arguments = format!("train {arguments} --model killed --checkpoint-every 1 --resume");
    let mut draw = Stream::new(&[kills, 4]);
    let mut resumed = 0;
    let mut note = |stderr: &str| resumed += usize::from(stderr.contains("resuming from round"));
    for _ in 0..kills {
        let mut child =
            command(directory, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // A moment of the whole course, start and end included.
        std::thread::sleep(usual.mul_f64(0.05 + 0.9 * draw.uniform()));
        child.kill().unwrap(); // SIGKILL
        note(&String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr));
        // Whatever is there is whole.
        for name in ["killed", "killed.checkpoint"] {
            if directory.join(name).exists() {
                run(directory, &format!("describe {name}")).ok();
            }
        }
    }
    note(&run(directory, &arguments).ok().stderr);
    assert!(
        fs::read(directory.join("killed")).unwrap() == fs::read(directory.join("whole")).unwrap(),
        "{arguments}"
    );
    // Once more changes nothing.
    run(directory, &arguments).ok();
    assert!(fs::read(directory.join("killed")).unwrap() == fs::read(directory.join("whole")).unwrap());
    assert!(resumed > 0, "{arguments}: no run went on from a checkpoint");
    for name in ["whole", "killed"] {
        fs::remove_file(directory.join(name)).unwrap();
    }
    resumed
}

fn data(directory: &Path, queries: usize) {
    dataset(directory, "data", &graded(31, queries, 30), "--partition-rows 2000");
    dataset(directory, "vali", &graded(32, 60, 30), "");
    dataset(directory, "other", &graded(33, 30, 30), "");
}

/// The checkpoint `c` of a training that was stopped, and its rounds.
pub fn stopped(directory: &Path, arguments: &str) -> u64 {
    let arguments = format!("train {arguments} --model m --checkpoint c --checkpoint-every 1");
    let mut child = command(directory, &format!("{arguments} --set num_trees=100000"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !directory.join("c").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint appears");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(100));
    child.kill().unwrap();
    child.wait().unwrap();
    for name in names_in(directory).iter().filter(|name| name.starts_with('.')) {
        fs::remove_file(directory.join(name)).unwrap(); // half a checkpoint
    }
    let rounds = rounds_in(directory, "c");
    assert!(rounds > 1, "{rounds} rounds");
    rounds
}

fn rounds_in(directory: &Path, model: &str) -> u64 {
    let described = run(directory, &format!("describe {model} --json")).ok().stdout;
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    described["rounds"].as_u64().unwrap()
}

#[test]
fn killed_at_five_moments_a_training_ends_in_the_same_bytes() {
    let room = room();
    data(room.path(), 200);
    for arguments in [
        "--data data --set num_trees=60 --set max_depth=6",
        "--preset pgbrt --data data --valid vali --set num_trees=40 --set bagging_fraction=0.5",
        "--preset gbrt --data data --valid vali --valid other --set num_trees=40 --set missing=learned",
        "--data data --valid vali --set num_trees=400 --set early_stopping_rounds=5 --set learning_rate=0.4",
    ] {
        killed_and_resumed(room.path(), arguments, 5);
        let left: Vec<String> =
            names_in(room.path()).into_iter().filter(|name| !name.contains("txt")).collect();
        assert_eq!(left, ["data", "other", "vali"], "{arguments}: what killed runs left is gone");
    }
}

#[test]
fn a_log_goes_on_where_it_stopped() {
    let room = room();
    data(room.path(), 20);
    let common = "--data data --valid vali --set learning_rate=0.01";
    let trees = stopped(room.path(), common) + 3;
    let settings = format!("{common} --set num_trees={trees}");
    train(room.path(), &format!("{settings} --model whole --rounds whole-rounds"));
    train(room.path(), &format!("{settings} --model m --rounds rounds --checkpoint c --resume"));
    assert_eq!(rounds_of(&room.path().join("rounds")), rounds_of(&room.path().join("whole-rounds")));
    assert!(fs::read(room.path().join("m")).unwrap() == fs::read(room.path().join("whole")).unwrap());
    assert!(!room.path().join("c").exists(), "a complete model needs no checkpoint");
    let seconds = table_of(&room.path().join("rounds"));
    let seconds = arrow::array::AsArray::as_primitive::<arrow::datatypes::Float64Type>(
        seconds.column_by_name("seconds").unwrap(),
    );
    assert!(seconds.values().is_sorted(), "time goes on");
}

#[test]
fn an_interrupt_leaves_a_checkpoint_to_go_on_from() {
    let room = room();
    data(room.path(), 100);
    let settings = "--data data --set num_trees=100000 --set max_depth=6";
    let begin = |options: &str| {
        command(room.path(), &format!("train {settings} --model m {options}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for (options, left) in [("", 0), ("--checkpoint c", 1)] {
        let child = begin(options);
        std::thread::sleep(Duration::from_millis(1000));
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("error: interrupted"), "{stderr}");
        let count = names_in(room.path()).len() - 6; // three datasets and their texts
        assert_eq!(count, left, "{:?}", names_in(room.path()));
    }
    let rounds = rounds_in(room.path(), "c");
    assert!(rounds > 0);
    let shorter = format!("--data data --set max_depth=6 --set num_trees={}", rounds + 2);
    train(room.path(), &format!("{shorter} --model whole"));
    let ran = run(room.path(), &format!("train {shorter} --model m --checkpoint c --resume")).ok();
    assert!(ran.stderr.contains(&format!("resuming from round {rounds} of c")), "{}", ran.stderr);
    assert!(fs::read(room.path().join("m")).unwrap() == fs::read(room.path().join("whole")).unwrap());
}

#[test]
fn a_damaged_or_foreign_checkpoint_is_named() {
    let room = room();
    data(room.path(), 10);
    let rounds = stopped(room.path(), "--data data --set learning_rate=0.01");
    let more = format!("--set learning_rate=0.01 --set num_trees={}", rounds + 2);
    let settings = &*format!("--data data {more}");
    let good = fs::read(room.path().join("c")).unwrap();
    train(room.path(), &format!("{settings} --model m"));
    let model = fs::read(room.path().join("m")).unwrap();
    fs::remove_file(room.path().join("m")).unwrap();
    let expected_names = names_in(room.path());
    let refused = |bytes: &[u8], arguments: &str, problem: &str| {
        fs::write(room.path().join("c"), bytes).unwrap();
        let ran = run(room.path(), &format!("train {arguments} --model m --checkpoint c --resume")).failed();
        assert!(ran.stderr.contains("error: c: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(problem), "{problem:?} is not in {}", ran.stderr);
        assert!(ran.stderr.contains("\n  help: "), "{}", ran.stderr);
        assert_eq!(names_in(room.path()), expected_names);
        assert!(fs::read(room.path().join("c")).unwrap() == bytes, "a checkpoint that is refused stays");
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
    refused(&good, &deeper, "of a different training: it has max_depth = 5");
    refused(&good, &format!("--data other {more}"), "of a different training: the training data differ");
    refused(&good, &format!("{settings} --valid vali"), "a different training");
    let fewer = format!("--data data --set learning_rate=0.01 --set num_trees={}", rounds - 1);
    refused(&good, &fewer, "rounds already");
    // The good one still does.
    fs::write(room.path().join("c"), &good).unwrap();
    train(room.path(), &format!("{settings} --model m --checkpoint c --resume"));
    assert!(fs::read(room.path().join("m")).unwrap() == model);
}
