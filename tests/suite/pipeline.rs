//! Pipelines from the command line: which steps run, which are skipped, and which errors are reported.

use crate::support::pipelines::{manifest, prepared};
use crate::support::*;
use planetree_run::pipeline::{RunStatus, StepStatus};
use std::fs;
use std::path::{Path, PathBuf};

/// A pipeline of four fast steps.
const SMALL: &str = r#"
[pipeline]
name = "small"
[parameters]
trees = 3
metrics = ["ndcg@10", "err"]
[step.train]
kind = "convert"
input = "train.txt"
partition_rows = 100
[step.model]
kind = "train"
data = "train"
rounds = "rounds.parquet"
set = { num_trees = "{trees}", min_data_in_leaf = 2 }
[step.scores]
kind = "predict"
model = "model"
data = "train"
[step.quality]
kind = "evaluate"
predictions = "scores"
metrics = "{metrics}"
"#;

/// The steps that ran in the last run.
fn done(run: &Path) -> Vec<String> {
    let manifest = manifest(run);
    assert_eq!(manifest.status, RunStatus::Complete);
    assert!(manifest.steps.iter().all(|step| step.status.is_finished()));
    let done = manifest.steps.iter().filter(|step| step.status == StepStatus::Done);
    done.map(|step| step.name.clone()).collect()
}

#[test]
fn a_pipeline_runs_and_records_its_steps() {
    let room = prepared(SMALL);
    let ran = run(room.path(), "run p.toml").ok();
    assert!(ran.stdout.contains("ndcg@10"), "standard output of steps is shown: {}", ran.stdout);
    assert!(ran.stderr.contains("model | [1] train rmse"), "{}", ran.stderr);
    assert!(ran.stderr.contains("small: 4 steps run, 0 skipped"), "{}", ran.stderr);
    let directory = room.path().join("runs/small");
    assert_eq!(done(&directory), ["train", "model", "scores", "quality"]);
    let visible: Vec<String> =
        names_in(&directory).into_iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!(
        visible,
        [
            "model.parquet",
            "quality.parquet",
            "quality.txt",
            "rounds.parquet",
            "run.json",
            "scores.parquet",
            "steps.parquet",
            "train"
        ]
    );
    assert_eq!(fs::read_to_string(directory.join("quality.txt")).unwrap(), ran.stdout);
    let record = manifest(&directory);
    let model = record.step("model").unwrap();
    assert_eq!(model.inputs["data"], "runs/small/train");
    assert_eq!(model.outputs["model"], "model.parquet");
    assert_eq!(model.arguments[..3], ["train", "--data", "runs/small/train"]);
    assert!(model.seconds > Some(0.0) && model.bytes > Some(0) && model.rows > Some(2), "{model:?}");
    assert!(model.peak_memory_bytes > Some(1 << 20), "{model:?}");
    assert_eq!(record.step("train").unwrap().rows, Some(600));
    assert_eq!(record.step("scores").unwrap().rows, Some(600));
    assert_eq!(record.parameters["metrics"], "ndcg@10,err");
    let steps = run(room.path(), "describe runs/small/steps.parquet --json").ok().stdout;
    let steps: serde_json::Value = serde_json::from_str(&steps).unwrap();
    assert_eq!(steps["pipeline"], "small");
    assert_eq!(steps["steps"][0]["step"], "train");
    assert_eq!(steps["steps"][3]["status"], "done");
    let steps = run(room.path(), "describe runs/small/steps.parquet").ok().stdout;
    assert!(steps.contains("train                    convert   done"), "{steps}");
    // The recorded commands give the same bytes.
    let model = fs::read(directory.join("model.parquet")).unwrap();
    run(room.path(), "train --data runs/small/train --set num_trees=3 --set min_data_in_leaf=2 --model m")
        .ok();
    assert!(fs::read(room.path().join("m")).unwrap() == model);
}

#[test]
fn a_step_runs_again_only_if_something_changed() {
    let room = prepared(SMALL);
    let directory = room.path().join("runs/small");
    let at = |name: &str| directory.join(name);
    let all = ["train", "model", "scores", "quality"];
    let go = |options: &str| {
        let ran = run(room.path(), &format!("run p.toml {options}")).ok();
        (done(&directory), ran)
    };
    let edit = |from: &str, to: &str| {
        let text = fs::read_to_string(room.path().join("p.toml")).unwrap();
        assert!(text.contains(from));
        fs::write(room.path().join("p.toml"), text.replace(from, to)).unwrap();
    };
    let flip = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    assert_eq!(go("").0, all);
    let (none, ran) = go("");
    assert_eq!(none, [""; 0]);
    assert!(ran.stdout.contains("ndcg@10"), "the output of a skipped step is shown again");
    assert!(ran.stderr.contains("0 steps run, 4 skipped"), "{}", ran.stderr);
    // Irrelevant changes.
    fs::write(room.path().join("train.txt"), some_text(30, 20)).unwrap();
    assert_eq!(go("").0, [""; 0], "the same content, rewritten");
    edit("[step.model]", "# a comment\n[step.model]\nthreads = 1");
    assert_eq!(go("--threads 1 --memory-limit 1GiB --jobs 2").0, [""; 0], "resource options");
    edit("[step.scores]\nkind = \"predict\"", "[step.scores]\nkind = 'predict'");
    assert_eq!(go("").0, [""; 0]);
    // Options.
    assert_eq!(go("--set metrics=err").0, ["quality"]);
    let (steps, ran) = go("--set trees=4 --set metrics=err");
    assert_eq!(steps, ["model", "scores", "quality"]);
    assert!(ran.stderr.contains("model: train, options changed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("scores: predict, model changed"), "{}", ran.stderr);
    assert_eq!(go("").0, ["model", "scores", "quality"], "back to the defaults");
    edit("metrics = \"{metrics}\"", "metrics = \"{metrics}\"\nworst = 1");
    assert_eq!(go("").0, ["quality"]);
    // Modified outputs.
    fs::remove_file(at("model.parquet")).unwrap();
    assert_eq!(go("").0, ["model"], "the same model again, so no other step runs");
    flip(at("scores.parquet"));
    let (steps, ran) = go("");
    assert_eq!(steps, ["scores"]);
    assert!(ran.stderr.contains("scores: predict, output was modified"), "{}", ran.stderr);
    fs::write(at("quality.txt"), "").unwrap();
    assert_eq!(go("").0, ["quality"]);
    let parts: Vec<String> =
        names_in(&at("train")).into_iter().filter(|name| name.ends_with(".parquet")).collect();
    assert!(parts.len() > 1, "{parts:?}");
    flip(at("train").join(&parts[1]));
    assert_eq!(go("").0, ["train"]);
    fs::remove_file(at("train").join(&parts[0])).unwrap();
    assert_eq!(go("").0, ["train"]);
    flip(at("train/_manifest.json"));
    assert_eq!(go("").0, ["train"]);
    fs::remove_dir_all(at("train")).unwrap();
    assert_eq!(go("").0, ["train"]);
    // Inputs.
    fs::write(room.path().join("train.txt"), some_text(31, 20)).unwrap();
    let (steps, ran) = go("");
    assert_eq!(steps, all);
    assert!(ran.stderr.contains("train: convert, input changed"), "{}", ran.stderr);
    // --force, and another version of the program.
    let (steps, ran) = go("--force model train");
    assert_eq!(steps, ["train", "model"]);
    assert!(ran.stderr.contains("model: train, --force"), "{}", ran.stderr);
    assert_eq!(go("--force *o*").0, ["model", "scores"]);
    let record = fs::read_to_string(at("run.json")).unwrap();
    let fingerprint = manifest(&directory).step("model").unwrap().fingerprint.clone();
    let older = format!("{:032x} {}", 1, fingerprint.split(' ').nth(1).unwrap());
    fs::write(at("run.json"), record.replace(&fingerprint, &older)).unwrap();
    let (steps, ran) = go("");
    assert_eq!(steps, ["model"]);
    assert!(ran.stderr.contains("last run by another version"), "{}", ran.stderr);
    // A renamed step is a new step.
    edit("[step.quality]", "[step.goodness]");
    assert_eq!(go("").0, ["goodness"]);
    assert_eq!(go("").0, [""; 0]);
    // The run directory can be moved.
    fs::rename(&directory, room.path().join("moved")).unwrap();
    run(room.path(), "run p.toml --output moved").ok();
    assert_eq!(done(&room.path().join("moved")), [""; 0]);
}

#[test]
fn a_dry_run_prints_the_plan_and_runs_nothing() {
    let room = prepared(SMALL);
    let plan = run(room.path(), "run p.toml --dry-run").ok().stdout;
    assert!(!room.path().join("runs").exists());
    assert!(
        plan.starts_with("pipeline small\nrun directory runs/small\n  metrics = ndcg@10,err\n  trees = 3\n"),
        "{plan}"
    );
    for line in [
        "  1  train                    convert   run: not run yet\n       reads  input          train.txt\n       writes output         runs/small/train\n",
        "  2  model                    train     run: after train\n       reads  data           runs/small/train  (step train)\n       writes model          runs/small/model.parquet\n       writes rounds         runs/small/rounds.parquet\n",
        "\n4 steps: 4 would run, 0 would be skipped\n",
    ] {
        assert!(plan.contains(line), "{plan}");
    }
    run(room.path(), "run p.toml").ok();
    let plan = run(room.path(), "run p.toml --dry-run").ok().stdout;
    assert!(plan.contains("4 steps: 0 would run, 4 would be skipped"), "{plan}");
    let plan = run(room.path(), "run p.toml --dry-run --set trees=5").ok().stdout;
    assert!(plan.contains("model                    train     run: options changed"), "{plan}");
    assert!(plan.contains("predict   run if the output of model changes"), "{plan}");
    assert!(plan.contains("4 steps: 1 would run, 2 may, 1 would be skipped"), "{plan}");
    let plan = run(room.path(), "run p.toml --dry-run --force scores").ok().stdout;
    assert!(plan.contains("predict   run: --force"), "{plan}");
}

#[test]
fn a_failing_step_stops_the_run_and_is_named() {
    let room = prepared(&format!(
        "{SMALL}\n[step.bad]\nkind = \"convert\"\ninput = \"bad.txt\"\n[step.never]\nkind = \"describe\"\npath = \"bad\"\n"
    ));
    fs::write(room.path().join("bad.txt"), "1 qid:1 1:1\nnonsense\n").unwrap();
    let ran = run(room.path(), "run p.toml").failed();
    assert!(ran.stderr.contains("error: step bad: bad.txt:2:1: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  help: "), "{}", ran.stderr);
    let record = manifest(&room.path().join("runs/small"));
    assert_eq!(record.status, RunStatus::Failed);
    let status = |name: &str| record.step(name).unwrap().status;
    assert_eq!(
        (status("train"), status("bad"), status("never")),
        (StepStatus::Done, StepStatus::Failed, StepStatus::Pending)
    );
    assert!(record.step("bad").unwrap().error.as_ref().unwrap().starts_with("bad.txt:2:1: "), "{record:?}");
    assert!(!room.path().join("runs/small/bad").exists());
    // Once the input is fixed, the run continues.
    fs::write(room.path().join("bad.txt"), "1 qid:1 1:1\n").unwrap();
    run(room.path(), "run p.toml").ok();
    let ran = done(&room.path().join("runs/small"));
    assert!(ran.contains(&"bad".to_owned()) && !ran.contains(&"train".to_owned()), "{ran:?}");
    // Other running steps are left to finish.
    fs::write(room.path().join("bad.txt"), "x\n").unwrap();
    fs::write(room.path().join("train.txt"), some_text(100, 20)).unwrap();
    run(room.path(), "run p.toml --jobs 2").failed();
    let record = manifest(&room.path().join("runs/small"));
    assert_eq!(record.step("train").unwrap().status, StepStatus::Done);
}

#[test]
fn misuse_is_reported_before_anything_runs() {
    let room = prepared(SMALL);
    let text = fs::read_to_string(room.path().join("p.toml")).unwrap();
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(room.path().join("p.toml"), text.replace(from, to)).unwrap();
    };
    for (from, to, code, expected) in [
        (
            "kind = \"train\"",
            "kind = \"trane\"",
            2,
            "error: p.toml:12:8: unknown kind \"trane\"\n  help: did you mean train?\n",
        ),
        (
            "rounds =",
            "round =",
            2,
            "error: p.toml:14:1: unknown key \"round\" in step model of kind train\n  help: did you mean rounds?\n",
        ),
        ("{trees}", "{tree}", 2, "unknown parameter \"tree\"\n  help: did you mean trees?\n"),
        (
            "num_trees",
            "num_treees",
            2,
            "step model: unknown parameter \"num_treees\"\n  help: did you mean num_trees",
        ),
        (
            "train.txt",
            "absent.txt",
            1,
            "error: p.toml:9:9: step train: input = absent.txt: no such file, and no step writes it\n",
        ),
        (
            "data = \"train\"\nrounds",
            "data = \"scores\"\nrounds",
            2,
            "steps depend on each other: model needs scores needs model",
        ),
        ("rounds.parquet", "scores.parquet", 2, "scores.parquet is written by both step model"),
        (
            "metrics = \"{metrics}\"",
            "metrics = \"{metrics}\"\nfrob = 1",
            2,
            "unknown key \"frob\" in step quality",
        ),
        ("[step.scores]", "[step.scores", 2, "error: p.toml:16:13: "),
    ] {
        edited(from, to);
        let ran = run(room.path(), "run p.toml");
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(!room.path().join("runs/small/train").exists(), "{to}");
    }
}

#[test]
fn the_run_directory_of_another_pipeline_is_rejected() {
    let room = prepared(SMALL);
    run(room.path(), "run p.toml --output here").ok();
    let other = SMALL.replace("name = \"small\"", "name = \"other\"");
    fs::write(room.path().join("o.toml"), other).unwrap();
    let ran = run(room.path(), "run o.toml --output here").failed();
    assert!(
        ran.stderr.contains("here: this is the run directory of another pipeline: small"),
        "{}",
        ran.stderr
    );
    fs::write(room.path().join("here/run.json"), "{").unwrap();
    let ran = run(room.path(), "run p.toml --output here").failed();
    assert!(ran.stderr.contains("here/run.json: invalid run manifest"), "{}", ran.stderr);
}

#[test]
fn a_resumed_run_keeps_its_parameters() {
    let room = prepared(SMALL);
    let directory = room.path().join("runs/small");
    run(room.path(), "run p.toml --set trees=5 --set metrics=err").ok();
    run(room.path(), "run p.toml --resume").ok();
    assert_eq!(done(&directory), [""; 0]);
    assert_eq!(manifest(&directory).parameters["trees"], "5");
    run(room.path(), "run p.toml --resume --set metrics=ndcg@10").ok();
    assert_eq!(done(&directory), ["quality"]);
    run(room.path(), "run p.toml --resume --output fresh").ok();
    assert_eq!(manifest(&room.path().join("fresh")).parameters["trees"], "3");
}

#[test]
fn a_cross_validation_over_changed_data_replaces_its_folds() {
    let text = r#"
[pipeline]
name = "folds"
[step.data]
kind = "convert"
input = "train.txt"
[step.cv]
kind = "cv"
data = "data"
folds = 3
set = { num_trees = 3, min_data_in_leaf = 2 }
[step.quality]
kind = "evaluate"
predictions = "cv/predictions.parquet"
"#;
    let room = prepared(text);
    let directory = room.path().join("runs/folds");
    run(room.path(), "run p.toml").ok();
    run(room.path(), "run p.toml").ok();
    assert_eq!(done(&directory), [""; 0]);
    fs::remove_file(directory.join("cv/folds/2/model.parquet")).unwrap();
    run(room.path(), "run p.toml").ok();
    assert_eq!(done(&directory), ["cv"]);
    fs::write(room.path().join("train.txt"), some_text(40, 20)).unwrap();
    run(room.path(), "run p.toml").ok();
    assert_eq!(done(&directory), ["data", "cv", "quality"]);
}

#[test]
fn concurrent_runs_are_rejected_and_interrupts_leave_a_clean_state() {
    let room = prepared(&SMALL.replace("trees = 3", "trees = 1000000"));
    let directory = room.path().join("runs/small");
    for (name, log) in [("-INT", "first"), ("-TERM", "second")] {
        let log = room.path().join(log);
        let mut child = start(room.path(), "run p.toml", &log);
        wait_for("a round", || fs::read_to_string(&log).unwrap().contains("model | ["));
        let ran = run(room.path(), "run p.toml").failed();
        assert_eq!(
            ran.stderr,
            "error: runs/small: run directory is in use by another run\n  help: wait for it to end, or choose another --output\n"
        );
        assert_eq!(manifest(&directory).status, RunStatus::Running);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let messages = fs::read_to_string(&log).unwrap();
        assert!(messages.ends_with("error: runs/small: interrupted; finished steps are kept\n  help: run the same command again to resume\n"), "{messages}");
        assert_eq!(messages.contains("resuming from round"), name == "-TERM", "{messages}");
        let record = manifest(&directory);
        assert_eq!(record.status, RunStatus::Failed);
        assert_eq!(record.step("model").unwrap().status, StepStatus::Pending);
        assert!(record.step("train").unwrap().status.is_finished());
        let left: Vec<String> =
            names_in(&directory).into_iter().filter(|name| !name.ends_with("-lock")).collect();
        assert_eq!(left, ["model.parquet.checkpoint", "run.json", "train"], "no partial files");
    }
}

#[test]
fn independent_steps_run_concurrently() {
    let text: String = (0..2)
        .map(|number| {
            format!("[step.m{number}]\nkind = \"train\"\ndata = \"train\"\nset = {{ num_trees = 1000000, seed = {number}, min_data_in_leaf = 2 }}\n")
        })
        .collect();
    let room = prepared(&format!(
        "[pipeline]\nname = \"both\"\n[step.train]\nkind = \"convert\"\ninput = \"train.txt\"\n{text}"
    ));
    let log = room.path().join("log");
    let mut child = start(room.path(), "run p.toml --jobs 2 --threads 2", &log);
    wait_for("both", || {
        let messages = fs::read_to_string(&log).unwrap();
        messages.contains("m0 | [10] ") && messages.contains("m1 | [10] ")
    });
    let record = manifest(&room.path().join("runs/both"));
    for name in ["m0", "m1"] {
        let words = record.step(name).unwrap().arguments.join(" ");
        assert!(words.contains("--threads 1"), "threads are shared: {words}");
    }
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_cross_validation_from_outside_the_pipeline_is_not_replaced() {
    let text = "[pipeline]\nname = \"p\"\n[step.train]\nkind = \"convert\"\ninput = \"train.txt\"\n[step.folds]\nkind = \"cv\"\n\
                data = \"train\"\nfolds = 3\nset = { num_trees = 2, min_data_in_leaf = 2 }\noutput = \"OUTPUT\"\n";
    let room = prepared(&text.replace("OUTPUT", "mine"));
    run(room.path(), "convert train.txt --output other").ok();
    run(room.path(), "cv --data other --folds 3 --preset planet --set num_trees=1 --output by-hand").ok();
    fs::write(room.path().join("by-hand/notes.txt"), "precious").unwrap();
    run(room.path(), "run p.toml --output r").ok();
    // A step that has run a cross-validation before must not replace another one either.
    let by_hand = room.path().join("by-hand");
    for trees in ["2", "3"] {
        let text = text.replace("OUTPUT", by_hand.to_str().unwrap());
        fs::write(room.path().join("p.toml"), text.replace("num_trees = 2", &format!("num_trees = {trees}")))
            .unwrap();
        let ran = run(room.path(), "run p.toml --output r").failed();
        assert!(ran.stderr.contains("did not create"), "{}", ran.stderr);
        assert!(by_hand.join("notes.txt").exists() && by_hand.join("cv.json").exists());
    }
}

#[test]
fn a_report_may_precede_other_steps_and_omits_removed_ones() {
    let report = "[step.page]\nkind = \"report\"\noutput = \"page.html\"\n[step.last]\nkind = \"describe\"\npath = \"train\"\nafter = \"page\"\n";
    let second =
        "[step.other]\nkind = \"train\"\ndata = \"train\"\nset = { num_trees = 1, min_data_in_leaf = 2 }\n";
    let room = prepared(&format!("{SMALL}{second}{report}"));
    let ran = run(room.path(), "run p.toml --output r").ok();
    assert!(ran.stderr.contains("1 ranking and 2 models"), "{}", ran.stderr);
    fs::write(room.path().join("p.toml"), format!("{SMALL}{report}")).unwrap();
    let ran = run(room.path(), "run p.toml --output r").ok();
    assert!(ran.stderr.contains("1 ranking and 1 model "), "{}", ran.stderr);
}
