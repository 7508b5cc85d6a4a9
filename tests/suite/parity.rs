//! Exported models have the scores of the model in the programs that they are exported to. Where a program is a Python
//! package, it scores random models on rows at their thresholds; `verify-export` emulates the others.

use crate::support::*;
use std::path::Path;

/// The exports that `parity.py` checks with the real program: format, kind, opset.
const ENGINES: [(&str, &str, &str); 9] = [
    ("lightgbm", "trees", ""),
    ("xgboost", "trees", ""),
    ("onnx", "float", ""),
    ("onnx", "float", "3"),
    ("onnx", "double", ""),
    ("treelite", "float", ""),
    ("treelite", "double", ""),
    ("pmml", "trees", ""),
    ("elastic", "trees", ""),
];

#[test]
fn the_real_programs_have_the_scores_of_exported_models() {
    let room = room();
    if reference_script(room.path(), "parity.py", "generate .").is_none() {
        return;
    }
    for number in 0.. {
        if !room.path().join(format!("model{number}.json")).exists() {
            assert!(number > 5, "models were generated");
            break;
        }
        run(room.path(), &format!("import model{number}.json --output model{number}")).ok();
        for (format, kind, opset) in ENGINES {
            let (option, suffix) = match opset {
                "" => (String::new(), String::new()),
                opset => (format!("--opset {opset}"), format!(".{opset}")),
            };
            run(
                room.path(),
                &format!("export model{number} --format {format} --kind {kind} {option} --output model{number}.{format}.{kind}{suffix}"),
            )
            .ok();
        }
    }
    if let Some(table) = reference_script(room.path(), "parity.py", "check .") {
        eprintln!("{table}");
        assert_eq!(table.lines().count(), ENGINES.len(), "{table}");
    }
}

/// Trains a small model.
fn trained(directory: &Path, settings: &str) {
    dataset(directory, "data", &graded(5, 40, 20), "");
    train(
        directory,
        &format!("--data data --model m --set num_trees=15 --set min_data_in_leaf=5 {settings}"),
    );
}

#[test]
fn every_format_is_verified_on_rows_of_data() {
    let room = room();
    trained(room.path(), "--preset lambdamart --set missing=zero");
    for (format, kinds) in [
        ("lightgbm", "trees"),
        ("xgboost", "trees"),
        ("json", "trees"),
        ("ranklib", "trees"),
        ("solr", "trees"),
        ("elasticsearch-ltr", "xgboost+json xgboost+json+raw ranklib"),
        ("opensearch-ltr", "xgboost+json"),
        ("elastic", "trees"),
        ("vespa", "lightgbm xgboost"),
        ("onnx", "float double"),
        ("treelite", "float double"),
        ("pmml", "trees"),
    ] {
        for kind in kinds.split_whitespace() {
            let stderr = run(
                room.path(),
                &format!("export m --format {format} --kind {kind} --output out --data data"),
            )
            .ok()
            .stderr;
            assert!(stderr.contains("no mismatch"), "{format} {kind}: {stderr}");
            let stdout =
                run(room.path(), &format!("verify-export m out --format {format} --data data --json"))
                    .ok()
                    .stdout;
            let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(
                (report["mismatches"].as_u64(), report["data_rows"].as_u64()),
                (Some(0), Some(800)),
                "{format} {kind}: {stdout}"
            );
            assert_eq!(report["kind"], kind);
        }
    }
}

#[test]
fn the_tree_of_a_base_score_is_no_tree_of_the_model() {
    let room = room();
    trained(room.path(), "--preset mart");
    for format in ["lightgbm", "onnx", "treelite"] {
        let stderr =
            run(room.path(), &format!("export m --format {format} --output {format}.out")).ok().stderr;
        assert!(stderr.contains("out: 15 trees, "), "{format}: {stderr}");
        let stdout = run(room.path(), &format!("verify-export m {format}.out --format {format}")).ok().stdout;
        assert!(stdout.contains("\ntrees                15\n"), "{format}: {stdout}");
        assert_eq!(stdout.contains("a further tree of one leaf"), format != "treelite", "{format}: {stdout}");
    }
}

#[test]
fn a_mismatch_is_never_silent() {
    let room = room();
    trained(room.path(), "--preset lambdamart --set missing=learned");
    // RankLib has no missing values.
    let stderr = run(room.path(), "export m --format ranklib --output out.txt").failed().stderr;
    assert!(stderr.contains("missing=zero") && stderr.contains("--lossy"), "{stderr}");
    assert!(!room.path().join("out.txt").exists());
    let stderr = run(room.path(), "export m --format ranklib --output out.txt --lossy").ok().stderr;
    assert!(stderr.contains("warning: scores differ") && stderr.contains("first difference"), "{stderr}");
    let ran = run(room.path(), "verify-export m out.txt --format ranklib --data data").failed();
    assert!(ran.stdout.contains("is 0") && ran.stdout.contains("goes"), "{}", ran.stdout);
    assert!(ran.stderr.contains("have another score"), "{}", ran.stderr);
    // A file that was edited.
    run(room.path(), "export m --format xgboost --output out.json").ok();
    let text = std::fs::read_to_string(room.path().join("out.json")).unwrap();
    let edited = text.replacen("\"default_left\":[0", "\"default_left\":[1", 1);
    let edited =
        if edited == text { text.replacen("\"default_left\":[1", "\"default_left\":[0", 1) } else { edited };
    std::fs::write(room.path().join("edited.json"), edited).unwrap();
    let ran = run(room.path(), "verify-export m edited.json --format xgboost").failed();
    assert!(ran.stdout.contains("= missing goes"), "{}", ran.stdout);
    // Another model, and another format.
    train(room.path(), "--data data --model other --set num_trees=16");
    assert!(
        run(room.path(), "verify-export other out.json --format xgboost").failed().stderr.contains("trees")
    );
    assert!(
        run(room.path(), "verify-export m out.json --format onnx").failed().stderr.contains("cannot read")
    );
}

#[test]
fn requests_for_servers_have_the_model() {
    let room = room();
    trained(room.path(), "--preset lambdamart --set missing=zero");
    let stdout = run(
        room.path(),
        "export m --format elasticsearch-ltr --output out.json --curl --name ranker --feature-set shop",
    )
    .ok()
    .stdout;
    assert!(stdout.contains("PUT 'http://localhost:9200/_ltr/_featureset/shop'"), "{stdout}");
    assert!(stdout.contains("/_featureset/shop/_createmodel'"), "{stdout}");
    // A document without the field has no value, which is not 0.
    assert!(
        stdout.contains(r#""query":{"exists":{"field":"f1"}}"#) && !stdout.contains("match_all"),
        "{stdout}"
    );
    let body = stdout.lines().find(|line| line.starts_with("{\"model\"")).unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&body["model"]["name"], &body["model"]["model"]["type"]),
        (&"ranker".into(), &"model/xgboost+json".into())
    );
    let definition = body["model"]["model"]["definition"].as_str().unwrap();
    assert_eq!(definition, std::fs::read_to_string(room.path().join("out.json")).unwrap().trim_end());
    let stdout =
        run(room.path(), "export m --format solr --output solr.json --curl --feature-set shop").ok().stdout;
    assert!(stdout.contains("solr/shop/schema/model-store' ") && stdout.contains("@'solr.json'"), "{stdout}");
    let stdout = run(room.path(), "export m --format elastic --output elastic.json --curl").ok().stdout;
    assert!(stdout.contains("_ml/trained_models/elastic'"), "{stdout}");
    assert_eq!(run(room.path(), "export m --format onnx --output out.onnx --curl").code, 2);
    assert_eq!(run(room.path(), "export m --format onnx --opset 4 --output out.onnx").code, 2);
    assert_eq!(run(room.path(), "export m --format onnx --opset 3 --kind double --output out.onnx").code, 2);
    assert_eq!(run(room.path(), "export m --format solr --kind oracle --output out.onnx").code, 2);
    // A shift makes all scores positive; the check needs the same option.
    run(room.path(), "export m --format solr --output shifted.json --shift-nonnegative").ok();
    run(room.path(), "verify-export m shifted.json --format solr --shift-nonnegative --data data").ok();
    run(room.path(), "verify-export m shifted.json --format solr").failed();
    // Features of the target.
    let list: String = (1..=13).rev().map(|number| format!("f{number}\tx{number}\n")).collect();
    std::fs::write(room.path().join("list"), list).unwrap();
    for format in ["solr", "onnx", "ranklib"] {
        run(room.path(), &format!("export m --format {format} --features list --output named.{format}")).ok();
        let check = format!("verify-export m named.{format} --format {format}");
        run(room.path(), &format!("{check} --features list --data data")).ok();
        run(room.path(), &check).failed();
    }
    std::fs::write(room.path().join("list"), "f1\nf99\n").unwrap();
    let ran = run(room.path(), "export m --format solr --features list --output other.json");
    assert_eq!((ran.code, ran.stderr.contains("no feature f99")), (2, true), "{}", ran.stderr);
}

#[test]
fn linear_models_are_exported_and_models_of_other_programs_imported() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 40, 20), "");
    train(room.path(), "--data data --model m --preset linear --set normalise_features=z --set missing=zero");
    for format in ["solr", "ranklib", "elasticsearch-ltr", "pmml"] {
        // The linear models of planetree may take missing values as means, which most targets cannot.
        let ran =
            run(room.path(), &format!("export m --format {format} --output out --lossy --data data")).ok();
        assert!(
            ran.stderr.contains("no mismatch") || ran.stderr.contains("count as"),
            "{format}: {}",
            ran.stderr
        );
    }
    let stderr = run(room.path(), "export m --format onnx --output out.onnx").failed().stderr;
    assert!(stderr.contains("part 0 (linear) has no trees"), "{stderr}");
    std::fs::write(room.path().join("ada.txt"), "## AdaRank\n\n1:0.5 2:1.5 1:0.5\n").unwrap();
    run(room.path(), "import ada.txt --output ada").ok();
    run(room.path(), "predict --model ada --data data --scores scores.txt").ok();
}
