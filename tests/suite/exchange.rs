//! Models go to LightGBM and XGBoost and come from them with the same scores and explanations, by the
//! word of these packages.

use crate::learning::*;
use crate::support::*;
use planetree::dataset::DatasetReader;
use planetree::explain::explain;
use planetree::model::Model;
use planetree::storage::Location;
use std::path::Path;

fn check(directory: &Path, arguments: &str) -> Option<String> {
    let found = reference_script(directory, "exchange.py", arguments)?;
    if !found.is_empty() {
        eprintln!("{arguments}: {found}");
    }
    Some(found)
}

/// Writes scores as text, and explanations as numbers: the expected value, then row after row.
fn explained(directory: &Path, model: &str, data: &str) {
    run(directory, &format!("--quiet predict --model {model} --data {data} --scores {model}.scores.txt"))
        .ok();
    let read = Model::read(&Location::Local(directory.join(model))).unwrap();
    let reader = DatasetReader::open(&Location::Local(directory.join(data))).unwrap();
    let mut all = Vec::new();
    let report = explain(&reader, &read, 2, &mut |rows| {
        all.extend(rows.contributions);
        Ok(())
    })
    .unwrap();
    let bytes: Vec<u8> =
        [report.expected_value].iter().chain(&all).flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(directory.join(format!("{model}.explained")), bytes).unwrap();
    // They add up to the scores.
    let scores = std::fs::read_to_string(directory.join(format!("{model}.scores.txt"))).unwrap();
    for (score, row) in scores.lines().zip(all.chunks(read.features.len())) {
        let score: f64 = score.parse().unwrap();
        let sum = report.expected_value + row.iter().sum::<f64>();
        assert!((sum - score).abs() <= 1e-9 * score.abs().max(1.0), "{sum} is not {score}");
    }
}

/// Others give a model of ours the scores and explanations that we do; and so do we when it comes back.
fn goes_out(directory: &Path, model: &str, data: &str) {
    explained(directory, model, data);
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json")] {
        run(directory, &format!("export {model} --format {format} --output {name}")).ok();
        let arguments = format!("loads_{format} {data} {name} {model}.scores.txt {model}.explained");
        if check(directory, &arguments).is_none() {
            return;
        }
        run(directory, &format!("import {name} --output back")).ok();
        let scores = |model: &str| predict(directory, model, data);
        for (ours, back) in scores(model).iter().zip(scores("back")) {
            if format == "lightgbm" {
                assert_eq!(ours.score, back.score);
            } else {
                assert!((ours.score - back.score).abs() < 1e-6 * ours.score.abs().max(1.0));
            }
        }
    }
}

#[test]
fn models_of_every_treatment_of_missing_values_go_out() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 60, 20), "");
    for missing in ["zero", "one", "mean", "median", "learned"] {
        let settings = format!("--set num_trees=40 --set missing={missing} --set min_data_in_leaf=5");
        train(room.path(), &format!("--data data --model m --preset lambdamart {settings}"));
        goes_out(room.path(), "m", "data");
    }
    train(room.path(), "--data data --model m --preset gbrt --set num_trees=20 --set missing=learned");
    goes_out(room.path(), "m", "data");
}

#[test]
fn weighted_rows_and_names_go_out() {
    let room = room();
    let csv = as_csv(&graded(6, 40, 20)).replace("f1,f2", "bm 25,page[rank]");
    std::fs::write(room.path().join("data.csv"), csv).unwrap();
    run(room.path(), "convert data.csv --output data").ok();
    train(room.path(), "--data data --model m --set num_trees=20 --set missing=learned");
    explained(room.path(), "m", "data");
    let said = run(room.path(), "export m --format lightgbm --output out.txt").ok().stderr;
    assert!(said.contains("note: features with characters") && said.contains("bm_25"), "{said}");
    assert!(said.contains("note: rows have weights"), "{said}");
    check(room.path(), "loads_lightgbm data out.txt m.scores.txt m.explained");
    let said = run(room.path(), "export m --format xgboost --output out.json").ok().stderr;
    assert!(said.contains("page_rank_"), "{said}");
    // What needs no other name keeps it on the way back.
    run(room.path(), "import out.json --output back").ok();
    let names = Model::read(&Location::Local(room.path().join("back"))).unwrap().features;
    assert_eq!((names[0].name.as_str(), names[1].name.as_str()), ("bm 25", "page_rank_"));
    run(room.path(), "export m --format json --output out.planetree").ok();
    run(room.path(), "import out.planetree --output back").ok();
    let read = |name: &str| std::fs::read(room.path().join(name)).unwrap();
    assert_eq!(read("m"), read("back"), "nothing is lost as JSON");
}

#[test]
fn models_of_real_data_go_out() {
    let Some(data) = shared("data/MQ2008") else { return };
    let room = room();
    real_dataset(room.path(), "mq2008", &data, "S1");
    train(room.path(), "--data mq2008 --model m --preset lambdamart --set num_trees=100");
    goes_out(room.path(), "m", "mq2008");
}

/// A model of theirs gives the same scores and explanations here.
fn comes_in(directory: &Path, from: &str, data: &str, settings: &str) -> Option<Ran> {
    let (name, tolerance) = if from == "lightgbm" { ("in.txt", 1e-12) } else { ("in.json", 1e-6) };
    check(directory, &format!("makes_{from} {data} {name} {settings}"))?;
    let said = run(directory, &format!("import {name} --output m")).ok();
    explained(directory, "m", data);
    check(directory, &format!("compares {name} m.scores.txt m.explained {tolerance}"))?;
    Some(said)
}

#[test]
fn models_of_lightgbm_come_in() {
    let room = room();
    dataset(room.path(), "data", &graded(7, 60, 20), "");
    for (settings, note) in [
        ("objective=regression", ""),
        ("objective=lambdarank num_leaves=31 named=1", ""),
        ("objective=binary use_missing=false", "raw_score=True"),
        ("objective=regression boosting=dart max_bin=15", ""),
        ("objective=regression boosting=rf bagging_freq=1 bagging_fraction=0.7", ""),
        ("objective=regression num_trees=1 min_data_in_leaf=100000", ""),
    ] {
        let Some(said) = comes_in(room.path(), "lightgbm", "data", settings) else { return };
        assert!(said.stderr.contains(note), "{}", said.stderr);
        assert_eq!(said.stderr.contains("note:"), !note.is_empty(), "{}", said.stderr);
    }
    let described = run(room.path(), "describe m").ok().stdout;
    assert!(described.contains("imported from LightGBM"), "{described}");
    // Zeros that count as missing cannot be told from other zeros here.
    check(room.path(), "makes_lightgbm data in.txt objective=regression zero_as_missing=true");
    let refused = run(room.path(), "import in.txt --output other").failed().stderr;
    assert!(refused.contains("zero_as_missing") && refused.contains("--lossy"), "{refused}");
    assert!(!room.path().join("other").exists());
    let said = run(room.path(), "import in.txt --output other --lossy").ok().stderr;
    assert!(said.contains("warning: scores are others"), "{said}");
}

#[test]
fn models_of_xgboost_come_in() {
    let room = room();
    dataset(room.path(), "data", &graded(8, 60, 20), "");
    for (settings, note) in [
        ("objective=reg:squarederror", ""),
        ("objective=rank:ndcg named=1", ""),
        ("objective=binary:logistic base_score=0.3", "output_margin=True"),
        ("objective=count:poisson", "output_margin=True"),
        ("objective=reg:squarederror booster=dart rate_drop=0.3", ""),
        ("objective=reg:squarederror num_parallel_tree=5 subsample=0.7 num_trees=3", ""),
    ] {
        let Some(said) = comes_in(room.path(), "xgboost", "data", settings) else { return };
        assert!(said.stderr.contains(note), "{}", said.stderr);
        assert_eq!(said.stderr.contains("note:"), !note.is_empty(), "{}", said.stderr);
    }
    check(room.path(), "makes_xgboost data in.ubj objective=reg:squarederror");
    let refused = run(room.path(), "import in.ubj --output other").failed().stderr;
    assert!(refused.contains("binary form") && refused.contains("model.json"), "{refused}");
    check(room.path(), "makes_xgboost data in.json booster=gblinear objective=reg:squarederror");
    // gblinear has no contributions of trees, but the model is written before they are asked for.
    let refused = run(room.path(), "import in.json --output other").failed().stderr;
    assert!(refused.contains("linear model"), "{refused}");
}

#[test]
fn a_score_that_starts_from_a_feature_goes_out_only_when_that_is_wanted() {
    let room = room();
    dataset(room.path(), "data", &graded(9, 30, 20), "");
    train(room.path(), "--data data --model m --set num_trees=3 --set base_score=feature:f1");
    explained(room.path(), "m", "data");
    for format in ["lightgbm", "xgboost"] {
        let refused = run(room.path(), &format!("export m --format {format} --output out")).failed().stderr;
        assert!(refused.contains("feature f1") && refused.contains("--lossy"), "{refused}");
        assert!(!room.path().join("out").exists());
        let said =
            run(room.path(), &format!("export m --format {format} --output lossy --lossy")).ok().stderr;
        assert!(said.contains("warning: scores are others"), "{said}");
    }
    run(room.path(), "export m --format json --output out").ok();
}

#[test]
fn misuse_is_told_from_failure() {
    let room = room();
    std::fs::write(room.path().join("text"), "tree\nversion=v4\n").unwrap();
    let ran = run(room.path(), "import text --output m").failed();
    assert!(ran.stderr.contains("text: truncated"), "{}", ran.stderr);
    assert_eq!(run(room.path(), "import text --format onnx --output m").code, 2);
    assert_eq!(run(room.path(), "export text --output m").code, 2);
    let ran = run(room.path(), "export text --format json --output m").failed();
    assert!(ran.stderr.contains("help:"), "{}", ran.stderr);
    // Nobody's file is replaced by a model.
    std::fs::write(room.path().join("mine"), "mine").unwrap();
    run(room.path(), "import text --output mine").failed();
    assert_eq!(std::fs::read_to_string(room.path().join("mine")).unwrap(), "mine");
}
