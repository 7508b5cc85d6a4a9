//! Models of several parts, made with the library and used by the program.

use crate::support::sql::sql_in;
use crate::support::*;
use arrow::array::AsArray;
use arrow::datatypes::Float64Type;
use planetree::model::{Model, Normalisation};
use planetree::storage::Location;
use std::path::Path;

fn location(directory: &Path, name: &str) -> Location {
    Location::Local(directory.join(name))
}

/// Makes a dataset `data`, a boosted model and a forest, and two models of both: `sum`, and `mixed`, whose second part
/// is normalised.
fn two_parts(directory: &Path) {
    dataset(directory, "data", &graded(3, 12, 8), "");
    train(
        directory,
        "--preset lambdamart --data data --set num_trees=5 --set min_data_in_leaf=5 --model boosted",
    );
    train(directory, "--preset rf-point --data data --set num_trees=4 --model forest");
    let mut model = Model::read(&location(directory, "boosted")).unwrap();
    let forest = Model::read(&location(directory, "forest")).unwrap();
    assert_eq!(model.features, forest.features);
    let mut second = forest.parts[0].clone();
    (second.name, second.weight, second.configuration) = ("forest".to_owned(), 0.5, forest.configuration);
    model.parts.push(second);
    model.intercept = -1.0;
    model.write(&location(directory, "sum")).unwrap();
    model.parts[1].normalisation = Normalisation::Z;
    model.write(&location(directory, "mixed")).unwrap();
}

fn numbers(directory: &Path, file: &str, column: &str) -> Vec<f64> {
    let table = table_of(&directory.join(file));
    table.column_by_name(column).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn parts_are_described() {
    let room = room();
    two_parts(room.path());
    let json = described(room.path(), "mixed");
    assert_eq!((json["intercept"].as_f64(), json["trees"].as_u64()), (Some(-1.0), Some(9)));
    let part = &json["parts"][1];
    assert_eq!((part["name"].as_str(), part["kind"].as_str()), (Some("forest"), Some("trees")));
    assert_eq!((part["combine"].as_str(), part["trees"].as_u64()), (Some("mean"), Some(4)));
    assert_eq!((part["normalisation"].as_str(), part["weight"].as_f64()), (Some("z"), Some(0.5)));
    let text = run(room.path(), "describe mixed").ok().stdout;
    let line = text.lines().find(|line| line.starts_with("1     forest trees: mean ")).unwrap();
    assert!(line.contains(" 0.5 z "), "{text}");
    let tree = |options: &str| run(room.path(), &format!("describe {options}")).ok().stdout;
    assert_eq!(tree("mixed --part 1 --tree 3"), tree("forest --tree 3"));
    let refused = run(room.path(), "describe mixed --part 1 --tree 4");
    assert_refused("--tree 4", &refused, 2, &["part 1 (forest): no tree 4", "from 0 to 3"]);
}

#[test]
fn parts_are_predicted_as_columns() {
    let room = room();
    two_parts(room.path());
    for model in ["boosted", "forest"] {
        run(room.path(), &format!("--quiet predict --model {model} --data data --output {model}-p")).ok();
    }
    for (model, is_normalised) in [("sum", false), ("mixed", true)] {
        run(room.path(), &format!("--quiet predict --model {model} --data data --output p --parts")).ok();
        let (scores, first) = (numbers(room.path(), "p", "score"), numbers(room.path(), "p", "part.trees"));
        let second = numbers(room.path(), "p", "part.forest");
        assert_eq!(first, numbers(room.path(), "boosted-p", "score"));
        assert_eq!(second == numbers(room.path(), "forest-p", "score"), !is_normalised);
        for (row, score) in scores.iter().enumerate() {
            assert_eq!(*score, -1.0 + first[row] + 0.5 * second[row]);
        }
        // Other commands read the predictions, and text has the same columns.
        run(room.path(), "--quiet evaluate --predictions p").ok();
        run(room.path(), "describe p").ok();
        let to_text = format!("--quiet predict --model {model} --data data --output p.csv --parts");
        run(room.path(), &to_text).ok();
        run(room.path(), &to_text).ok(); // an earlier output is replaced
        let text = std::fs::read_to_string(room.path().join("p.csv")).unwrap();
        assert!(text.starts_with("query_id,doc_id,label,score,rank,part.trees,part.forest\n"), "{text}");
        run(room.path(), "--quiet evaluate --predictions p.csv").ok();
        // Without --parts the table has the usual columns and the same scores.
        run(room.path(), &format!("--quiet predict --model {model} --data data --output q")).ok();
        assert_eq!(table_of(&room.path().join("q")).num_columns(), 5);
        assert_eq!(numbers(room.path(), "q", "score"), scores);
    }
}

#[test]
fn parts_are_queried_with_sql() {
    let room = room();
    two_parts(room.path());
    let query = |query: &str| sql_in(room.path(), "--format csv", query, &[]);
    let trees =
        query("SELECT part, count(DISTINCT tree) AS trees FROM 'sum' GROUP BY part ORDER BY part").ok();
    assert_eq!(trees.stdout, "part,trees\n0,5\n1,4\n");
    for model in ["sum", "mixed"] {
        run(room.path(), &format!("--quiet predict --model {model} --data data --output p.parquet")).ok();
        let scored = query(&format!("SELECT query_id, score, rank FROM score('{model}', 'data')")).ok();
        let predicted = query("SELECT query_id, score, rank FROM 'p.parquet'").ok();
        assert_eq!(scored.stdout, predicted.stdout, "{model}");
    }
    // Every document has one row per feature.
    let sums = "SELECT abs(sum(contribution) - sum(score - expected) / count(DISTINCT feature)) < 1e-9 AS near \
                FROM explain_score('sum', 'data')";
    assert_eq!(query(sums).ok().stdout, "near\ntrue\n");
    for row_wise in [
        "SELECT * FROM explain_score('mixed', 'data')",
        "SELECT * FROM explain_difference('mixed', 'data', 'q1', 'a', 'b')",
        "SELECT planetree_score('mixed', f1) FROM 'data'",
    ] {
        let problem = "part 1 (forest) is normalised over the documents of a query (z)";
        assert_refused(row_wise, &query(row_wise), 1, &[problem]);
    }
}

#[test]
fn exports_carry_sums_of_trees_and_refuse_the_rest() {
    let room = room();
    two_parts(room.path());
    run(room.path(), "--quiet export sum --format lightgbm --output sum.txt").ok();
    run(room.path(), "--quiet import sum.txt --output back").ok();
    let scores = |model: &str| predict(room.path(), model, "data");
    for (ours, back) in scores("sum").iter().zip(scores("back")) {
        assert_close(ours.score, back.score, 1e-12, "folded");
    }
    for format in ["lightgbm", "xgboost"] {
        let refused = run(room.path(), &format!("export mixed --format {format} --output no"));
        assert_refused(format, &refused, 1, &["part 1 (forest) is normalised", "--format json"]);
    }
    run(room.path(), "--quiet export mixed --format json --output mixed.json").ok();
    run(room.path(), "--quiet import mixed.json --output again").ok();
    assert_same_bytes(room.path(), "mixed", "again", "JSON carries everything");
    // Boosting adds a part of trees to a model of several parts.
    run(room.path(), "--quiet train --data data --start-model sum --set num_trees=2 --model m").ok();
    assert_eq!(described(room.path(), "m")["parts"].as_array().unwrap().len(), 3);
}
