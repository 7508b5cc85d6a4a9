//! Options for columns apply, or are refused: no input ignores them without a word.

use crate::support::*;
use std::fs;
use std::path::Path;

fn features_of(at: &Path, dataset: &str) -> Vec<String> {
    let described = described(at, dataset);
    let features = described["features"].as_array().unwrap();
    features.iter().map(|feature| feature["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn features_of_letor_text_are_chosen_as_those_of_its_dataset() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), as_letor(&graded(71, 30, 8))).unwrap();
    run(at, "convert data.txt --output data").ok();
    let all = features_of(at, "data");
    assert_eq!((all.len(), all[13].as_str()), (14, "f14"));
    for (options, count) in [
        ("--feature-columns f1", 1),
        ("--feature-columns f3,f1", 2),
        ("--ignore-columns f2", 13),
        ("--ignore-columns f1*,f3", 7),
        ("--feature-columns f1? --ignore-columns f12", 4),
        ("--ignore-columns f14", 13),
    ] {
        for sorted in ["--sort-queries", ""] {
            run(at, &format!("convert data.txt {options} {sorted} --output text --overwrite")).ok();
            run(at, &format!("convert data {options} {sorted} --output again --overwrite")).ok();
            assert_eq!(features_of(at, "text").len(), count, "{options}");
            assert_eq!(features_of(at, "text"), features_of(at, "again"), "{options}");
            assert_eq!(rows_of(&at.join("text")), rows_of(&at.join("again")), "{options}");
        }
        let train = "--num-trees 3 --min-data-in-leaf 5";
        run(at, &format!("train --data data.txt {options} {train} --model direct")).ok();
        run(at, &format!("train --data text {train} --model converted")).ok();
        assert_same_bytes(at, "direct", "converted", options);
    }
    for (options, text) in [
        ("--ignore-columns f15", "no feature matches \"f15\""),
        ("--feature-columns f1,f2?", "no feature matches \"f2?\""),
        ("--ignore-columns bm25", "there is no column \"bm25\""),
    ] {
        let refused = format!("convert data.txt {options} --output none");
        assert_refused(&refused, &run(at, &refused), 2, &["data.txt", text, "f1, f2, ..."]);
        assert!(!at.join("none").exists());
    }
    fs::write(at.join("names"), (1..=14).map(|number| format!("n{number}\n")).collect::<String>()).unwrap();
    run(at, "convert data.txt --names names --ignore-columns n1? --output named").ok();
    assert_eq!(features_of(at, "named").join(","), "n1,n2,n3,n4,n5,n6,n7,n8,n9");
}

#[test]
fn options_of_tables_are_refused_for_letor_text() {
    let room = room();
    let at = room.path();
    fs::write(at.join("data.txt"), as_letor(&graded(71, 6, 8))).unwrap();
    fs::write(at.join("data.csv"), as_csv(&graded(71, 6, 8)).replacen(",label,", ",grade,", 1)).unwrap();
    fs::write(at.join("t.cd"), "0\tTarget\n1\tGroupId\n").unwrap();
    for option in [
        "--query-column a",
        "--label-column nosuch",
        "--doc-column a",
        "--weight-column a",
        "--position-column a",
        "--categorical f1",
        "--keep-columns f1",
        "--no-header",
        "--delimiter ;",
        "--decimal-comma",
        "--column-description t.cd",
    ] {
        let refused = format!("convert data.txt {option} --output none");
        let name = option.split(' ').next().unwrap();
        let texts = [name, "does not apply to LETOR text, which has no columns by name", "--format csv"];
        assert_refused(&refused, &run(at, &refused), 2, &texts);
    }
    let refused = "train --data data.txt --label-column grade --model m";
    assert_refused(refused, &run(at, refused), 2, &["--label-column does not apply to LETOR text"]);
    // Text for validation has its own labels.
    let stderr = run(
        at,
        "train --data data.csv --label-column grade --valid data.txt --num-trees 2 --min-data-in-leaf 5 --model m",
    )
    .ok()
    .stderr;
    assert!(stderr.contains("--label-column does not apply"), "{stderr}");
}

#[test]
fn column_descriptions_and_side_files_are_noted_and_not_overridden() {
    let room = room();
    let at = room.path();
    fs::write(at.join("train.tsv"), "1\tq1\t0.5\t3\n0\tq1\t1.5\t4\n").unwrap();
    fs::write(at.join("train.cd"), "0\tTarget\n1\tGroupId\n").unwrap();
    let stderr = run(at, "convert train.tsv --output train").ok().stderr;
    assert!(
        stderr.contains("note: the columns are those of train.cd, which is next to the data"),
        "{stderr}"
    );
    for option in ["--label-column 2", "--query-column 1", "--weight-column 3", "--categorical f1"] {
        let refused = format!("convert train.tsv {option} --output none");
        let name = option.split(' ').next().unwrap();
        let texts = [name, "train.cd describes the columns", "move or rename train.cd"];
        assert_refused(&refused, &run(at, &refused), 2, &texts);
    }
    run(at, "convert train.tsv --ignore-columns f1 --output few").ok();
    assert_eq!(features_of(at, "few"), ["f2"]);
    let refused = "convert train.tsv --ignore-columns f3 --output none";
    assert_refused(refused, &run(at, refused), 2, &["there is no column \"f3\""]);
    // A table with a header beside a description.
    fs::write(at.join("train.csv"), "label,qid,a,b\n1,q1,0.5,3\n0,q1,1.5,4\n").unwrap();
    let refused = "convert train.csv --output none";
    let texts = ["train.csv:1:1: found \"label\"", "train.cd describes the columns", "move train.cd away"];
    assert_refused(refused, &run(at, refused), 1, &texts);
    // Weights beside the data.
    fs::write(at.join("w.txt"), "1 qid:1 1:1\n0 qid:1 1:2\n").unwrap();
    fs::write(at.join("w.txt.weight"), "1\n2\n").unwrap();
    let stderr = run(at, "convert w.txt --output w").ok().stderr;
    assert!(stderr.contains("note: w.txt.weight gives the row weights"), "{stderr}");
    fs::write(at.join("w.csv"), "label,qid,a,b\n1,q1,0.5,3\n").unwrap();
    fs::write(at.join("w.csv.weight"), "1\n").unwrap();
    let refused = "convert w.csv --weight-column b --output none";
    assert_refused(refused, &run(at, refused), 2, &["--weight-column: w.csv.weight"]);
}

#[test]
fn text_with_features_from_0_is_scored_directly() {
    let room = room();
    let at = room.path();
    let text = as_letor(&graded(71, 30, 8));
    fs::write(at.join("one.txt"), &text).unwrap();
    // The same features, counted from 0.
    let from_0 = |line: &str| -> String {
        let shifted = line.split(' ').map(|token| match token.split_once(':') {
            Some((index, value)) if index != "qid" => {
                format!("{}:{value}", index.parse::<u32>().unwrap() - 1)
            }
            _ => token.to_owned(),
        });
        shifted.collect::<Vec<_>>().join(" ") + "\n"
    };
    fs::write(at.join("zero.txt"), text.lines().map(from_0).collect::<String>()).unwrap();
    fs::write(at.join("data.csv"), as_csv(&graded(71, 6, 8))).unwrap();
    run(at, "convert one.txt --output one").ok();
    train(at, "--data one --model m --num-trees 5 --min-data-in-leaf 5");
    let expected = run(at, "--quiet predict --model m --data one.txt --scores -").ok().stdout;
    let found = run(at, "--quiet predict --model m --data zero.txt --index-base 0 --scores -").ok().stdout;
    assert_eq!(found, expected);
    for data in ["one", "data.csv"] {
        let refused = format!("predict --model m --data {data} --index-base 0 --scores -");
        assert_refused(&refused, &run(at, &refused), 2, &[data, "--index-base applies to LETOR text"]);
    }
}

#[test]
fn rows_without_labels_are_counted() {
    let room = room();
    let at = room.path();
    fs::write(at.join("odd.csv"), "session,clicked,judged\ns1,1,\ns1,0,2\ns2,1,\ns2,0,0\n").unwrap();
    let options = "odd.csv --query-column session";
    let refused = format!("convert {options} --unlabelled zero --output none");
    let texts =
        ["no label column found", "--unlabelled zero would give every row the label 0", "--label-column"];
    assert_refused(&refused, &run(at, &refused), 2, &texts);
    let refused = format!("train --data {options} --label-column nosuch --model m");
    assert_refused(&refused, &run(at, &refused), 2, &["there is no column \"nosuch\""]);
    fs::write(at.join("none.csv"), "session,clicked\ns1,1\ns1,0\n").unwrap();
    let refused = "train --data none.csv --query-column session --model m";
    let ran = run(at, refused);
    assert_refused(refused, &ran, 1, &["none.csv: no row has a label", "--label-column"]);
    assert!(!ran.stderr.contains("--unlabelled"), "{}", ran.stderr);
    run(at, "convert none.csv --query-column session --output none").ok();
    let refused = "train --data none --model m";
    assert_refused(refused, &run(at, refused), 1, &["none: no row has a label", "--label-column"]);
    let options = format!("{options} --label-column judged");
    for (choice, note, key) in [
        ("drop", "note: 2 rows without a label left out", "unlabelled_dropped"),
        ("zero", "note: 2 rows without a label given the label 0", "unlabelled_zeroed"),
    ] {
        let ran =
            run(at, &format!("convert {options} --unlabelled {choice} --json --output out --overwrite"));
        let (stderr, stdout) = (ran.stderr.clone(), ran.ok().stdout);
        assert!(stderr.contains(note), "{stderr}");
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(json[key], 2, "{stdout}");
    }
    let ran = run(at, &format!("convert {options} --unlabelled keep --json --output out --overwrite")).ok();
    assert!(!ran.stderr.contains("left out") && ran.stdout.contains("\"unlabelled_dropped\":0"));
}

#[test]
fn the_input_with_an_unlabelled_row_is_named() {
    let room = room();
    let at = room.path();
    fs::write(at.join("a.txt"), "1 qid:1 1:1\n0 qid:1 1:2\n").unwrap();
    fs::write(at.join("b.txt"), "1 qid:2 1:1\n-1 qid:2 1:2\n").unwrap();
    for sorted in ["", "--sort-queries"] {
        let refused = format!("convert a.txt b.txt --unlabelled error {sorted} --output none");
        assert_refused(&refused, &run(at, &refused), 1, &["b.txt: query 2: a row has no label"]);
    }
}

#[test]
fn a_model_is_not_converted() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &graded(71, 30, 8), "");
    train(at, "--data data --model m.parquet --num-trees 2 --min-data-in-leaf 5");
    for options in ["", "--query-column tree --label-column value"] {
        let refused = format!("convert m.parquet {options} --output none");
        assert_refused(&refused, &run(at, &refused), 1, &["m.parquet: this is a model of planetree"]);
    }
}
