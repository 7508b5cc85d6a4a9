//! Features and random orders as rankings.

use crate::support::*;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn means(directory: &Path, arguments: &str) -> Value {
    let ran = run(directory, &format!("--quiet evaluate --json {arguments}")).ok();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn mean(report: &Value, system: usize, metric: &str) -> f64 {
    report["systems"][system]["means"][metric].as_f64().unwrap()
}

#[test]
fn a_feature_ranks_as_its_values_do_as_scores() {
    let room = room();
    let at = room.path();
    let examples = graded(41, 50, 12);
    dataset(at, "data", &examples, "--partition-rows 100");
    for (option, place, sign) in [("f1", 0, 1.0), ("-f1", 0, -1.0), ("f13", 12, 1.0), ("-f13", 12, -1.0)] {
        // A missing value comes last in both directions.
        let score = |value: Option<f32>| value.map_or(f64::MIN, |value| sign * f64::from(value));
        let lines: String =
            examples.iter().map(|example| format!("{}\n", score(example.features[place]))).collect();
        fs::write(at.join("scores.txt"), lines).unwrap();
        let expected = means(at, "--data data --scores scores.txt");
        for options in ["--threads 1", "--threads 3", "--convention letor4 --threads 2"] {
            let found = means(at, &format!("--data data --feature {option} {options}"));
            if options.contains("letor4") {
                assert_eq!(found["convention"], "letor4");
                continue;
            }
            assert_eq!(found["systems"][0]["means"], expected["systems"][0]["means"], "{option} {options}");
        }
        assert_eq!(means(at, &format!("--data data --feature {option}"))["systems"][0]["name"], option);
    }
}

#[test]
fn random_orders_depend_on_the_seed_and_have_the_exact_expectation() {
    let room = room();
    let at = room.path();
    let examples = graded(42, 80, 10);
    dataset(at, "one", &examples, "");
    dataset(at, "many", &examples, "--partition-rows 50");
    let metrics = "--metrics ndcg@10,map,err,auc,p@3";
    let drawn = |data: &str, seed: u32| means(at, &format!("--data {data} --random --seed {seed} {metrics}"));
    let expected = drawn("one", 1);
    assert_eq!(expected["systems"][0]["name"], "random");
    assert_eq!(expected["systems"][1]["name"], "random-expected");
    let (first, second) = (drawn("many", 1), drawn("many", 2));
    for system in 0..2 {
        assert_eq!(first["systems"][system]["means"], expected["systems"][system]["means"]);
    }
    assert_ne!(second["systems"][0]["means"], expected["systems"][0]["means"]);
    assert_eq!(second["systems"][1]["means"], expected["systems"][1]["means"]);
    // The mean over many seeds approaches the expectation.
    let seeds = 40;
    let drawn: Vec<Value> = (1..=seeds).map(|seed| drawn("one", seed)).collect();
    for metric in ["ndcg@10", "map", "err", "auc", "p@3"] {
        let found = drawn.iter().map(|report| mean(report, 0, metric)).sum::<f64>() / f64::from(seeds);
        assert_close(found, mean(&expected, 1, metric), 0.03, metric);
    }
}

#[test]
fn baselines_are_compared_with_models() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(43, 60, 12), "");
    train(at, "--preset mart --data data --model m --set num_trees=20");
    run(at, "--quiet predict --model m --data data --output p").ok();
    let options = "--data data --feature bm25=f1 --random --json";
    let ran = run(at, &format!("--quiet compare mart=p {options}")).ok();
    let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<&str> = compared["systems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|system| system["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bm25", "random", "random-expected", "mart"]);
    // A table of metrics has baselines beside other systems, and reports show it.
    fs::create_dir(at.join("report")).unwrap();
    let systems = "--predictions mart=p --data data --feature f1 --random";
    run(at, &format!("--quiet evaluate {systems} --output report/metrics.parquet")).ok();
    let ran = run(at, "--quiet compare report/metrics.parquet --json").ok();
    let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(compared["systems"].as_array().unwrap().len(), 4);
    run(at, "--quiet report report --output report.html").ok();
    let page = fs::read_to_string(at.join("report.html")).unwrap();
    assert!(page.contains("random-expected") && page.contains("mart"));
}

#[test]
fn bad_baselines_are_refused() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(44, 20, 5), "");
    let refused = |arguments: &str, words: &[&str]| {
        let ran = run(at, &format!("evaluate {arguments}"));
        assert!(ran.code == 1 || ran.code == 2, "{arguments}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{arguments}: {word:?} is not in {}", ran.stderr);
        }
    };
    refused("--data data --feature f99", &["data: no column f99", "help: "]);
    refused(
        "--predictions p --data data",
        &["there is nothing to rank its rows by", "help: remove --data, or pass --feature NAME or --random"],
    );
    refused("--feature f1", &["--data"]);
    refused(
        "--data data --random --convention ydf --metrics map",
        &["map_normaliser=found has no expectation"],
    );
    refused("--data data --feature f13 --metrics rmse", &["has no value of f13: rmse needs one"]);
    refused("--data data --feature f1 --feature f1", &["--feature f1 is given twice", "help: pass it once"]);
    refused(
        "--data data --feature a=f1 --feature a=f2",
        &["two rankings have the same name: a", "help: choose another name: --feature NAME=f2"],
    );
    refused(
        "--data data --feature random=f1 --random",
        &["two rankings have the same name: random", "help: choose another name: --feature NAME=f1"],
    );
    refused(
        "--data data",
        &["there is nothing to rank its rows by", "help: pass --scores FILE, --feature NAME or --random"],
    );
    refused("--data data --feature f1 --labels data", &["--labels"]);
    let compared = run(at, "compare p p --data data");
    assert!(compared.stderr.contains("there is nothing to rank its rows by"), "{}", compared.stderr);
}

#[test]
fn areas_over_all_documents_of_random_orders_average_over_ties() {
    let room = room();
    dataset(room.path(), "data", &graded(44, 40, 10), "");
    for convention in ["planetree", "catboost", "ydf"] {
        let options =
            format!("--data data --random --metrics auc_pooled,pauc@0-20 --convention {convention}");
        let report = means(room.path(), &options);
        assert_eq!(mean(&report, 1, "auc_pooled"), 0.5, "{convention}");
    }
    let compare =
        "compare --data data --feature f1 --feature f2 --metric auc --convention mohan-cost,relevant=1";
    let ran = run(room.path(), compare);
    assert_refused(compare, &ran, 2, &["metric auc_pooled has no value per query", "auc=query"]);
}

#[test]
fn cross_validation_shows_baselines_beside_its_models() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(45, 60, 12), "");
    let options = "--folds 3 --feature small=-f1 --random --metrics ndcg@10,map --output cv";
    let ran = run(at, &format!("--quiet cv --data data --preset linear {options} --json")).ok();
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
    let baselines = &summary["baselines"];
    // Each fold's value is that of `evaluate` on its test part.
    for (system, option) in
        [("small", "--feature small=-f1"), ("random", "--random --seed 0"), ("random-expected", "--random")]
    {
        let place = usize::from(system == "random-expected");
        let of_part = |part: u32| {
            let report = means(at, &format!("--data cv/parts/{part} {option} --metrics ndcg@10,map"));
            mean(&report, place, "map")
        };
        let expected = (of_part(1) + of_part(2) + of_part(3)) / 3.0;
        assert_close(baselines[system]["map"]["mean"].as_f64().unwrap(), expected, 1e-12, system);
    }
    let text = run(at, &format!("--quiet cv --data data --preset linear {options}")).ok().stdout;
    for name in ["small", "random", "random-expected"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {text}");
    }
    // The table has one row per query and baseline; comparisons and reports take it.
    let count = "select count(*), count(distinct system), count(distinct fold) from 'cv/baselines.parquet'";
    let ran = crate::support::sql::sql_in(at, "--format csv", count, &[]);
    assert!(ran.ok().stdout.ends_with("\n180,3,3\n"));
    let ran = run(at, "--quiet compare cv/baselines.parquet cv/metrics.parquet --metric map --json").ok();
    let compared: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(compared["systems"].as_array().unwrap().len(), 4);
    run(at, "--quiet report cv --output report.html").ok();
    let page = fs::read_to_string(at.join("report.html")).unwrap();
    assert!(page.contains("random-expected") && page.contains("small"));
    let refused = run(at, "cv --data data --search s.toml --random --output other");
    assert_ne!(refused.code, 0);
}
