//! Models of several parts: stages, averaged runs and classes equal models that are trained one by one and combined by
//! hand, on any number of threads and partitions, mapped, killed and resumed.

use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int32Type};
use std::fs;
use std::path::Path;
use std::process::Command;

fn data(directory: &Path) {
    dataset(directory, "data", &graded(51, 40, 20), "--partition-rows 150");
    dataset(directory, "vali", &graded(52, 15, 20), "");
}

fn scores(directory: &Path, model: &str) -> Vec<f64> {
    predict(directory, model, "vali").iter().map(|row| row.score).collect()
}

fn assert_all_close(found: &[f64], expected: &[f64], context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-12, "{context}, row {row}: {found} {expected}");
    }
}

/// Nodes of the trees of some parts, in order, without the number of the part.
fn nodes_of(directory: &Path, model: &str, parts: std::ops::Range<i32>) -> Vec<String> {
    let table = table_of(&directory.join(model));
    let of = table.column_by_name("part").unwrap().as_primitive::<Int32Type>().clone();
    let columns: Vec<_> = table.columns().iter().skip(1).cloned().collect();
    let row_text = |row: usize| -> String {
        let cell = |column: &arrow::array::ArrayRef| {
            arrow::util::display::array_value_to_string(column, row).unwrap()
        };
        columns.iter().map(cell).collect::<Vec<_>>().join("|")
    };
    (0..table.num_rows()).filter(|row| parts.contains(&of.value(*row))).map(row_text).collect()
}

/// The configuration of a part, written to a file.
fn configuration(directory: &Path, model: &str, part: usize, file: &str) {
    let described = described(directory, model);
    fs::write(directory.join(file), described["parts"][part]["configuration"].as_str().unwrap()).unwrap();
}

#[test]
fn initialised_boosting_equals_boosting_on_a_trained_forest() {
    let room = room();
    data(room.path());
    for more in ["", "--set stage.2.early_stopping_rounds=4 --valid vali"] {
        let of_second = more.replace("stage.2.", "");
        train(room.path(), "--preset rf --data data --set num_trees=12 --set seed=3 --model forest");
        let second = format!("--preset gbrt --data data --set num_trees=30 --set seed=3 {of_second}");
        train(room.path(), &format!("{second} --start-model forest --model apart --rounds apart-rounds"));
        let both =
            "--preset igbrt --data data --set stage.1.num_trees=12 --set stage.2.num_trees=30 --set seed=3";
        train(room.path(), &format!("{both} {more} --model whole --rounds rounds"));
        assert_eq!(nodes_of(room.path(), "whole", 0..1), nodes_of(room.path(), "forest", 0..1), "{more}");
        assert_eq!(nodes_of(room.path(), "whole", 1..2), nodes_of(room.path(), "apart", 1..2), "{more}");
        assert_all_close(&scores(room.path(), "whole"), &scores(room.path(), "apart"), more);
        if !more.is_empty() {
            let log = table_of(&room.path().join("rounds"));
            let stages = log.column_by_name("stage").unwrap().as_primitive::<Int32Type>();
            let second: Vec<usize> = (0..log.num_rows()).filter(|row| stages.value(*row) == 2).collect();
            let values = log.column_by_name("value").unwrap().as_primitive::<Float64Type>();
            let found: Vec<f64> = second.iter().map(|row| values.value(*row)).collect();
            let apart = table_of(&room.path().join("apart-rounds"));
            let expected = apart.column_by_name("value").unwrap().as_primitive::<Float64Type>();
            assert_eq!(found, expected.values().to_vec());
        }
    }
}

#[test]
fn out_of_bag_scores_are_what_the_second_stage_corrects() {
    let room = room();
    data(room.path());
    let settings = "--preset igbrt --data data --set stage.1.num_trees=40 --set stage.2.num_trees=1 \
                    --set stage.2.max_depth=1 --set stage.2.learning_rate=1";
    train(room.path(), &format!("{settings} --model in-sample"));
    train(room.path(), &format!("{settings} --set start_scores=oob --model out-of-bag"));
    train(room.path(), "--preset rf --data data --set num_trees=40 --model forest --oob oob");
    let nodes = |model: &str| {
        let table = table_of(&room.path().join(model));
        let parts = table.column_by_name("part").unwrap().as_primitive::<Int32Type>().clone();
        let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>().clone();
        (0..table.num_rows())
            .filter(|row| parts.value(*row) == 1)
            .map(|row| values.value(row))
            .collect::<Vec<_>>()
    };
    // The root of the only tree has the mean residual, up to the fixed-point units of the gradients.
    let residual = |rows: &[ScoredRow]| {
        rows.iter().map(|row| f64::from(row.label) - row.score).sum::<f64>() / rows.len() as f64
    };
    let oob = predictions_of(&room.path().join("oob"));
    assert_eq!(oob.len(), 800, "every row is left out of some tree");
    assert_close(nodes("out-of-bag")[0], residual(&oob), 1e-4, "out-of-bag");
    assert_close(nodes("in-sample")[0], residual(&predict(room.path(), "forest", "data")), 1e-4, "in-sample");
}

#[test]
fn averaged_runs_equal_the_mean_of_runs_trained_apart() {
    let room = room();
    data(room.path());
    for (preset, more) in [
        ("avg-ksgbrt", "--set num_trees=6 --set candidates=static"),
        ("avg-ksgbrt", "--set num_trees=4"),
        ("bagboost", "--set num_trees=5 --set num_leaves=6"),
        ("rf", "--set num_trees=4"),
        ("igbrt", "--set stage.1.num_trees=3 --set stage.2.num_trees=5 --set stage.2.features_per_node=0.3"),
    ] {
        let context = format!("{preset} {more}");
        train(room.path(), &format!("--preset {preset} --data data {more} --set runs=3 --model m"));
        let mut expected = vec![0.0; 300];
        let stages = if preset == "igbrt" { 2 } else { 1 };
        for run in 0..3 {
            configuration(room.path(), "m", run, "alone.toml");
            train(room.path(), "--config alone.toml --data data --model alone");
            if stages == 2 {
                configuration(room.path(), "m", 3 + run, "next.toml");
                train(room.path(), "--config next.toml --data data --start-model alone --model next");
                fs::rename(room.path().join("next"), room.path().join("alone")).unwrap();
            }
            let part = run as i32;
            assert_eq!(
                nodes_of(room.path(), "m", part..part + 1),
                nodes_of(room.path(), "alone", 0..1),
                "{context}"
            );
            expected
                .iter_mut()
                .zip(scores(room.path(), "alone"))
                .for_each(|(sum, score)| *sum += score / 3.0);
        }
        assert_all_close(&scores(room.path(), "m"), &expected, &context);
    }
}

#[test]
fn expected_relevance_equals_one_model_per_grade() {
    let room = room();
    data(room.path());
    for settings in [
        "--preset rf --set num_trees=5",
        "--preset mart --set num_trees=7 --set num_leaves=5",
        "--preset ksgbrt --set num_trees=5 --set runs=2",
    ] {
        train(room.path(), &format!("{settings} --data data --set target=ordinal --model m"));
        let runs = if settings.contains("runs") { 2 } else { 1 };
        let single = settings.replace("--set runs=2", "");
        let mut cumulative = vec![vec![0.0; 300]; 4];
        for (grade, cumulative) in cumulative.iter_mut().enumerate() {
            for run in 0..runs {
                configuration(room.path(), "m", grade * runs + run, "alone.toml");
                let alone = match run {
                    0 => format!("{single} --set target=at_most:{grade}"),
                    _ => "--config alone.toml".to_owned(),
                };
                train(room.path(), &format!("{alone} --data data --model alone"));
                let scores = scores(room.path(), "alone");
                cumulative.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score / runs as f64);
            }
        }
        let expected: Vec<f64> =
            (0..300).map(|row| 4.0 - cumulative.iter().map(|column| column[row]).sum::<f64>()).collect();
        assert_all_close(&scores(room.path(), "m"), &expected, settings);

        let described = described(room.path(), "m");
        assert_eq!(described["intercept"], 4.0);
        for part in described["parts"].as_array().unwrap() {
            assert_eq!(part["weight"].as_f64().unwrap(), -1.0 / runs as f64);
        }
        run(room.path(), "--quiet predict --model m --data vali --parts --output p.parquet").ok();
        let table = table_of(&room.path().join("p.parquet"));
        let column = |name: &str| -> Vec<f64> {
            let column = table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
            column.as_primitive::<Float64Type>().values().to_vec()
        };
        for (grade, cumulative) in cumulative.iter().enumerate() {
            assert_all_close(&column(&format!("cumulative.{grade}")), cumulative, settings);
        }
        for grade in 0..5 {
            let at_most = |grade: usize, row: usize| cumulative.get(grade).map_or(1.0, |column| column[row]);
            let class = |row| at_most(grade, row) - if grade == 0 { 0.0 } else { at_most(grade - 1, row) };
            let expected: Vec<f64> = (0..300).map(class).collect();
            assert_all_close(&column(&format!("class.{grade}")), &expected, settings);
        }
        let sql = "SELECT count(*) AS n FROM 'p.parquet' WHERE abs(\"class.0\" + \"class.1\" + \"class.2\" + \"class.3\" + \"class.4\" - 1) < 1e-9";
        run(room.path(), "--quiet predict --model m --data vali --parts --output p.csv").ok();
        let evaluated = |file: &str| run(room.path(), &format!("evaluate --predictions {file} --json")).ok();
        let values = |file: &str| -> serde_json::Value {
            serde_json::from_str::<serde_json::Value>(&evaluated(file).stdout).unwrap()["metrics"].clone()
        };
        assert_eq!(values("p.csv"), values("p.parquet"));
        let ran = sql::sql_in(room.path(), "--format csv", sql, &[]).ok();
        assert_eq!(ran.stdout.trim(), "n\n300");
    }
}

/// Least squares by numpy; prints the largest difference from the weights and the intercept of the model.
const LEAST_SQUARES: &str = r#"
import sys, json, numpy as np, pyarrow as pa, pyarrow.parquet as pq
described = json.load(open(sys.argv[1]))
tables = [pq.read_table(file) for file in sys.argv[2:]]
names = [name for name in tables[0].column_names if name.startswith('cumulative.')]
table = pa.concat_tables(tables)
x = np.column_stack([table[name].to_numpy() for name in names] + [np.ones(table.num_rows)])
y = table['label'].to_numpy().astype(float)
expected = np.linalg.lstsq(x, y, rcond=None)[0]
weights = [part['weight'] for part in described['parts']]
runs = len(weights) // len(names)
found = [runs * weight for weight in weights[::runs]] + [described['intercept']]
print(len(names), np.abs(np.array(found) - expected).max())
"#;

#[test]
fn fitted_class_weights_are_those_of_numpy() {
    let Some(python) = python() else { return };
    let room = room();
    data(room.path());
    for (weights, tables) in
        [("train", &["p-data"][..]), ("valid", &["p-vali"]), ("both", &["p-data", "p-vali"])]
    {
        for more in [
            "--preset rf --set num_trees=6 --set min_data_in_leaf=15",
            "--preset sgbrt --set num_trees=8 --set runs=2",
        ] {
            let settings = format!("{more} --data data --valid vali --set target=ordinal");
            train(room.path(), &format!("{settings} --set class_weights=ols:{weights} --model m"));
            for name in ["data", "vali"] {
                run(
                    room.path(),
                    &format!("--quiet predict --model m --data {name} --parts --output p-{name}"),
                )
                .ok();
            }
            fs::write(room.path().join("m.json"), described(room.path(), "m").to_string()).unwrap();
            let output = Command::new(&python)
                .current_dir(room.path())
                .args(["-c", LEAST_SQUARES, "m.json"])
                .args(tables)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let printed = String::from_utf8(output.stdout).unwrap();
            let (classes, difference) = printed.trim().split_once(' ').unwrap();
            assert_eq!(classes, "4");
            assert!(difference.parse::<f64>().unwrap() < 1e-9, "{weights} {more}: {difference}");
        }
    }
}

#[test]
fn scores_of_grades_can_be_chosen() {
    let room = room();
    data(room.path());
    let settings = "--preset rf --data data --set num_trees=3 --set target=ordinal";
    for (more, weights, intercept) in [
        ("--set class_scores=square", [-1.0, -3.0, -5.0, -7.0], 16.0),
        ("--set class_scores=exp2", [-1.0, -2.0, -4.0, -8.0], 16.0),
        ("--set class_scores=0,0,1,1,5", [0.0, -1.0, 0.0, -4.0], 5.0),
        ("--set class_weights=-1.2,-1.3,-1.2,-0.9,4.3", [-1.2, -1.3, -1.2, -0.9], 4.3),
    ] {
        train(room.path(), &format!("{settings} {more} --model m"));
        let described = described(room.path(), "m");
        let found: Vec<f64> = described["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["weight"].as_f64().unwrap())
            .collect();
        assert_eq!(found, weights, "{more}");
        assert_eq!(described["intercept"], intercept, "{more}");
    }
}

#[test]
fn the_earlier_stages_alone_are_kept_if_no_round_is_better() {
    let room = room();
    data(room.path());
    // With reversed labels in the validation set, every step away from the forest is a step too far.
    let mut reversed = graded(52, 15, 20);
    reversed.iter_mut().for_each(|example| example.label = 4.0 - example.label);
    dataset(room.path(), "reversed", &reversed, "");
    let settings = "--preset igbrt --data data --valid reversed --set metric=rmse --set stage.1.num_trees=5 \
                    --set stage.2.num_trees=30 --set stage.2.early_stopping_rounds=3";
    let ran =
        run(room.path(), &format!("train {settings} --model m --rounds rounds --stats stats.json")).ok();
    assert!(ran.stderr.contains("none of 3 rounds is better than the earlier stages"), "{}", ran.stderr);
    assert_eq!(json_of(&room.path().join("stats.json"))["best_round"], 0);
    let log = described(room.path(), "rounds");
    let splits: Vec<&str> =
        log["metrics"].as_array().unwrap().iter().map(|metric| metric["split"].as_str().unwrap()).collect();
    assert_eq!(splits, ["valid, stage 1", "train, stage 2", "valid, stage 2"]);
    assert_eq!(log["metrics"][2]["best"]["round"], 0);
    assert_eq!(described(room.path(), "m")["parts"].as_array().unwrap().len(), 1);
    train(room.path(), "--preset rf --data data --set num_trees=5 --model forest");
    assert_eq!(nodes_of(room.path(), "m", 0..1), nodes_of(room.path(), "forest", 0..1));
}

const PLANS: [&str; 6] = [
    "--preset igbrt --set stage.1.num_trees=4 --set stage.2.num_trees=6",
    "--preset igbrt --set stage.1.num_trees=4 --set stage.2.num_trees=6 --set runs=2 --set start_scores=oob",
    "--preset avg-ksgbrt --set num_trees=5 --set runs=3",
    "--preset bagboost --set num_trees=4 --set runs=3 --valid vali --set early_stopping_rounds=2",
    "--preset sgbrt --set num_trees=4 --set target=ordinal --set class_weights=ols:both --valid vali",
    "--preset rf --set num_trees=3 --set target=ordinal --set runs=2",
];

#[test]
fn threads_and_partitions_do_not_change_a_byte() {
    let room = room();
    same_rows(room.path());
    for plan in PLANS {
        let expected = trained_bytes(room.path(), &format!("{plan} --data one --threads 1"));
        for (data, threads) in [("one", 2), ("many", 1), ("many", 4), ("few", 2)] {
            let found = trained_bytes(room.path(), &format!("{plan} --data {data} --threads {threads}"));
            assert!(found == expected, "{plan}: {data}, {threads} threads");
        }
    }
}

#[test]
fn mapped_data_do_not_change_a_byte() {
    let room = room();
    mslr_dataset(room.path());
    for plan in [
        "--preset planet --set bagging_fraction=0.5 --set num_trees=3 --set runs=3 --data data",
        "--preset mart --set num_trees=3 --set target=ordinal --data data",
    ] {
        assert_same_outputs_from_disk(room.path(), plan, &[]);
        fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    }
}

#[test]
fn members_count_in_the_memory_check() {
    let room = room();
    mslr_dataset(room.path());
    let settings = "--preset planet --set bagging_fraction=0.5 --set num_trees=2 --data data";
    let one = wanted_memory(room.path(), settings, 1).unwrap();
    let many = wanted_memory(room.path(), &format!("{settings} --set runs=500"), 1).unwrap();
    // 9,000 rows of 20 bytes for each of 499 further runs, and an eighth for histograms.
    assert!(many > one + 85, "{one} {many}");
}

#[test]
fn a_training_killed_in_either_stage_ends_in_the_same_bytes() {
    let room = room();
    data(room.path());
    let settings = "--preset igbrt --data data --valid vali --set runs=2 --set stage.2.features_per_node=0.5";
    for (endless, stage_1, stage_2) in [(1, 100_000, 20), (2, 6, 100_000)] {
        let counts = |first: u64, second: u64| {
            format!("--set stage.1.num_trees={first} --set stage.2.num_trees={second}")
        };
        let child = start_silent(
            room.path(),
            &format!(
                "train {settings} {} --model m --checkpoint c --checkpoint-every 1",
                counts(stage_1, stage_2)
            ),
        );
        let least = if endless == 1 { 3 } else { 9 };
        wait_for("a checkpoint", || room.path().join("c").exists() && rounds_in(room.path(), "c") >= least);
        kill_running(child);
        let rounds = rounds_in(room.path(), "c");
        let counts = if endless == 1 { counts(rounds + 2, 7) } else { counts(6, rounds - 6 + 3) };
        train(room.path(), &format!("{settings} {counts} --model whole --rounds whole-rounds"));
        let resume = format!("train {settings} {counts} --model m --rounds rounds --checkpoint c --resume");
        let ran = run(room.path(), &resume).ok();
        assert!(ran.stderr.contains("resuming from round"), "{}", ran.stderr);
        assert_same_bytes(room.path(), "m", "whole", &counts);
        assert_eq!(rounds_of(&room.path().join("rounds")), rounds_of(&room.path().join("whole-rounds")));
        fs::remove_file(room.path().join("m")).unwrap();
    }
}

#[test]
fn trainings_of_several_parts_killed_at_random_moments_end_in_the_same_bytes() {
    let room = room();
    data(room.path());
    for arguments in [
        "--preset igbrt --set stage.1.num_trees=40 --set stage.2.num_trees=60 --set start_scores=oob --data data",
        "--preset avg-ksgbrt --set runs=3 --set num_trees=60 --set target=ordinal --data data --valid vali \
         --set early_stopping_rounds=30 --set candidates=static",
    ] {
        killed_and_resumed(room.path(), arguments, 4);
    }
}

#[test]
fn a_checkpoint_of_another_plan_is_refused() {
    let room = room();
    data(room.path());
    let settings = "--preset igbrt --data data --set stage.1.num_trees=3";
    let child = start_silent(
        room.path(),
        &format!(
            "train {settings} --set stage.2.num_trees=100000 --model m --checkpoint c --checkpoint-every 1"
        ),
    );
    wait_for("a checkpoint", || room.path().join("c").exists() && rounds_in(room.path(), "c") >= 5);
    kill_running(child);
    for (arguments, problem) in [
        ("--preset igbrt --data data --set stage.1.num_trees=4", "its stage 1 ended with num_trees = 3"),
        ("--preset igbrt --data data --set stage.1.num_trees=3 --set runs=2", "a different training"),
        ("--preset igbrt --data data --set stage.1.num_trees=3 --set stage.2.max_depth=2", "max_depth"),
        ("--preset igbrt --data data --set stage.1.num_trees=3 --set stage.2.num_trees=1", "rounds already"),
        ("--preset gbrt --data data", "a different training"),
    ] {
        let ran = run(room.path(), &format!("train {arguments} --model m --checkpoint c --resume"));
        assert_refused(arguments, &ran, 1, &["error: c: ", problem, "\n  help: "]);
    }
}

#[test]
fn labels_and_options_that_do_not_fit_classes_are_refused() {
    let room = room();
    data(room.path());
    odd_datasets(room.path());
    let many: Vec<Example> =
        (0..200u16).map(|row| Example { label: f64::from(row), ..graded(5, 1, 1)[0].clone() }).collect();
    dataset(room.path(), "grades", &many, "");
    assert_trainings_refused(
        room.path(),
        &[
            ("--data real --set target=ordinal", "is not a whole number"),
            ("--data same --set target=ordinal", "fewer than two different labels"),
            ("--data grades --set target=ordinal", "more than 32 different labels"),
            ("--data data --set target=ordinal --set class_weights=ols:valid", "there is no validation set"),
            (
                "--data data --set target=ordinal --set class_scores=1,2",
                "2 numbers, but the training data have 5 grades",
            ),
            (
                "--data data --set target=ordinal --set class_weights=1,2",
                "list one weight per grade below the highest",
            ),
            ("--data data --set target=at_most:9", "every label is 1"),
            ("--data data --preset igbrt --oob o", "--oob: only a forest that is trained by itself"),
            ("--data data --preset rf --set runs=2 --strength s", "--strength: only a single forest"),
        ],
    );
    train(room.path(), "--data data --set num_trees=2 --model start");
    let arguments = "train --data data --start-model start --set target=ordinal --model n";
    assert_refused(
        arguments,
        &run(room.path(), arguments),
        2,
        &["conflicts with --start-model", "\n  help: "],
    );
}

#[test]
fn runs_continue_from_a_start_model() {
    let room = room();
    data(room.path());
    train(room.path(), "--data data --preset mart --set num_trees=4 --model start");
    let settings = "--data data --preset sgbrt --set num_trees=3 --start-model start";
    train(room.path(), &format!("{settings} --set runs=2 --model m"));
    let mut expected = vec![0.0; 300];
    for run in 0..2 {
        configuration(room.path(), "m", 1 + run, "alone.toml");
        train(room.path(), "--config alone.toml --data data --start-model start --model alone");
        expected.iter_mut().zip(scores(room.path(), "alone")).for_each(|(sum, score)| *sum += score / 2.0);
    }
    assert_all_close(&scores(room.path(), "m"), &expected, settings);
}

#[cfg(feature = "cluster")]
#[test]
fn what_a_cluster_cannot_train_is_refused() {
    let room = room();
    data(room.path());
    for (arguments, problem) in [
        ("--preset igbrt --set start_scores=oob", "out-of-bag scores (start_scores = oob)"),
        ("--preset lambdamart --set unbiased=true", "an unbiased objective"),
        ("--preset rf-pair", "a pairwise forest"),
        ("--preset rf --oob oob", "a forest with out-of-bag scores"),
    ] {
        let arguments = format!("train --data data {arguments} --model m --cluster local:1");
        assert_refused(&arguments, &run(room.path(), &arguments), 2, &[problem, "docs/cluster.md"]);
    }
}

/// A checkpoint is written at the end of a stage, however long the interval is.
#[test]
fn the_end_of_a_stage_is_a_checkpoint() {
    let room = room();
    data(room.path());
    let settings = "--preset igbrt --data data --valid vali --set stage.1.num_trees=6 --set runs=2 \
                    --set stage.2.features_per_node=0.5";
    let counts = |second: u32| format!("{settings} --set stage.2.num_trees={second}");
    let endless = format!("train {} --model m --checkpoint c --checkpoint-every 10000s", counts(100_000));
    let child = start_silent(room.path(), &endless);
    wait_for("a checkpoint", || room.path().join("c").exists());
    kill_running(child);
    assert_eq!(rounds_in(room.path(), "c"), 6);
    train(room.path(), &format!("{} --model whole --rounds whole-rounds", counts(4)));
    let resume = format!("train {} --model m --rounds rounds --checkpoint c --resume", counts(4));
    let ran = run(room.path(), &resume).ok();
    assert!(ran.stderr.contains("resuming from the beginning of stage 2"), "{}", ran.stderr);
    assert_same_bytes(room.path(), "m", "whole", settings);
    assert_eq!(rounds_of(&room.path().join("rounds")), rounds_of(&room.path().join("whole-rounds")));
}

#[test]
fn stages_with_the_same_bins_have_metrics_of_their_own() {
    let room = room();
    data(room.path());
    let toml = "seed = 5\n[[stage]]\npreset = \"sgbrt\"\nnum_trees = 4\nseed = 7\n[[stage]]\npreset = \"sgbrt\"\nnum_trees = 5\n";
    std::fs::write(room.path().join("two.toml"), toml).unwrap();
    let settings = "--config two.toml --data data --valid vali --set stage.2.metric=err";
    train(room.path(), &format!("{settings} --model m --rounds rounds --model-for err=best"));
    let metrics = described(room.path(), "rounds")["metrics"].clone();
    let of_stage = |stage: &str| -> Vec<String> {
        let all = metrics.as_array().unwrap().iter();
        let valid = all.filter(|metric| metric["split"].as_str() == Some(stage));
        valid.map(|metric| metric["metric"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of_stage("valid, stage 2"), ["err"], "{metrics}");
    assert!(!of_stage("valid, stage 1").contains(&"err".to_owned()), "{metrics}");
    // A stage overrides what its file sets for all stages.
    let parts = described(room.path(), "m")["parts"].clone();
    let seed = |part: usize| parts[part]["configuration"].to_string().contains("seed = 7");
    assert!(seed(0) && !seed(1), "{parts}");
}

/// Weighted least squares by numpy. Arguments: description of the model, weights by row, predictions.
const WEIGHTED_LEAST_SQUARES: &str = r#"
import sys, json, numpy as np, pyarrow.parquet as pq
described, weights = json.load(open(sys.argv[1])), np.loadtxt(sys.argv[2])
table = pq.read_table(sys.argv[3])
names = [name for name in table.column_names if name.startswith('cumulative.')]
x = np.column_stack([table[name].to_numpy() for name in names] + [np.ones(table.num_rows)])
root = np.sqrt(weights)
y = table['label'].to_numpy().astype(float)
expected = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
found = [part['weight'] for part in described['parts']] + [described['intercept']]
print(np.abs(np.array(found) - expected).max())
"#;

#[test]
fn fitted_class_weights_take_row_weights_into_account() {
    let Some(python) = python() else { return };
    let room = room();
    let examples = graded(61, 20, 12);
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 60");
    let settings = "--preset sgbrt --set num_trees=3 --set target=ordinal --set class_weights=ols:train";
    train(room.path(), &format!("{settings} --data weighted --model m"));
    run(room.path(), "--quiet predict --model m --data weighted --parts --output p").ok();
    fs::write(room.path().join("m.json"), described(room.path(), "m").to_string()).unwrap();
    let weights: String = examples.iter().map(|example| format!("{}\n", example.weight)).collect();
    fs::write(room.path().join("weights.txt"), weights).unwrap();
    let output = Command::new(&python)
        .current_dir(room.path())
        .args(["-c", WEIGHTED_LEAST_SQUARES, "m.json", "weights.txt", "p"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let difference: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(difference < 1e-9, "{difference}");
}

/// The log of every round is that of the model that would end there, with its fitted weights.
#[test]
fn the_log_has_the_metrics_of_fitted_class_weights() {
    let room = room();
    data(room.path());
    for weights in ["ols:train", "ols:valid", "ols:both"] {
        for more in ["", "--set runs=2", "--set early_stopping_rounds=2"] {
            let settings = format!(
                "--preset sgbrt --set num_trees=6 --set target=ordinal --set class_weights={weights} {more}"
            );
            train(room.path(), &format!("{settings} --data data --valid vali --model m --rounds r"));
            let kept = described(room.path(), "m")["parts"][0]["trees"].as_u64().unwrap() as usize;
            let logged = course(&rounds_of(&room.path().join("r")), "valid", "ndcg@10")[kept - 1];
            let found = ndcg(&predict(room.path(), "m", "vali"));
            assert!((found - logged).abs() < 1e-12, "{settings}: {found}, in the log {logged}");
        }
    }
    let forest = "train --preset rf --set num_trees=3 --set target=ordinal --set class_weights=ols:train";
    let ran = run(room.path(), &format!("{forest} --data data --valid vali --model m")).ok();
    assert!(
        ran.stderr.contains("the log has the metrics of the weights from class_scores"),
        "{}",
        ran.stderr
    );
}

#[test]
fn outputs_of_forests_are_refused_with_the_reason() {
    let room = room();
    data(room.path());
    for (arguments, problem, remedy) in [
        ("--preset linear --oob o", "--oob: a linear model has no trees", "train a forest"),
        (
            "--preset mart --strength s",
            "--strength: a boosted tree does not rank by itself",
            "train a forest",
        ),
        ("--preset igbrt --oob o", "this training has several stages", "start_scores=oob"),
        ("--preset rf --set runs=2 --strength s", "this training averages several", "set runs=1"),
        ("--preset rf --set target=ordinal --oob o", "one per class", "target=labels"),
    ] {
        let ran = run(room.path(), &format!("train {arguments} --data data --model m"));
        assert_refused(arguments, &ran, 2, &[problem, remedy]);
    }
    let ran = run(room.path(), "train --preset linear --set runs=3 --data data --model m");
    assert_refused("runs", &ran, 2, &["a linear model does not depend on the seed", "set runs=1"]);
}

#[test]
fn models_for_metrics_count_the_rounds_of_the_last_stage() {
    let room = room();
    data(room.path());
    let settings = "--preset igbrt --set stage.1.num_trees=7 --set stage.2.num_trees=5";
    let ran =
        run(room.path(), &format!("train {settings} --data data --valid vali --model m --model-for err=e"))
            .ok();
    assert!(ran.stderr.contains("e: the best round of stage 2 for err is "), "{}", ran.stderr);
    assert!(ran.stderr.contains(" of 5, with "), "{}", ran.stderr);
}
