//! Equal rows have one fingerprint: that of the dataset, of the model trained on it, and of its predictions.

use crate::support::*;
use planetree::dataset::{MANIFEST, Manifest};
use planetree::storage::{Access, Location};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(directory: &Path, arguments: &str) -> Value {
    serde_json::from_str(&run(directory, &format!("{arguments} --json")).ok().stdout).unwrap()
}

/// The fingerprint of a conversion, as printed by both `convert` and `describe`.
fn converted(directory: &Path, name: &str, arguments: &str) -> String {
    let summary = json(directory, &format!("convert {arguments} --output {name} --overwrite"));
    let fingerprint = summary["fingerprint"].as_str().unwrap().to_owned();
    assert_eq!(json(directory, &format!("describe {name}"))["fingerprint"], fingerprint);
    let text = run(directory, &format!("describe {name}")).ok().stdout;
    assert!(text.contains(&format!("fingerprint           {fingerprint}\n")), "{text}");
    fingerprint
}

/// Removes the fingerprint from a manifest, as in earlier versions.
fn remove_fingerprint(dataset: &Path) {
    let location = Location::parse(dataset.to_str().unwrap(), Access::Explicit).unwrap();
    let manifest = Manifest { fingerprint: None, ..Manifest::read(&location).unwrap() };
    fs::write(dataset.join(MANIFEST), manifest.to_bytes()).unwrap();
}

/// Writes a CSV file with grades and categories, a second label column and a weight column.
fn table(directory: &Path) {
    let mut text = "query_id,doc,label,other,weight,colour,a,b\n".to_owned();
    for (row, example) in graded(71, 40, 10).iter().enumerate() {
        let value = |feature: usize| example.features[feature].unwrap_or_default();
        let colour = ["red", "green", "blue"][row * 7 % 3];
        let other = (example.label + (row % 2) as f64) % 5.0;
        text.push_str(&format!(
            "{},d{row},{},{other},{},{colour},{},{}\n",
            example.query,
            example.label,
            example.weight,
            value(0),
            value(1)
        ));
    }
    fs::write(directory.join("t.csv"), text).unwrap();
    fs::write(directory.join("words.csv"), "query_id,label,colour\nx,1,blue\nx,0,red\nx,1,green\n").unwrap();
    run(directory, "convert words.csv --output words").ok();
}

const COLUMNS: &str = "t.csv --doc-column doc --ignore-columns other";

#[test]
fn fingerprints_are_equal_exactly_for_equal_rows() {
    let temporary = room();
    let at = temporary.path();
    table(at);
    let plain = format!("{COLUMNS},weight");
    let first = converted(at, "d", &plain);
    for options in ["--partition-rows 30", "--threads 1", "--partition-rows 77 --threads 1 --sort-queries"] {
        assert_eq!(converted(at, "d", &format!("{plain} {options}")), first, "{options}");
    }
    let mut all = vec![first.clone()];
    for other in [
        "t.csv --doc-column doc --ignore-columns label,weight --label-column other".to_owned(),
        COLUMNS.to_owned(),
        "t.csv --ignore-columns other,weight,doc".to_owned(),
        format!("{plain} --categories-from words"),
        format!("{COLUMNS},weight,b"),
        format!("{plain} --query-fraction 0.5"),
    ] {
        all.push(converted(at, "d", &other));
    }
    let text = fs::read_to_string(at.join("t.csv")).unwrap();
    for (what, changed) in [
        ("a value", format!("{}e1\n", text.trim_end())),
        ("a name", text.replacen(",a,b\n", ",a,c\n", 1)),
        ("a document", text.replacen(",d17,", ",e17,", 1)),
        ("a word", text.replace(",green,", ",violet,")),
    ] {
        assert_ne!(changed, text, "{what}");
        fs::write(at.join("t.csv"), changed).unwrap();
        all.push(converted(at, "d", &plain));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "every change is detected");

    for (name, options) in [("one", ""), ("many", "--partition-rows 50 --threads 1")] {
        // A feature that first occurs late: earlier files are copied with null columns.
        let rows: String = (0..400).map(|row| format!("{} qid:{} 1:{row}\n", row % 3, row / 5)).collect();
        fs::write(at.join("late.txt"), format!("{rows}1 qid:z 7:1\n")).unwrap();
        converted(at, name, &format!("late.txt {options}"));
    }
    let of = |name: &str| json(at, &format!("describe {name}"))["fingerprint"].clone();
    assert_eq!(of("one"), of("many"));
}

#[test]
fn a_dataset_its_model_and_its_predictions_have_the_same_fingerprint() {
    let temporary = room();
    let at = temporary.path();
    table(at);
    let fingerprint = converted(at, "d", &format!("{COLUMNS},weight --partition-rows 100"));
    dataset(at, "vali", &graded(72, 10, 8), "");
    train(at, "--data d --model m --set num_trees=3");
    assert_eq!(json(at, "describe m")["data"][0]["fingerprint"], fingerprint);
    assert!(run(at, "describe m").ok().stdout.contains(&fingerprint));
    // The note is printed once, and recorded.
    let ran = run(at, "predict --model m --data d --output p").ok();
    assert_eq!(
        ran.stderr.matches("note: d: the model was trained on these rows").count(),
        1,
        "{}",
        ran.stderr
    );
    assert_eq!(run(at, "--quiet predict --model m --data d --output p").ok().stderr, "");
    let described = json(at, "describe p");
    assert_eq!(
        (&described["dataset"], &described["trained_on"]),
        (&fingerprint.clone().into(), &fingerprint.clone().into())
    );
    assert!(run(at, "describe p").ok().stdout.contains(&format!("dataset               {fingerprint}\n")));
    let stderr = run(at, "evaluate --predictions p").ok().stderr;
    assert_eq!(stderr.matches("note: p: the model was trained on these rows").count(), 1, "{stderr}");
    // Different rows with the same names have a different fingerprint.
    converted(at, "others", &format!("{COLUMNS},weight --query-fraction 0.5"));
    let stderr = run(at, "predict --model m --data others --output p").ok().stderr;
    assert!(!stderr.contains("trained on these rows"), "{stderr}");
    let stderr = run(at, "evaluate --predictions p").ok().stderr;
    assert!(!stderr.contains("trained on these rows"), "{stderr}");

    // The fingerprint of a dataset of an earlier version is computed from its rows.
    remove_fingerprint(&at.join("d"));
    assert_eq!(json(at, "describe d")["fingerprint"], fingerprint);
    train(at, "--data d --model again --set num_trees=3");
    assert!(fs::read(at.join("again")).unwrap() == fs::read(at.join("m")).unwrap());
    assert!(run(at, "predict --model m --data d --output p").ok().stderr.contains("trained on these rows"));
}

#[test]
fn out_of_bag_scores_do_not_count_as_scores_of_training_rows() {
    let temporary = room();
    let at = temporary.path();
    dataset(at, "d", &graded(73, 20, 8), "");
    train(at, "--data d --model m --preset rf-point --set num_trees=5 --oob p");
    let stderr = run(at, "evaluate --predictions p").ok().stderr;
    assert!(!stderr.contains("trained on these rows"), "{stderr}");
    // Scores by all trees are.
    run(at, "predict --model m --data d --output q").ok();
    let stderr = run(at, "evaluate --predictions q").ok().stderr;
    assert!(stderr.contains("trained on these rows"), "{stderr}");
}

#[test]
fn a_training_does_not_resume_with_other_labels_weights_or_categories() {
    let temporary = room();
    let at = temporary.path();
    table(at);
    let plain = format!("{COLUMNS},weight");
    run(at, &format!("convert {plain} --output d")).ok();
    run(at, &format!("convert {plain} --output same --partition-rows 50 --threads 1")).ok();
    run(
        at,
        "convert t.csv --doc-column doc --ignore-columns label,weight --label-column other --output labels",
    )
    .ok();
    run(at, &format!("convert {COLUMNS} --output weights")).ok();
    run(at, &format!("convert {plain} --categories-from words --output codes")).ok();
    for preset in ["lambdamart", "xendcg", "rf-point", "planet"] {
        let trees = stop_at_checkpoint(at, &format!("--data d --preset {preset}")) + 2;
        let resume = format!("--preset {preset} --set num_trees={trees} --model m --checkpoint c --resume");
        for other in ["labels", "weights", "codes"] {
            let stderr = run(at, &format!("train --data {other} {resume}")).failed().stderr;
            assert!(
                stderr.contains("the checkpoint is from a different training run: the training data differ"),
                "{stderr}"
            );
            assert!(stderr.contains(json(at, "describe d")["fingerprint"].as_str().unwrap()), "{stderr}");
            assert!(stderr.contains("start over without --resume"), "{stderr}");
        }
        let stderr = run(at, &format!("train --data same {resume}")).ok().stderr;
        assert!(stderr.contains("resuming from round"), "{stderr}");
        train(at, &format!("--data d --preset {preset} --set num_trees={trees} --model whole"));
        assert!(fs::read(at.join("m")).unwrap() == fs::read(at.join("whole")).unwrap(), "{preset}");
    }
}
