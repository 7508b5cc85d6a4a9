//! Boosting from start scores: predictions in a file, to which the value of the model is added.

use crate::support::*;
use std::fs;
use std::path::Path;

/// Datasets `data` and `vali`, a forest, and its predictions of both.
fn with_predictions(directory: &Path) {
    dataset(directory, "data", &graded(41, 60, 20), "--partition-rows 300");
    dataset(directory, "vali", &graded(42, 20, 15), "");
    train(directory, "--preset rf-point --data data --set num_trees=5 --model forest");
    for name in ["data", "vali"] {
        run(directory, &format!("predict --model forest --data {name} --output {name}-start")).ok();
        run(directory, &format!("predict --model forest --data {name} --output {name}-start.csv")).ok();
    }
}

fn scores(directory: &Path, arguments: &str) -> Vec<u8> {
    run(directory, &format!("predict {arguments} --output p --scores p.txt")).ok();
    fs::read(directory.join("p.txt")).unwrap()
}

/// A model trained on top of the predictions of a model is the same as one that starts from the model itself.
#[test]
fn start_scores_are_the_predictions_of_a_start_model() {
    let room = room();
    let at = room.path();
    with_predictions(at);
    for settings in [
        "--preset planet --set num_trees=6",
        "--preset lambdamart --set num_trees=6 --set learning_rate=0.3 --set early_stopping_rounds=2",
        "--preset planet --set num_trees=4 --set runs=2 --set bagging_fraction=0.5",
        "--preset linear",
    ] {
        let common = format!("{settings} --data data --valid vali --rounds rounds --model");
        train(at, &format!("{common} whole --start-model forest"));
        let expected_log = rounds_of(&at.join("rounds"));
        let expected = scores(at, "--model whole --data vali");
        for form in ["", ".csv"] {
            let start = format!("--start-scores data-start{form} --start-scores valid=vali-start{form}");
            train(at, &format!("{common} added {start}"));
            assert_eq!(rounds_of(&at.join("rounds")), expected_log, "{settings} {form}");
            let added = format!("--model added --data vali --start-scores vali-start{form}");
            assert!(scores(at, &added) == expected, "{settings} {form}");
            // The ranks are those of the sums.
            let ranks = table_of(&at.join("p")).column_by_name("rank").cloned();
            scores(at, "--model whole --data vali");
            assert_eq!(ranks, table_of(&at.join("p")).column_by_name("rank").cloned(), "{settings} {form}");
        }
    }
    // The value of the model alone, as in LightGBM.
    let alone = scores(at, "--model added --data vali --without-start-scores");
    assert!(alone != scores(at, "--model added --data vali --start-scores vali-start"));
}

#[test]
fn nothing_takes_the_value_of_a_model_with_start_scores_for_a_score() {
    let room = room();
    let at = room.path();
    with_predictions(at);
    train(at, "--preset planet --set num_trees=3 --data data --start-scores data-start --model added");
    let fails = |arguments: &str, messages: &[&str]| {
        let ran = run(at, arguments);
        assert!(ran.code != 0, "{arguments}");
        messages
            .iter()
            .for_each(|message| assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr));
    };
    let part = ["trained from start scores", "--start-scores FILE"];
    fails("predict --model added --data vali --output q", &part);
    fails("describe added --permutation vali", &part);
    fails("train --preset planet --data data --start-model added --model n", &part);
    fails("export added --format lightgbm --output n.txt", &part);
    fails("blend a=added b=forest --output n", &part);
    fails(
        "predict --model forest --data vali --output q --start-scores vali-start",
        &["was not trained from start scores", "remove --start-scores"],
    );
    let described = run(at, "describe added").ok().stdout;
    assert!(described.contains("start scores") && described.contains("not part of the model"), "{described}");
    assert!(run(at, "describe added --json").ok().stdout.contains("\"start_scores\":\""));
    assert!(!run(at, "describe forest").ok().stdout.contains("start scores"));
}

#[test]
fn start_scores_that_do_not_fit_are_refused() {
    let room = room();
    let at = room.path();
    with_predictions(at);
    let lines: Vec<String> =
        fs::read_to_string(at.join("data-start.csv")).unwrap().lines().map(str::to_owned).collect();
    let write =
        |name: &str, lines: &[String]| fs::write(at.join(name), format!("{}\n", lines.join("\n"))).unwrap();
    write("short.csv", &lines[..lines.len() - 1]);
    let mut moved = lines.clone();
    moved.swap(1, lines.len() - 1);
    let queries = moved.iter().map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_ne!(queries[1], queries[2], "rows of different queries changed places");
    write("moved.csv", &moved);
    let place = lines[0].split(',').position(|column| column == "score").unwrap();
    let mut cells: Vec<&str> = lines[5].split(',').collect();
    cells[place] = "NaN";
    let mut broken = lines.clone();
    broken[5] = cells.join(",");
    write("broken.csv", &broken);
    let fails = |arguments: &str, messages: &[&str]| {
        let arguments = format!("train --preset planet --set num_trees=3 --data data --model n {arguments}");
        let ran = run(at, &arguments);
        assert!(ran.code != 0, "{arguments}");
        messages
            .iter()
            .for_each(|message| assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr));
        assert!(!at.join("n").exists());
    };
    fails("--start-scores short.csv", &["the numbers of rows differ: 1200 and 1199", "for the same rows"]);
    fails("--start-scores moved.csv", &["moved.csv", "query"]);
    fails("--start-scores broken.csv", &["broken.csv", "row 5", "finite"]);
    fails("--start-scores vali-start", &["start scores of another dataset", "vali-start"]);
    fails("--start-scores data-start --valid vali", &["validation set valid has none", "valid=FILE"]);
    fails("--start-scores valid=vali-start --valid vali", &["the training data have none"]);
    fails("--start-scores x=vali-start --valid vali", &["no validation set called x"]);
    fails("--start-scores data-start --start-scores data-start.csv", &["start scores already"]);
    fails("--start-scores data-start --start-model forest", &["conflicts with --start-model"]);
    fails("--start-scores data-start --set base_score=1", &["base_score conflicts with --start-scores"]);
    fails("--start-scores data-start --set target=at_most:1", &["conflicts with --start-scores"]);
    let forest = "train --preset rf-point --data data --model n --start-scores data-start";
    assert_refused(forest, &run(at, forest), 2, &["independent", "remove --start-scores"]);
}

#[test]
fn a_training_from_start_scores_is_resumed() {
    let room = room();
    let at = room.path();
    with_predictions(at);
    let common = "--preset planet --set learning_rate=0.01 --data data --start-scores data-start";
    assert_resumes_with_the_same_log(at, common);
    // Other scores for the same rows are another training run.
    let trees = stop_at_checkpoint(at, common) + 3;
    train(at, "--preset rf-point --data data --set num_trees=2 --model other");
    run(at, "predict --model other --data data --output other-start").ok();
    let other = common.replace("data-start", "other-start");
    let ran =
        run(at, &format!("train {other} --set num_trees={trees} --model m --checkpoint c --resume")).failed();
    assert!(ran.stderr.contains("it started from other start scores"), "{}", ran.stderr);
}

#[test]
fn a_pipeline_passes_start_scores_on() {
    let room = room();
    let at = room.path();
    with_predictions(at);
    let pipeline = r#"
[pipeline]
name = "p"
[step.forest]
kind = "train"
preset = "rf-point"
data = "data"
set = { num_trees = 5 }
[step.start]
kind = "predict"
model = "forest"
data = "data"
[step.start_vali]
kind = "predict"
model = "forest"
data = "vali"
[step.added]
kind = "train"
preset = "planet"
data = "data"
valid = "vali"
set = { num_trees = 3 }
start_scores = ["start", "valid=start_vali"]
[step.scores]
kind = "predict"
model = "added"
data = "vali"
start_scores = "start_vali"
"#;
    fs::write(at.join("p.toml"), pipeline).unwrap();
    run(at, "run p.toml --output out").ok();
    train(at, "--preset planet --set num_trees=3 --data data --start-model forest --model whole");
    scores(at, "--model whole --data vali");
    let column = |file: &str| table_of(&at.join(file)).column_by_name("score").cloned();
    assert_eq!(column("out/scores.parquet"), column("p"));
}
