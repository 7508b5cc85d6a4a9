//! Export to and import from LightGBM and XGBoost keep scores and explanations. The packages themselves compute the
//! values to compare with.

use crate::support::*;
use planetree::dataset::DatasetReader;
use planetree::explain::explain;
use planetree::model::Model;
use planetree::storage::Location;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

/// Runs a check of `exchange.py`; what it printed, or `None` without Python.
fn check(directory: &Path, arguments: &str) -> Option<String> {
    let found = reference_script(directory, "exchange.py", arguments)?;
    if !found.is_empty() {
        eprintln!("{arguments}: {found}");
    }
    Some(found)
}

/// Writes the scores of a model as text, and its explanations as binary numbers: the expected value, then the
/// contributions row by row.
fn write_explanations(directory: &Path, model: &str, data: &str) {
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
    // The contributions add up to the scores.
    let scores = std::fs::read_to_string(directory.join(format!("{model}.scores.txt"))).unwrap();
    for (score, row) in scores.lines().zip(all.chunks(read.features.len())) {
        let score: f64 = score.parse().unwrap();
        let sum = report.expected_value + row.iter().sum::<f64>();
        assert!((sum - score).abs() <= 1e-9 * score.abs().max(1.0), "{sum} is not {score}");
    }
}

/// Largest relative difference of contributions and expected values in LightGBM.
const CONTRIBUTIONS: f64 = 1e-8;
/// The same for models with branches of missing values that no row took. Their leaves count as one scaled row, because
/// LightGBM divides by counts.
const UNTAKEN_CONTRIBUTIONS: f64 = 1e-6;

/// Exports a model: LightGBM and XGBoost compute the scores and explanations of planetree, and the model has the same
/// scores after it is imported again.
fn check_export(directory: &Path, model: &str, data: &str, tolerance: f64) {
    write_explanations(directory, model, data);
    for (format, name) in [("lightgbm", "out.txt"), ("xgboost", "out.json")] {
        run(directory, &format!("export {model} --format {format} --output {name}")).ok();
        let arguments = match format {
            "lightgbm" => {
                format!("loads_lightgbm {data} {name} {model}.scores.txt {model}.explained {tolerance}")
            }
            _ => format!("loads_xgboost {data} {name} {model}.scores.txt {model}.explained"),
        };
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
fn models_with_every_treatment_of_missing_values_are_exported() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 60, 20), "");
    for missing in ["zero", "one", "mean", "median", "learned", "low", "high", "branch"] {
        let settings = format!("--set num_trees=40 --set missing={missing} --set min_data_in_leaf=5");
        train(room.path(), &format!("--data data --model m --preset lambdamart {settings}"));
        let tolerance = if missing == "branch" { UNTAKEN_CONTRIBUTIONS } else { CONTRIBUTIONS };
        check_export(room.path(), "m", "data", tolerance);
    }
    train(room.path(), "--data data --model m --preset gbrt --set num_trees=20 --set missing=learned");
    check_export(room.path(), "m", "data", CONTRIBUTIONS);
}

#[test]
fn weights_and_feature_names_are_exported() {
    let room = room();
    let csv = as_csv(&graded(6, 40, 20)).replace("f1,f2", "bm 25,page[rank]");
    std::fs::write(room.path().join("data.csv"), csv).unwrap();
    run(room.path(), "convert data.csv --output data").ok();
    train(room.path(), "--data data --model m --set num_trees=20 --set missing=learned");
    write_explanations(room.path(), "m", "data");
    let stderr = run(room.path(), "export m --format lightgbm --output out.txt").ok().stderr;
    assert!(
        stderr.contains("note: features renamed because of unsupported characters: ")
            && stderr.contains("bm_25"),
        "{stderr}"
    );
    assert!(stderr.contains("note: rows have weights"), "{stderr}");
    check(room.path(), &format!("loads_lightgbm data out.txt m.scores.txt m.explained {CONTRIBUTIONS}"));
    let stderr = run(room.path(), "export m --format xgboost --output out.json").ok().stderr;
    assert!(stderr.contains("page_rank_"), "{stderr}");
    // Supported names survive the round trip.
    run(room.path(), "import out.json --output back").ok();
    let names = Model::read(&Location::Local(room.path().join("back"))).unwrap().features;
    assert_eq!((names[0].name.as_str(), names[1].name.as_str()), ("bm 25", "page_rank_"));
    run(room.path(), "export m --format json --output out.planetree").ok();
    run(room.path(), "import out.planetree --output back").ok();
    let read = |name: &str| std::fs::read(room.path().join(name)).unwrap();
    assert_eq!(read("m"), read("back"), "JSON is lossless");
}

#[test]
fn models_of_real_data_are_exported() {
    let Some(data) = shared("data/MQ2008") else { return };
    let room = room();
    real_dataset(room.path(), "mq2008", &data, "S1");
    train(room.path(), "--data mq2008 --model m --preset lambdamart --set num_trees=100");
    check_export(room.path(), "m", "mq2008", CONTRIBUTIONS);
}

/// Trains a model with another program and imports it: planetree computes the same scores and explanations.
fn check_import(directory: &Path, from: &str, data: &str, settings: &str) -> Option<Ran> {
    let (name, tolerance) = if from == "lightgbm" { ("in.txt", 1e-12) } else { ("in.json", 1e-6) };
    check(directory, &format!("trains_{from} {data} {name} {settings}"))?;
    let ran = run(directory, &format!("import {name} --output m")).ok();
    write_explanations(directory, "m", data);
    check(directory, &format!("compares {name} m.scores.txt m.explained {tolerance}"))?;
    Some(ran)
}

#[test]
fn models_of_lightgbm_are_imported() {
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
        let Some(ran) = check_import(room.path(), "lightgbm", "data", settings) else { return };
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("note:"), !note.is_empty(), "{}", ran.stderr);
    }
    let described = run(room.path(), "describe m").ok().stdout;
    assert!(described.contains("imported from LightGBM"), "{described}");
    // In planetree zero is never missing.
    check(room.path(), "trains_lightgbm data in.txt objective=regression zero_as_missing=true");
    let stderr = run(room.path(), "import in.txt --output other").failed().stderr;
    assert!(stderr.contains("zero_as_missing") && stderr.contains("--lossy"), "{stderr}");
    assert!(!room.path().join("other").exists());
    let stderr = run(room.path(), "import in.txt --output other --lossy").ok().stderr;
    assert!(stderr.contains("warning: scores differ"), "{stderr}");
}

#[test]
fn models_of_xgboost_are_imported() {
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
        let Some(ran) = check_import(room.path(), "xgboost", "data", settings) else { return };
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("note:"), !note.is_empty(), "{}", ran.stderr);
    }
    check(room.path(), "trains_xgboost data in.ubj objective=reg:squarederror");
    let stderr = run(room.path(), "import in.ubj --output other").failed().stderr;
    assert!(stderr.contains("binary formats are not supported") && stderr.contains("model.json"), "{stderr}");
    check(room.path(), "trains_xgboost data in.json booster=gblinear objective=reg:squarederror");
    // gblinear has no contributions of trees, but the script writes the model before it computes them.
    let stderr = run(room.path(), "import in.json --output other").failed().stderr;
    assert!(stderr.contains("linear models (gblinear) are not supported"), "{stderr}");
}

#[test]
fn splits_on_sets_of_categories_are_imported() {
    let room = room();
    for (engine, name, tolerance) in [("lightgbm", "in.txt", 1e-13), ("xgboost", "in.json", 1e-6)] {
        for (kind, options) in [("frame", "--categorical size"), ("codes", "")] {
            let Some(_) = check(room.path(), &format!("trains_categories {engine} {kind} {name} table.csv"))
            else {
                return;
            };
            run(room.path(), &format!("convert table.csv --output data --overwrite {options}")).ok();
            let stderr = run(room.path(), &format!("import {name} --output m")).ok().stderr;
            assert!(!stderr.contains("note:"), "{stderr}");
            let words: Vec<usize> = Model::read(&Location::Local(room.path().join("m")))
                .unwrap()
                .features
                .iter()
                .map(|feature| feature.words.len())
                .collect();
            assert_eq!(words, if kind == "frame" { [0, 23, 9] } else { [0, 0, 0] });
            run(room.path(), "--quiet predict --model m --data data --scores scores.txt").ok();
            check(room.path(), &format!("compares_scores {name} scores.txt {tolerance}"));
        }
    }
}

/// A service writes a query and an empty line, and gets the scores while it keeps the pipe open.
#[test]
fn queries_are_scored_as_they_arrive() {
    let room = room();
    let examples = graded(12, 12, 15);
    let text = as_letor(&examples);
    dataset(room.path(), "data", &examples, "");
    train(room.path(), "--data data --model m --set num_trees=10 --set missing=learned");
    run(room.path(), "--quiet predict --model m --data data --scores scores.txt").ok();
    let expected = std::fs::read_to_string(room.path().join("scores.txt")).unwrap();
    let mut batch = command(room.path(), "predict --model m --batch");
    let mut child =
        batch.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut found = String::new();
    let query = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let lines: Vec<&str> = text.lines().collect();
    for lines in lines.chunk_by(|one, other| query(one) == query(other)) {
        writeln!(input, "{}\n", lines.join("\n")).unwrap();
        input.flush().unwrap();
        for _ in lines {
            assert!(output.read_line(&mut found).unwrap() > 0, "the scores of a query come at once");
        }
    }
    drop(input);
    assert_eq!(output.read_line(&mut found).unwrap(), 0, "there are no other lines");
    assert_eq!(found, expected);
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && stderr.contains("queries scored, each query in"), "{stderr}");
    // Options of datasets and tables do not apply.
    assert_eq!(run(room.path(), "predict --model m --batch --output p.parquet").code, 2);
    assert_eq!(run(room.path(), "predict --model m --output p.parquet").code, 2);
}

#[test]
fn a_model_with_a_base_feature_is_exported_only_with_lossy() {
    let room = room();
    dataset(room.path(), "data", &graded(9, 30, 20), "");
    train(room.path(), "--data data --model m --set num_trees=3 --set base_score=feature:f1");
    write_explanations(room.path(), "m", "data");
    for format in ["lightgbm", "xgboost"] {
        let stderr = run(room.path(), &format!("export m --format {format} --output out")).failed().stderr;
        assert!(stderr.contains("feature f1") && stderr.contains("--lossy"), "{stderr}");
        assert!(!room.path().join("out").exists());
        let stderr =
            run(room.path(), &format!("export m --format {format} --output lossy --lossy")).ok().stderr;
        assert!(stderr.contains("warning: scores differ"), "{stderr}");
    }
    run(room.path(), "export m --format json --output out").ok();
}

#[test]
fn usage_errors_and_failures_have_different_exit_codes() {
    let room = room();
    std::fs::write(room.path().join("text"), "tree\nversion=v4\n").unwrap();
    let ran = run(room.path(), "import text --output m").failed();
    assert!(ran.stderr.contains("text: truncated"), "{}", ran.stderr);
    assert_eq!(run(room.path(), "import text --format vespa --output m").code, 2);
    assert_eq!(run(room.path(), "export text --output m").code, 2);
    let ran = run(room.path(), "export text --format json --output m").failed();
    assert!(ran.stderr.contains("help:"), "{}", ran.stderr);
    // A file that planetree did not write is not replaced.
    std::fs::write(room.path().join("mine"), "mine").unwrap();
    run(room.path(), "import text --output mine").failed();
    assert_eq!(std::fs::read_to_string(room.path().join("mine")).unwrap(), "mine");
}

/// Returns a text in which every line that starts with `key` has the given number in place of each of its numbers.
fn with_all(text: &str, key: &str, number: &str) -> String {
    let changed = |line: &str| match line.strip_prefix(key) {
        Some(list) => {
            format!("{key}{}\n", list.split_whitespace().map(|_| number).collect::<Vec<_>>().join(" "))
        }
        None => format!("{line}\n"),
    };
    text.lines().map(changed).collect()
}

#[test]
fn models_made_to_do_harm_are_refused_in_bounded_memory() {
    const MANY: usize = 3_000_000;
    let room = room();
    dataset(room.path(), "data", &graded(9, 30, 20), "");
    train(room.path(), "--data data --model m --set num_trees=3 --set min_data_in_leaf=5");
    let exported = |format: &str| {
        run(room.path(), &format!("export m --format {format} --output {format}")).ok();
        std::fs::read_to_string(room.path().join(format)).unwrap()
    };
    let (lightgbm, xgboost, json) = (exported("lightgbm"), exported("xgboost"), exported("json"));
    let edited = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    };
    let zeros = vec!["0"; MANY].join(",");
    let cycle = xgboost.split("\"left_children\":[").nth(1).unwrap().split(']').next().unwrap();
    let files = [
        ("lightgbm", "a cycle", with_all(&with_all(&lightgbm, "left_child=", "0"), "right_child=", "0")),
        ("lightgbm", "10,000,000 features", with_all(&lightgbm, "max_feature_idx=", "9999999")),
        ("lightgbm", "4,000,000,000 leaves", with_all(&lightgbm, "num_leaves=", "4000000000")),
        (
            "lightgbm",
            "a long list",
            edited(&lightgbm, "left_child=", &format!("left_child={}", "0 ".repeat(MANY))),
        ),
        (
            "xgboost",
            "a cycle",
            edited(&xgboost, cycle, &cycle.split(',').map(|_| "0").collect::<Vec<_>>().join(",")),
        ),
        ("xgboost", "a long list", edited(&xgboost, cycle, &zeros)),
        (
            "xgboost",
            "10,000,000 features",
            edited(&xgboost, "\"num_feature\":\"", "\"num_feature\":\"10000000"),
        ),
        ("xgboost", "deep nesting", format!("{{\"learner\":{}", "[".repeat(MANY))),
        ("json", "a cycle", edited(&json, "\"left\":1,", "\"left\":0,")),
        ("json", "a node that does not exist", edited(&json, "\"left\":1,", "\"left\":4000000000,")),
        ("json", "deep nesting", format!("{{\"planetree_model\":2,\"parts\":{}", "[".repeat(MANY))),
        ("catboost", "deep nesting", format!("{{\"oblivious_trees\":{}", "[".repeat(MANY))),
        ("ranklib", "10,000,000 features", "## Coordinate Ascent\n\n10000000:1.0\n".to_owned()),
        (
            "ranklib",
            "deep nesting",
            format!("## LambdaMART\n<ensemble>\n<tree id=\"1\" weight=\"1\">\n{}", "<split>\n".repeat(MANY)),
        ),
    ];
    for (format, name, text) in files {
        std::fs::write(room.path().join("bad"), &text).unwrap();
        let (stderr, peak) = peak_of(room.path(), &format!("import bad --format {format} --output out"));
        assert!(
            stderr.starts_with("error: bad: ") && stderr.contains("  help: "),
            "{format}, {name}: {stderr}"
        );
        let most = 96 + 16 * (text.len() >> 20) as u64;
        assert!(peak < most, "{format}, {name}: {peak} MiB for a file of {} MiB", text.len() >> 20);
        assert!(!room.path().join("out").exists());
    }
}
