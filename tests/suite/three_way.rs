//! Splits with three children, the third of which has the rows whose value is missing.

use crate::support::sql::sql_in;
use crate::support::*;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type};
use planetree::explain::Explainer;
use planetree::model::Model;
use planetree::storage::Location;
use std::collections::HashMap;
use std::path::Path;

const BRANCH: &str = "--set missing=branch";

/// Graded examples in which about a third of the values of some features are missing.
fn with_gaps(seed: u64, queries: usize, documents: usize) -> Vec<Example> {
    let mut examples = graded(seed, queries, documents);
    for (row, example) in examples.iter_mut().enumerate() {
        for (feature, value) in example.features.iter_mut().enumerate() {
            if feature % 3 == 0 && (row * 7 + feature * 5) % 11 < 4 {
                *value = None;
            }
        }
    }
    examples
}

/// Examples in which no value is missing.
fn without_gaps(seed: u64, queries: usize, documents: usize) -> Vec<Example> {
    let mut examples = graded(seed, queries, documents);
    for value in examples.iter_mut().flat_map(|example| &mut example.features) {
        *value = Some(value.unwrap_or(0.125));
    }
    examples
}

/// A node of a model's tree, as in its table.
#[derive(Debug, Clone)]
struct TableNode {
    feature: Option<usize>,
    threshold: f32,
    missing: String,
    children: [Option<usize>; 3],
    value: f64,
}

/// Reads the trees of a model from its table.
fn trees_of(model: &Path, names: &[String]) -> Vec<Vec<TableNode>> {
    let table = table_of(model);
    let column = |name: &str| table.column_by_name(name).unwrap();
    let numbers = |name: &str| column(name).as_primitive::<Int32Type>();
    let place: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut trees: Vec<Vec<TableNode>> = Vec::new();
    for row in 0..table.num_rows() {
        if numbers("node").value(row) == 0 {
            trees.push(Vec::new());
        }
        let child = |name: &str| numbers(name).is_valid(row).then(|| numbers(name).value(row) as usize);
        let feature = column("feature").as_string::<i32>();
        trees.last_mut().unwrap().push(TableNode {
            feature: feature.is_valid(row).then(|| place[feature.value(row)]),
            threshold: column("threshold").as_primitive::<Float32Type>().value(row),
            missing: column("missing").as_string::<i32>().value(row).to_owned(),
            children: [child("left"), child("right"), child("middle")],
            value: column("value").as_primitive::<Float64Type>().value(row),
        });
    }
    trees
}

/// The value of a tree for a row, by a walk from node to node. Also returns whether the row ended at an inner node.
fn walk(tree: &[TableNode], row: &[Option<f32>]) -> (f64, bool) {
    let mut node = &tree[0];
    while let Some(feature) = node.feature {
        let next = match row[feature] {
            Some(value) if value <= node.threshold => node.children[0],
            Some(_) => node.children[1],
            None => match node.missing.as_str() {
                "left" => node.children[0],
                "right" => node.children[1],
                "middle" => node.children[2],
                other => panic!("missing values go to {other}"),
            },
        };
        match next {
            Some(next) => node = &tree[next],
            None => return (node.value, true),
        }
    }
    (node.value, false)
}

const LEARNERS: [&str; 9] = [
    "--preset planet",
    "--preset mart --set num_leaves=9 --set max_depth=-1",
    "--preset pgbrt",
    "--preset pgbrt-grouped",
    "--preset pgbrt --set workers=3",
    "--preset gbrt",
    "--preset lambdamart --set num_leaves=8",
    "--preset rf-point",
    "--preset rf-rand --set max_depth=6",
];

#[test]
fn scores_are_those_of_a_naive_walk() {
    let room = room();
    let at = room.path();
    // Values are missing in the other data where no training row has a missing value.
    let (data, mut others) = (with_gaps(81, 40, 12), with_gaps(82, 20, 10));
    for (row, example) in others.iter_mut().enumerate() {
        let feature = row % example.features.len();
        example.features[feature] = None;
    }
    dataset(at, "data", &data, "--partition-rows 100");
    dataset(at, "others", &others, "");
    let rows: Vec<Vec<Option<f32>>> =
        rows_of(&at.join("others")).into_iter().map(|row| row.features).collect();
    let names: Vec<String> = (1..=rows[0].len()).map(|number| format!("f{number}")).collect();
    for learner in LEARNERS {
        let settings = format!("{learner} {BRANCH} --set num_trees=6 --set min_data_in_leaf=2 --data data");
        train(at, &format!("{settings} --valid others --set metric=rmse --rounds log --model m"));
        let trees = trees_of(&at.join("m"), &names);
        let middles = trees.iter().flatten().filter(|node| node.children[2].is_some()).count();
        assert!(middles > 0, "{learner}: no split has three children");
        let scores = predict(at, "m", "others");
        let (mut inner, is_mean) = (0, learner.contains("rf-"));
        let base = described(at, "m")["parts"][0]["base_score"].as_f64().unwrap();
        for (row, scored) in rows.iter().zip(&scores) {
            let values: Vec<(f64, bool)> = trees.iter().map(|tree| walk(tree, row)).collect();
            inner += values.iter().filter(|(_, is_inner)| *is_inner).count();
            let expected = match is_mean {
                true => base + values.iter().fold(0.0, |sum, (value, _)| sum + value) / trees.len() as f64,
                false => values.iter().fold(base, |sum, (value, _)| sum + value),
            };
            assert_eq!(scored.score, expected, "{learner}");
        }
        assert!(inner > 0, "{learner}: no missing value was new");
        // The log of the training has the scores of predict.
        let logged = *course(&rounds_of(&at.join("log")), "valid", "rmse").last().unwrap();
        assert_close(logged, rmse(&scores), 1e-9, learner);
        // Contributions add up to scores.
        let model = Model::read(&Location::Local(at.join("m"))).unwrap();
        let explainer = Explainer::new(&model).unwrap();
        let mut contributions = vec![0.0; explainer.features()];
        for (row, scored) in rows.iter().zip(&scores) {
            let row: Vec<f32> = row.iter().map(|value| value.unwrap_or(f32::NAN)).collect();
            explainer.contributions(&row, &mut contributions);
            let sum = explainer.expected_value() + contributions.iter().sum::<f64>();
            assert!((sum - scored.score).abs() <= 1e-11 * scored.score.abs().max(1.0), "{learner}");
        }
    }
}

#[test]
fn without_missing_values_trees_are_those_of_zero() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &without_gaps(83, 40, 12), "--partition-rows 90");
    for learner in LEARNERS {
        let rows = |missing: &str| {
            train(at, &format!("{learner} --set missing={missing} --set num_trees=5 --data data --model m"));
            table_of(&at.join("m"))
        };
        let (branch, zero) = (rows("branch"), rows("zero"));
        assert_eq!(branch.num_rows(), zero.num_rows(), "{learner}");
        for field in zero.schema().fields() {
            let of =
                |table: &arrow::array::RecordBatch| table.column_by_name(field.name()).unwrap().to_data();
            if field.name() == "missing" {
                let words = branch.column_by_name("missing").unwrap().as_string::<i32>();
                assert!(words.iter().flatten().all(|word| word == "middle"), "{learner}");
            } else {
                assert_eq!(of(&branch), of(&zero), "{learner}: {}", field.name());
            }
        }
    }
}

#[test]
fn bytes_depend_only_on_rows_and_parameters() {
    let variants = [
        "--preset mart --set missing=branch",
        "--preset planet --set missing=branch --set bagging_fraction=0.7 --set num_leaves=9 --set max_depth=-1",
        "--preset pgbrt --set missing=branch --set workers=3",
        "--preset pgbrt-grouped --set missing=branch",
        "--preset gbrt --set missing=branch --set max_depth=5",
        "--preset rf-point --set missing=branch",
        "--preset rf-pair --set missing=branch",
    ];
    assert_same_forests(&variants, &[("many", 2), ("few", 4)]);
}

#[test]
fn data_on_disk_train_the_same_models() {
    let room = room();
    run(room.path(), "sample --shape mslr --rows 15000 --output text").ok();
    run(room.path(), "convert text/train.txt --zero-as-missing --output data --partition-rows 1000").ok();
    for learner in ["planet", "pgbrt-grouped", "rf-point"] {
        let settings = format!("--preset {learner} {BRANCH} --set num_trees=3 --data data");
        assert_same_outputs_from_disk(room.path(), &settings, &[]);
        std::fs::remove_dir_all(room.path().join("data.bins")).unwrap();
    }
}

#[test]
fn a_killed_training_resumes_with_the_same_log() {
    let room = room();
    dataset(room.path(), "data", &with_gaps(85, 40, 10), "");
    dataset(room.path(), "others", &with_gaps(86, 20, 10), "");
    for preset in ["planet", "lambdamart", "rf-point"] {
        let settings = format!("--preset {preset} {BRANCH} --data data --valid others");
        assert_resumes_with_the_same_log(room.path(), &settings);
    }
}

#[test]
fn learners_of_two_children_are_refused_by_name() {
    let room = room();
    dataset(room.path(), "data", &graded(87, 10, 5), "");
    assert_trainings_refused(
        room.path(),
        &[
            ("--preset linear --data data --set missing=branch", "missing=branch are for trees"),
            ("--preset rf-list --data data --set missing=branch", "missing=branch: criterion=ndcg"),
            ("--preset rankboost --data data --set missing=branch", "missing=branch: leaf=weak_ranker"),
            (
                "--preset rf-point --data data --set missing=branch --strength s.parquet",
                "--strength: missing=branch is not supported",
            ),
        ],
    );
}

#[test]
fn descriptions_exports_and_sql_know_the_third_child() {
    let room = room();
    let at = room.path();
    dataset(at, "data", &with_gaps(88, 40, 12), "");
    train(at, &format!("--preset planet {BRANCH} --set num_trees=5 --data data --model m.parquet"));
    let text = run(at, "describe m.parquet --tree 0").ok().stdout;
    assert!(text.contains("missing: "), "{text}");
    let query = "SELECT count(*) FILTER (WHERE middle IS NOT NULL) > 0, \
                 count(*) FILTER (WHERE missing = 'middle' AND middle IS NULL) > 0 FROM 'm.parquet'";
    let printed = sql_in(at, "--format csv", query, &[]).ok().stdout;
    assert!(printed.contains("true,true"), "{printed}");
    let scores = predict(at, "m.parquet", "data");
    for format in ["lightgbm", "xgboost", "json"] {
        run(at, &format!("export m.parquet --format {format} --output out.{format}")).ok();
        run(at, &format!("import out.{format} --format {format} --output back.parquet")).ok();
        let tolerance = if format == "xgboost" { 1e-5 } else { 1e-12 };
        for (one, other) in scores.iter().zip(predict(at, "back.parquet", "data")) {
            assert_close(other.score, one.score, tolerance, format);
        }
    }
}

#[cfg(feature = "cluster")]
#[test]
fn clusters_train_the_same_models() {
    let room = room();
    dataset(room.path(), "data", &with_gaps(89, 60, 12), "--partition-rows 100");
    for settings in [
        "--preset mart",
        "--preset planet --set num_leaves=9 --set max_depth=-1",
        "--preset pgbrt --set workers=3",
        "--preset pgbrt-grouped",
        "--preset gbrt",
        "--preset rf-point",
    ] {
        let bytes = |options: &str| {
            let settings = format!("{settings} {BRANCH} --set num_trees=4 --data data");
            trained_bytes(room.path(), &format!("{settings} {options}"))
        };
        assert!(bytes("") == bytes("--cluster local:2"), "{settings}");
    }
}
