//! What users of other tools type first: parameters as options, files as arguments, names of other tools.

use crate::support::*;
use serde_json::Value;
use std::fs;

#[test]
fn every_parameter_is_an_option() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(51, 20, 8), "");
    train(at, "--data data --model set --set num_trees=7 --set learning_rate=0.2 --set objective=squared");
    run(at, "train --data data -o option --num-trees 7 --learning-rate=0.2 --objective squared").ok();
    assert_same_bytes(at, "set", "option", "options");
    run(at, "train --data data --output alias --n_estimators 7 --eta .2 --objective squared").ok();
    assert_same_bytes(at, "set", "alias", "aliases");
    let refused = "train --data data --model m --num-trees many";
    assert_refused(refused, &run(at, refused), 2, &["--set num_trees=many", "whole number"]);
    let refused = "train --data data --model m --num-treez 3";
    assert_refused(refused, &run(at, refused), 2, &["unexpected argument '--num-treez'"]);
}

#[test]
fn parameters_of_other_tools_are_answered() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(52, 5, 5), "");
    for (name, answer) in [
        ("num_threads=4", "--threads N"),
        ("monotone_constraints=1,0", "no monotone constraints"),
        ("drop_rate=0.1", "no dropout"),
        ("use_best_model=true", "early_stopping_rounds"),
        ("metric2t=NDCG@10", "--set metric=ndcg@10"),
    ] {
        let command = format!("train --data data --model m --set {name}");
        assert_refused(&command, &run(at, &command), 2, &["planetree has no parameter", answer]);
    }
}

#[test]
fn a_training_without_a_choice_says_that_it_is_regression() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(53, 10, 6), "");
    let note = "note: regression on the labels";
    let said =
        |options: &str| run(at, &format!("train --data data --num-trees 2 --model m {options}")).ok().stderr;
    assert!(said("").contains(note));
    for options in ["--preset lambdamart", "--objective squared", "--set loss=lambdarank", "--quiet"] {
        assert!(!said(options).contains(note), "{options}");
    }
    assert!(said("").contains("m: 2 trees, "));
    let one = run(at, "train --data data --num-trees 1 --model one").ok().stderr;
    assert!(one.contains("one: 1 tree, "), "{one}");
    let ran = run(at, "--quiet train --data data --num-trees 3 --model json --json").ok();
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&printed["trees"], &printed["model"]), (&3.into(), &"json".into()));
}

#[test]
fn quality_gates_have_an_exit_code_of_their_own() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(54, 60, 12), "");
    for (model, trees) in [("weak", 1), ("strong", 60)] {
        train(at, &format!("--preset lambdamart --data data --model {model} --set num_trees={trees}"));
        run(at, &format!("--quiet predict --model {model} --data data -o {model}.parquet")).ok();
    }
    run(at, "evaluate strong.parquet --fail-below ndcg@10=0.1 --fail-below rmse=1000 --metrics ndcg@10,rmse")
        .ok();
    let failing = "evaluate weak.parquet strong.parquet --fail-below ndcg@10=1.5 --output metrics.parquet";
    let ran = run(at, failing);
    assert_refused(failing, &ran, 3, &["quality gate failed: weak.parquet: ndcg@10 is ", ", below 1.5"]);
    assert!(ran.stdout.contains("ndcg@10") && at.join("metrics.parquet").exists());
    let absent = "evaluate weak.parquet --fail-below auc=0.1";
    assert_refused(absent, &run(at, absent), 2, &["the metric is not computed", "add auc to --metrics"]);
    run(at, "compare weak.parquet strong.parquet --fail-if-worse").ok();
    let worse = "compare strong.parquet weak.parquet --fail-if-worse";
    assert_refused(worse, &run(at, worse), 3, &["quality gate failed: weak is worse than strong by ndcg@10"]);
}

#[test]
fn scores_are_printed_and_trec_eval_names_are_known() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(55, 10, 6), "");
    train(at, "--preset mart --data data --model m --set num_trees=3");
    run(at, "predict --model m --data data --scores scores.txt --output p.parquet").ok();
    let printed = run(at, "predict --model m --data data --scores -").ok();
    assert_eq!(printed.stdout, fs::read_to_string(at.join("scores.txt")).unwrap());
    assert!(!at.join("-").exists());
    let metrics = "--metrics ndcg_cut_10,P_5,recall_10,map_cut_10,recip_rank,Rprec,success_1 --json";
    let ran = run(at, &format!("--quiet evaluate p.parquet {metrics}")).ok();
    let means = &serde_json::from_str::<Value>(&ran.stdout).unwrap()["systems"][0]["means"];
    for name in ["ndcg@10", "p@5", "recall@10", "map@10", "mrr", "rprec", "success@1"] {
        assert!(means[name].is_f64(), "{name}: {means}");
    }
    let refused = "evaluate p.parquet --metrics bpref";
    assert_refused(refused, &run(at, refused), 2, &["bpref is not available"]);
}

#[test]
fn rows_without_labels_convert_and_are_scored() {
    let room = room();
    let at = room.path();
    let examples = graded(56, 10, 6);
    dataset(at, "labelled", &examples, "");
    train(at, "--preset mart --data labelled --model m --set num_trees=3");
    let text = as_letor(&examples);
    let bare: String = text.lines().map(|line| format!("{}\n", line.split_once(' ').unwrap().1)).collect();
    fs::write(at.join("bare.txt"), bare).unwrap();
    let csv = as_csv(&examples);
    let keeps: Vec<bool> = csv.lines().next().unwrap().split(',').map(|name| name != "label").collect();
    let bare: String = csv
        .lines()
        .map(|line| {
            let kept: Vec<&str> =
                line.split(',').zip(&keeps).filter(|(_, keep)| **keep).map(|(field, _)| field).collect();
            format!("{}\n", kept.join(","))
        })
        .collect();
    fs::write(at.join("bare.csv"), bare).unwrap();
    let expected = run(at, "--quiet predict --model m --data labelled --scores -").ok().stdout;
    for file in ["bare.txt", "bare.csv"] {
        let ran = run(at, &format!("convert {file} --output unlabelled --overwrite")).ok();
        assert!(
            ran.stderr.contains("note: no labels: the dataset can be scored, but not trained on"),
            "{}",
            ran.stderr
        );
        let found = run(at, "--quiet predict --model m --data unlabelled --scores -").ok().stdout;
        assert_eq!(found, expected, "{file}");
        let refused = "train --data unlabelled --model n";
        assert_refused(refused, &run(at, refused), 1, &["60 of 60 rows have no label"]);
    }
}

#[test]
fn shipped_pipelines_run_from_any_directory() {
    let room = room();
    let at = room.path();
    let listed = run(at, "run --list").ok().stdout;
    assert!(listed.lines().any(|line| line.starts_with("quickstart ")), "{listed}");
    let shown = run(at, "run --show quickstart").ok().stdout;
    assert!(shown.contains("[step.model]"));
    let ran = run(at, "run quickstart --set trees=3").ok();
    assert!(ran.stderr.contains("generating sample data in ./sample_data"), "{}", ran.stderr);
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample_data/train.txt");
    assert_eq!(fs::read(at.join("sample_data/train.txt")).unwrap(), fs::read(repository).unwrap());
    let described = run(at, "describe runs/quickstart").ok().stdout;
    assert!(described.contains("complete") && described.contains("model-lambdamart"), "{described}");
    let misspelt = "run quikstart";
    assert_refused(
        misspelt,
        &run(at, misspelt),
        2,
        &["unknown pipeline \"quikstart\"", "did you mean quickstart?"],
    );
}

#[test]
fn messages_are_json_on_request() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(57, 10, 6), "");
    let lines = |arguments: &str| -> Vec<Value> {
        let stderr = run(at, &format!("--log-format json {arguments}")).stderr;
        stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    };
    let trained = lines("train --data data --model m --num-trees 2");
    assert!(trained.iter().all(|line| line["level"] == "info" && line["time"].is_f64()), "{trained:?}");
    assert!(trained.last().unwrap()["message"].as_str().unwrap().starts_with("m: 2 trees"));
    let failed = lines("train --data absent --model m");
    let error = failed.last().unwrap();
    assert_eq!(error["level"], "error");
    assert_eq!(error["message"], "absent: no such file or directory; help: check the spelling of the path");
}
