//! A pipeline that is killed at any moment and run again ends with the same bytes as an undisturbed one, and repeats no
//! finished step.

use crate::support::pipelines::{manifest, prepared};
use crate::support::*;
use planetree::random::Stream;
use planetree_run::pipeline::StepStatus;
use std::collections::BTreeSet;
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

/// The names of all outputs below a run directory, including hidden ones; without the record, which contains times.
fn outputs(run: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![run.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(run).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if !["run.json", "steps.parquet"].contains(&name.as_str()) && !name.ends_with("-lock") {
                found.insert(name);
            }
        }
    }
    found
}

/// Whether two files are equal except for durations and the name of the run directory.
fn same(left: &Path, right: &Path) -> bool {
    if fs::read(left).unwrap() == fs::read(right).unwrap() {
        return true;
    }
    let ending = left.extension().unwrap_or_default();
    if ending == "parquet" {
        let timeless = |path: &Path| {
            let mut table = table_of(path);
            let seconds = table.schema().index_of("seconds").ok();
            seconds.map(|seconds| table.remove_column(seconds));
            (table, seconds)
        };
        let (left, right) = (timeless(left), timeless(right));
        return left.1.is_some() && left == right;
    }
    let neutral = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let name = path.ancestors().find_map(|path| {
            let name = path.file_name()?.to_str()?;
            (name == "whole" || name.starts_with("killed")).then_some(name)
        });
        let text = text.replace(name.unwrap(), "RUN");
        // Durations differ, and with them the checksums of a fold's log and record.
        let timely = ["\"seconds\":", "\"rounds\":", "\"xxh3\":"];
        let timeless = |line: &&str| !timely.iter().any(|key| line.trim_start().starts_with(key));
        text.lines().filter(timeless).map(str::to_owned).collect::<Vec<_>>()
    };
    ["txt", "json"].iter().any(|text| ending == *text) && neutral(left) == neutral(right)
}

fn killed_at(moments: u64, jobs: usize) {
    let room = prepared(TEXT);
    fs::write(room.path().join("train.txt"), some_text(60, 20)).unwrap();
    let begun = Instant::now();
    run(room.path(), &format!("run p.toml --output whole --jobs {jobs}")).ok();
    let mut usual = begun.elapsed();
    let whole = outputs(&room.path().join("whole"));
    assert!(whole.len() > 20, "{whole:?}");
    let mut draw = Stream::new(&[moments, jobs as u64]);
    let mut kept = 0;
    for moment in 0..moments {
        let name = format!("killed{moment}");
        let directory = room.path().join(&name);
        let arguments = format!("run p.toml --output {name} --jobs {jobs}");
        let mut child =
            command(room.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let waited = usual.mul_f64(0.02 + 0.95 * draw.uniform());
        std::thread::sleep(waited);
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
        let begun = Instant::now();
        run(room.path(), &arguments).ok();
        usual = waited + begun.elapsed(); // as long as it takes while the machine is as busy as now
        let record = manifest(&directory);
        for name in &done {
            assert_eq!(
                record.step(name).unwrap().status,
                StepStatus::Skipped,
                "{name} had finished before the kill"
            );
        }
        let found = outputs(&directory);
        assert_eq!(found, whole, "no leftover files");
        for file in &whole {
            let places = (directory.join(file), room.path().join("whole").join(file));
            assert!(same(&places.0, &places.1), "moment {moment}: {file} differs");
        }
        fs::remove_dir_all(directory).unwrap();
    }
    assert!(kept > moments as usize, "killed too early to be a test: only {kept} steps had finished");
}

#[test]
fn a_pipeline_killed_at_twenty_moments_ends_with_the_same_bytes() {
    killed_at(20, 1);
}

#[test]
#[ignore = "long"]
fn a_pipeline_with_two_jobs_killed_at_a_hundred_moments_ends_with_the_same_bytes() {
    killed_at(100, 2);
}
