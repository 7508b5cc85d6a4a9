//! Trainings: quiet, refused, short of memory, killed and resumed.

use super::datasets::same_rows;
use super::files::{assert_same_bytes, names_in, room};
use super::processes::{kill_running, start, start_silent, wait_for};
use super::program::{Ran, assert_refused, run};
use super::tables::{described, rounds_of, table_of};
use planetree::random::Stream;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Trains without messages; asserts success.
pub fn train(directory: &Path, arguments: &str) -> Ran {
    run(directory, &format!("--quiet train {arguments}")).ok()
}

/// Trains the model `m` and reads its bytes.
pub fn trained_bytes(directory: &Path, arguments: &str) -> Vec<u8> {
    train(directory, &format!("{arguments} --model m"));
    fs::read(directory.join("m")).unwrap()
}

/// Asserts that trainings are refused, each with a message, and leave no files.
pub fn assert_trainings_refused(directory: &Path, cases: &[(&str, &str)]) {
    let before = names_in(directory);
    for (arguments, message) in cases {
        let ran = run(directory, &format!("train {arguments} --model m"));
        assert!(ran.code == 1 || ran.code == 2, "{arguments}: {}", ran.stderr);
        assert_refused(arguments, &ran, ran.code, &["error: ", message, "\n  help: "]);
        assert_eq!(names_in(directory), before, "{arguments}: files were left behind");
    }
}

/// The error of a training for which a limit in MiB is too small.
fn refused_memory(directory: &Path, arguments: &str, limit: u64) -> Option<String> {
    let ran = run(directory, &format!("train {arguments} --model refused --memory-limit {limit}MiB"));
    if ran.code == 0 {
        fs::remove_file(directory.join("refused")).unwrap();
        return None;
    }
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    Some(ran.stderr)
}

/// The number of MiB that follows a word of a text.
fn mebibytes_after(text: &str, word: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let place = words.iter().position(|other| *other == word).unwrap();
    assert_eq!(words[place + 2], "MiB", "{text}");
    words[place + 1].parse().unwrap()
}

/// The memory in MiB that a training reports to need, if the limit in MiB is too small for it.
pub fn wanted_memory(directory: &Path, arguments: &str, limit: u64) -> Option<u64> {
    refused_memory(directory, arguments, limit).map(|stderr| mebibytes_after(&stderr, "about"))
}

/// The smallest memory limit in MiB that a training accepts. It is the first one that the training names, unless distinct
/// values have to be counted, which needs some memory, too.
pub fn least_memory(directory: &Path, arguments: &str) -> u64 {
    let mut limit = 1;
    let mut refusals = 0;
    while let Some(stderr) = refused_memory(directory, arguments, limit) {
        let is_counted = !stderr.contains("distinct values are counted");
        let wanted = mebibytes_after(&stderr, if is_counted { "about" } else { "from" });
        assert!(wanted > limit, "{wanted} MiB are wanted, {limit} MiB were given");
        refusals += usize::from(is_counted);
        assert!(refusals < 2, "{arguments}: the first limit was not enough: {stderr}");
        limit = wanted;
    }
    limit
}

/// Asserts that a training on `data` has the same outputs with its binned rows on disk: once when it writes the cache,
/// once when it reuses it. Outputs are options and file names. Returns the memory limit in MiB, the content of the
/// outputs, and leaves the cache `data.bins`.
pub fn assert_same_outputs_from_disk(
    directory: &Path,
    arguments: &str,
    outputs: &[(&str, &str)],
) -> (u64, Vec<Vec<u8>>) {
    let cache = directory.join("data.bins");
    let named: String = outputs.iter().map(|(option, file)| format!(" {option} {file}")).collect();
    let outputs_with = |options: &str| -> Vec<Vec<u8>> {
        train(directory, &format!("{arguments} --model m{named} {options}"));
        let files = ["m"].into_iter().chain(outputs.iter().map(|(_, file)| *file));
        let take = |file: &str| {
            let content = fs::read(directory.join(file)).unwrap();
            fs::remove_file(directory.join(file)).unwrap();
            content
        };
        files.map(take).collect()
    };
    let expected = outputs_with("");
    assert!(!cache.exists(), "{arguments}: data that fit into memory need no cache");
    let limit_of = |threads: u32| least_memory(directory, &format!("{arguments}{named} --threads {threads}"));
    let (one, limit) = (limit_of(1), limit_of(2));
    fs::remove_dir_all(&cache).unwrap(); // from the search for the limits
    for (cache_is, threads, limit) in [("written", 1, one), ("reused", 2, limit)] {
        let found = outputs_with(&format!("--memory-limit {limit}MiB --threads {threads}"));
        assert!(found == expected, "{arguments}: cache {cache_is}, {limit} MiB");
        assert_eq!(names_in(&cache).len(), 2, "{arguments}: {:?}", names_in(&cache));
    }
    (limit, expected)
}

/// Grows forests on one partition with one thread, then with other partitions and thread counts of [`same_rows`];
/// asserts that all models have the same bytes.
pub fn assert_same_forests(variants: &[&str], others: &[(&str, u32)]) {
    let room = room();
    same_rows(room.path());
    for variant in variants {
        for kind in ["", "weighted-"] {
            let bytes = |partitions: &str, threads: u32| {
                let data = format!("--data {kind}{partitions} --threads {threads}");
                trained_bytes(room.path(), &format!("{variant} {data} --set num_trees=5 --set seed=3"))
            };
            let expected = bytes("one", 1);
            let nodes = table_of(&room.path().join("m")).num_rows();
            assert!(nodes > 50, "{variant}: only {nodes} nodes");
            for (partitions, threads) in others {
                let context = format!("{variant}: {kind}{partitions}, {threads} threads");
                assert!(bytes(partitions, *threads) == expected, "{context}");
            }
        }
    }
}

/// Starts a training that never ends by itself and kills it as soon as a condition holds.
pub fn kill_training_when(directory: &Path, arguments: &str, what: &str, condition: impl FnMut() -> bool) {
    let child = start_silent(directory, &format!("train {arguments} --set num_trees=100000"));
    wait_for(what, condition);
    kill_running(child);
    for name in names_in(directory).iter().filter(|name| name.starts_with('.')) {
        fs::remove_file(directory.join(name)).unwrap(); // half-written checkpoint
    }
}

/// Kills a training after its second round or later; leaves the checkpoint `c` and returns its number of rounds.
pub fn stop_at_checkpoint(directory: &Path, arguments: &str) -> u64 {
    let arguments = format!("{arguments} --model m --checkpoint c --checkpoint-every 1");
    kill_training_when(directory, &arguments, "a checkpoint of two rounds", || {
        directory.join("c").exists() && rounds_in(directory, "c") > 1
    });
    rounds_in(directory, "c")
}

/// Number of rounds of a model or checkpoint.
pub fn rounds_in(directory: &Path, model: &str) -> u64 {
    described(directory, model)["rounds"].as_u64().unwrap()
}

/// Asserts that a training which is killed and resumed ends with the model and the log of an undisturbed one.
pub fn assert_resumes_with_the_same_log(directory: &Path, arguments: &str) {
    let trees = stop_at_checkpoint(directory, arguments) + 3;
    let settings = format!("{arguments} --set num_trees={trees}");
    train(directory, &format!("{settings} --model whole --rounds whole-rounds"));
    train(directory, &format!("{settings} --model m --rounds rounds --checkpoint c --resume"));
    let log = rounds_of(&directory.join("rounds"));
    assert_eq!(log, rounds_of(&directory.join("whole-rounds")), "{arguments}");
    assert_eq!(log.last().unwrap().round as u64, trees, "{arguments}");
    assert_same_bytes(directory, "m", "whole", arguments);
    assert!(!directory.join("c").exists(), "{arguments}: a complete model needs no checkpoint");
}

/// Kills a training at random moments and once just after a checkpoint, and lets it finish; asserts that the model is the
/// one of an undisturbed training. Returns how many runs resumed from a checkpoint, at least one, and removes both models.
pub fn killed_and_resumed(directory: &Path, arguments: &str, kills: u64) -> usize {
    let begun = Instant::now();
    train(directory, &format!("{arguments} --model whole"));
    let usual = begun.elapsed();
    let resuming = format!("train {arguments} --model killed --checkpoint-every 1 --resume");
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut draw = Stream::new(&[kills, 4]);
    let mut resumed = 0;
    let mut count = |stderr: &str| resumed += usize::from(stderr.contains("resuming from round"));
    for _ in 0..kills {
        let mut child = start(directory, &resuming, log.path());
        // A random moment of the whole duration is what is tested.
        std::thread::sleep(usual.mul_f64(0.05 + 0.9 * draw.uniform()));
        child.kill().unwrap();
        child.wait().unwrap();
        count(&fs::read_to_string(log.path()).unwrap());
        // Files that exist are complete.
        for name in ["killed", "killed.checkpoint"] {
            if directory.join(name).exists() {
                run(directory, &format!("describe {name}")).ok();
            }
        }
    }
    // On a busy machine all these kills may come before the first checkpoint or after the end.
    kill_after_a_checkpoint(directory, &resuming, log.path());
    count(&run(directory, &resuming).ok().stderr);
    assert_same_bytes(directory, "killed", "whole", arguments);
    // Running it once more changes nothing.
    run(directory, &resuming).ok();
    assert_same_bytes(directory, "killed", "whole", arguments);
    assert!(resumed > 0, "{arguments}: no run resumed from a checkpoint");
    for name in ["whole", "killed"] {
        fs::remove_file(directory.join(name)).unwrap();
    }
    resumed
}

/// Leaves a checkpoint to resume from and no model. A training that ends before it is killed is started again from round 1.
fn kill_after_a_checkpoint(directory: &Path, resuming: &str, log: &Path) {
    let (model, checkpoint) = (directory.join("killed"), directory.join("killed.checkpoint"));
    for _ in 0..20 {
        if checkpoint.exists() && !model.exists() {
            return;
        }
        if model.exists() {
            fs::remove_file(&model).unwrap();
        }
        let mut child = start(directory, resuming, log);
        wait_for("a checkpoint", || checkpoint.exists() || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    panic!("{resuming}: ended twenty times before it could be killed");
}
