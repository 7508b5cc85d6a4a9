//! Warnings about leakage: queries and rows of validation sets that are also in the training data. Errors for
//! impossible scores: scores of other queries, and non-finite scores.

use crate::support::*;
use std::fs;
use std::path::Path;

/// The warnings of a training.
fn warnings(directory: &Path, arguments: &str) -> Vec<String> {
    let ran = run(directory, &format!("train {arguments} --model m --set num_trees=2")).ok();
    ran.stderr.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
}

/// Examples with different query ids.
fn renamed(mut examples: Vec<Example>, by: usize) -> Vec<Example> {
    examples.iter_mut().for_each(|example| example.query += by);
    examples
}

#[test]
fn validation_queries_and_rows_in_the_training_data_are_counted() {
    let temporary = room();
    let at = temporary.path();
    dataset(at, "data", &graded(81, 30, 12), "--partition-rows 50");
    dataset(at, "clean", &renamed(graded(82, 10, 12), 5000), "");
    // Four queries with the same ids, but different documents.
    dataset(at, "ids", &renamed(graded(83, 10, 12), 26), "");
    // 12 rows of query 3 under another id, among others.
    let mut rows = renamed(graded(84, 5, 12), 6000);
    rows.extend(renamed(graded(81, 30, 12).into_iter().filter(|example| example.query == 3).collect(), 7000));
    dataset(at, "rows", &rows, "--partition-rows 20");
    let queries =
        "warning: valid: 4 of 10 queries are also in the training data; metrics on them are too optimistic";
    let duplicates =
        "warning: valid: 12 of 72 rows have the same features and label as a row of the training data";
    for preset in ["planet", "gbrt", "pgbrt", "lambdamart", "rf-point", "rf-rand", "rf-pair"] {
        let warnings = |valid: &str| warnings(at, &format!("--data data --valid {valid} --preset {preset}"));
        assert_eq!(warnings("clean"), [""; 0], "{preset}");
        assert_eq!(warnings("ids"), [queries], "{preset}");
        assert_eq!(warnings("rows"), [duplicates], "{preset}");
    }
    // Several sets, each under its name; all of the training data.
    let all = warnings(at, "--data data --valid a=ids --valid b=clean --valid c=data");
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[0].starts_with("warning: a: 4 of 10 queries"), "{all:?}");
    assert!(all[1].starts_with("warning: c: 30 of 30 queries"), "{all:?}");
    assert!(all[2].starts_with("warning: c: 360 of 360 rows"), "{all:?}");
    // Equal consecutive numbers as ids may belong to different queries.
    assert!(
        all[1].ends_with("(unless ids only number the queries; if so, convert with ids that identify them)"),
        "{all:?}"
    );
    assert_eq!(run(at, "--quiet train --data data --valid data --model m").ok().stderr, "");
}

#[test]
fn rows_of_zeros_and_rows_with_other_labels_are_not_duplicates() {
    let temporary = room();
    let at = temporary.path();
    let convert = |name: &str, text: &str| {
        fs::write(at.join("text"), text).unwrap();
        run(at, &format!("convert text --output {name}")).ok();
    };
    let mut text = String::new();
    for row in 0..60 {
        text.push_str(&format!("{} qid:a{} 1:{} 2:{}\n", row % 3, row / 6, row % 7, row % 5));
    }
    convert("data", &format!("{text}0 qid:zero 1:0\n1 qid:zero 2:0\n"));
    // A row of zeros, only missing values, a different label (row 1 has 1), a different value, and row 1
    // itself.
    convert("valid", "0 qid:b 1:0 2:0\n1 qid:b 1:0\n2 qid:b 1:1 2:1\n1 qid:b 1:1.5 2:1\n1 qid:b 1:1 2:1\n");
    let found = warnings(at, "--data data --valid valid --set min_data_in_leaf=1");
    assert_eq!(
        found,
        ["warning: valid: 1 of 5 rows have the same features and label as a row of the training data"]
    );
}

#[cfg(feature = "cluster")]
#[test]
fn validation_queries_are_compared_on_a_cluster() {
    let temporary = room();
    let at = temporary.path();
    dataset(at, "data", &graded(81, 30, 12), "--partition-rows 50");
    dataset(at, "ids", &renamed(graded(83, 10, 12), 26), "");
    let found = warnings(at, "--data data --valid ids --preset lambdamart --cluster local:2");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("warning: valid: 4 of 10 queries are also in the training data"),
        "{found:?}"
    );
}

#[test]
fn ranklib_scores_of_other_queries_are_rejected() {
    let temporary = room();
    let at = temporary.path();
    dataset(at, "data", &graded(85, 6, 4), "");
    dataset(at, "others", &renamed(graded(85, 6, 4), 3), "");
    let scores = |first: usize| -> String {
        (0..24).map(|row| format!("{}\t{}\t{}\n", first + row / 4, row % 4, row as f64 / 3.0)).collect()
    };
    fs::write(at.join("s.txt"), scores(0)).unwrap();
    run(at, "evaluate --scores s.txt --data data").ok();
    let stderr = run(at, "evaluate --scores s.txt --data others").failed().stderr;
    assert!(
        stderr.contains("s.txt:1:1: the score is for query \"0\", but row 1 of others is for query \"3\""),
        "{stderr}"
    );
    assert!(stderr.contains("use the dataset that was scored"), "{stderr}");
    // All lines are compared, not only the first.
    let lines = scores(0);
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.swap(9, 21);
    fs::write(at.join("s.txt"), lines.join("\n")).unwrap();
    let stderr = run(at, "evaluate --scores s.txt --data data").failed().stderr;
    assert!(
        stderr.contains("s.txt:10:1: the score is for query \"5\", but row 10 of data is for query \"2\""),
        "{stderr}"
    );
}

/// A model of two trees whose larger leaves are finite, but have an infinite sum.
fn huge_model(directory: &Path) {
    let tree = |number: usize| {
        format!(
            "Tree={number}\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=2.5\ndecision_type=2\n\
             left_child=-1\nright_child=-2\nleaf_value=1 1.5e308\n\n"
        )
    };
    let head = "tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n\
                objective=regression\nfeature_names=f1\n\n";
    fs::write(directory.join("huge.txt"), format!("{head}{}{}end of trees\n", tree(0), tree(1))).unwrap();
    run(directory, "import huge.txt --output huge --format lightgbm").ok();
}

#[test]
fn non_finite_scores_are_an_error_with_their_row() {
    let temporary = room();
    let at = temporary.path();
    huge_model(at);
    fs::write(at.join("text"), "0 qid:a 1:1\n1 qid:a 1:2\n0 qid:b 1:1\n2 qid:b 1:3\n1 qid:c 1:1\n").unwrap();
    run(at, "convert text --output data --partition-rows 2").ok();
    let expected = "data: the score of row 4 (query b) is not finite";
    let expect_error = |arguments: &str, expected: &str| {
        let before = names_in(at);
        let stderr = run(at, arguments).failed().stderr;
        assert!(
            stderr.contains(expected) && stderr.contains("help: check the leaf values"),
            "{arguments}: {stderr}"
        );
        assert_eq!(names_in(at), before, "{arguments}");
    };
    expect_error("predict --model huge --data data --output p", expected);
    expect_error("predict --model huge --data data --scores s.txt --threads 1", expected);
    #[cfg(feature = "cluster")]
    expect_error("predict --model huge --data data --output p --cluster local:1", expected);
    expect_error("describe huge --permutation data", "the score of row 4 is not finite");
    expect_error(
        "train --data data --start-model huge --model m --set min_data_in_leaf=1 --set missing=learned",
        expected,
    );
    let sql = |query: &str| Ran::of(command(at, "sql").args(["-c", query]).output().unwrap());
    let stderr = sql("SELECT max(score) FROM score('huge', 'data')").failed().stderr;
    assert!(stderr.contains(expected), "{stderr}");
    let stderr = sql("SELECT planetree_score('huge', f1) FROM data").failed().stderr;
    assert!(stderr.contains("the score of the row with f1 = 3 is not finite"), "{stderr}");
    sql("SELECT planetree_score('huge', f1) FROM data WHERE f1 < 3").ok();
}
