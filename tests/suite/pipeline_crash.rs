//! Killed at any moment and run again, a pipeline ends in the bytes of one that nobody disturbed, and
//! repeats no step that was done.

use crate::pipeline::{manifest, prepared};
use crate::support::*;
use planetree::pipeline::StepStatus;
use planetree::random::Stream;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

const TEXT: &str = r#"
[pipeline]
name = "killed"
[parameters]
presets = ["planet", "lambdamart"]
[step.train]
kind = "convert"
input = "train.txt"
partition_rows = 200
[step.test]
kind = "convert"
input = ["train.txt"]
[step.model]
for_each = { preset = "{presets}" }
kind = "train"
data = "train"
valid = "test"
preset = "{preset}"
checkpoint_every = "1"
set = { num_trees = 40, min_data_in_leaf = 2 }
[step.cv]
kind = "cv"
data = "train"
folds = 3
set = { num_trees = 5, min_data_in_leaf = 2 }
[step.scores]
for_each = { preset = "{presets}" }
kind = "predict"
model = "model-{preset}"
data = "test"
scores = "scores-{preset}.txt"
[step.quality]
kind = "evaluate"
predictions = "scores-*"
[step.comparison]
kind = "compare"
files = "scores-*"
"#;

/// Every output below a run directory; not the record, which tells times.
fn outputs(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![run.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(run).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if !["run.json", "steps.parquet"].contains(&name.as_str()) && !name.ends_with("-lock") {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    // What cv says of a fold tells times, too.
    found.retain(|name, _| !name.ends_with("rounds.parquet") && !name.ends_with("fold.json"));
    found
}

fn killed_at(moments: u64, jobs: usize) {
    let room = prepared(TEXT);
    fs::write(room.path().join("train.txt"), some_text(60, 20)).unwrap();
    let begun = Instant::now();
    run(room.path(), &format!("run p.toml --output whole --jobs {jobs}")).ok();
    let usual = begun.elapsed();
    let whole = outputs(&room.path().join("whole"));
    assert!(whole.len() > 20, "{:?}", whole.keys());
    let mut draw = Stream::new(&[moments, jobs as u64]);
    let mut kept = 0;
    for moment in 0..moments {
        let name = format!("killed{moment}");
        let directory = room.path().join(&name);
        let arguments = format!("run p.toml --output {name} --jobs {jobs}");
        let mut child =
            command(room.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(usual.mul_f64(0.02 + 0.95 * draw.uniform()));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let record = directory.join("run.json").exists().then(|| manifest(&directory));
        let done: Vec<String> = record
            .iter()
            .flat_map(|record| &record.steps)
            .filter(|step| step.status == StepStatus::Done)
            .map(|step| step.name.clone())
            .collect();
        kept += done.len();
        run(room.path(), &arguments).ok();
        let record = manifest(&directory);
        for name in &done {
            assert_eq!(
                record.step(name).unwrap().status,
                StepStatus::Skipped,
                "{name} was done before the kill"
            );
        }
        let found = outputs(&directory);
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            whole.keys().collect::<Vec<_>>(),
            "nothing is left over"
        );
        for (file, bytes) in &whole {
            // What cv prints names its directory.
            let same =
                |bytes: &[u8], directory: &str| String::from_utf8_lossy(bytes).replace(directory, "RUN");
            let is_text = file.ends_with(".txt");
            assert!(
                found[file] == *bytes || (is_text && same(&found[file], &name) == same(bytes, "whole")),
                "moment {moment}: {file} differs"
            );
        }
        fs::remove_dir_all(directory).unwrap();
    }
    assert!(kept > moments as usize, "kills came too early to mean anything: {kept} steps were done");
}

#[test]
fn killed_at_twenty_moments_a_pipeline_ends_in_the_same_bytes() {
    killed_at(20, 1);
}

#[test]
#[ignore = "long"]
fn killed_at_a_hundred_moments_with_two_jobs() {
    killed_at(100, 2);
}
