//! Real datasets convert to the same numbers of rows, queries and missing values as other tools count.

use crate::support::*;
use std::path::Path;
use std::process::Command;

/// Rows and queries of LETOR text, counted by awk.
fn count_with_awk(pattern: &str) -> (u64, u64) {
    let script = format!(
        "zcat {pattern} | awk 'NF && $1 !~ /^#/ {{ rows++; if (!($2 in seen)) {{ seen[$2] = 1; queries++ }} }} END {{ print rows, queries }}'"
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// Converts text; the numbers of rows, queries and features.
fn converted(directory: &Path, arguments: &str) -> (u64, u64, u64) {
    let json = run(directory, &format!("convert {arguments} --json")).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let number = |key: &str| json[key].as_u64().unwrap();
    (number("rows"), number("queries"), number("features"))
}

#[test]
fn letor_datasets_have_the_rows_and_queries_that_awk_counts() {
    let Some(data) = shared("data") else { return };
    for (set, features) in [
        ("MQ2008", 46),
        ("MQ2007-85pct", 46),
        ("OHSUMED/Feature-min", 45),
        ("OHSUMED/Feature-null", 45),
        ("OHSUMED/QueryLevelNorm", 45),
        ("CLUEWEB09-LTR", 42),
        ("MSLR-sample", 136),
    ] {
        let room = room();
        let pattern = format!("{}/S*.txt.gz", data.join(set).display());
        let (rows, queries) = count_with_awk(&pattern);
        assert_eq!(
            converted(room.path(), &format!("{pattern} --output out")),
            (rows, queries, features),
            "{set}"
        );
        let described = run(room.path(), "describe out --json").ok().stdout;
        let described: serde_json::Value = serde_json::from_str(&described).unwrap();
        assert_eq!(
            (described["rows"].as_u64(), described["queries"].as_u64()),
            (Some(rows), Some(queries)),
            "{set}"
        );
    }
}

#[test]
fn null_values_of_ohsumed_are_missing() {
    let Some(data) = shared("data/OHSUMED/Feature-null") else { return };
    let room = room();
    converted(room.path(), &format!("{}/S1.txt.gz --output out", data.display()));
    let script = format!("zcat {}/S1.txt.gz | grep -o ':NULL' | wc -l", data.display());
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let expected: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let nulls = rows_of(&room.path().join("out"))
        .iter()
        .flat_map(|row| row.features.clone())
        .filter(Option::is_none)
        .count();
    assert!(expected > 0);
    assert_eq!(nulls, expected);
}

#[test]
fn example_data_of_other_tools_converts() {
    let Some(data) = shared("data") else { return };
    let room = room();
    let at = |path: &str| data.join(path).display().to_string();
    assert_eq!(
        converted(room.path(), &format!("{} --output lightgbm", at("LightGBM-rank/rank.train.gz"))),
        (3005, 201, 300)
    );
    assert_eq!(
        converted(room.path(), &format!("{} --output catboost", at("catboost-querywise/train.gz"))).2,
        50
    );
    let (rows, queries, features) = converted(
        room.path(),
        &format!("{} --output ydf", at("ydf-synthetic-ranking/synthetic_ranking_train.csv.gz")),
    );
    assert_eq!((rows, queries, features), (3990, 399, 8));
    converted(
        room.path(),
        &format!(
            "{} --output test --categories-from ydf",
            at("ydf-synthetic-ranking/synthetic_ranking_test.csv.gz")
        ),
    );
    let words = |dataset: &str| {
        let manifest = std::fs::read_to_string(room.path().join(dataset).join("_manifest.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        json["categories"][0]["words"].as_array().unwrap().clone()
    };
    let train = words("ydf");
    assert_eq!(words("test")[..train.len()], train[..]);
}
